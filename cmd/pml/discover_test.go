package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pml-run/pml/internal/embedding"
	"github.com/pml-run/pml/internal/search"
)

// finder asks pml_discover on a folder's real servers.
type finder struct{ learner }

// newFinder starts a gateway in which some calls ask and some are denied, and waits
// until its servers are ready and all is embedded.
func newFinder(t *testing.T) finder {
	t.Helper()
	return newFinderWith(t, map[string]any{"permissions": map[string]any{
		"default": "allow", "ask": []string{"*:write_*"}, "deny": []string{"memory:delete_*"},
	}})
}

func newFinderWith(t *testing.T, more map[string]any) finder {
	t.Helper()
	needMeaning(t)
	folder := newMeaningfulFolder(t, more)
	f := finder{learner{folder, connect(t, folder.serveHTTP(t))}}
	f.until(t, map[string]any{"intent": "anything"}, func(a search.Answer) bool {
		return len(a.Servers) == 0 && a.Mode == search.Hybrid
	})
	return f
}

// newMeaningfulFolder is newFolderWith whose gateway embeds.
func newMeaningfulFolder(t *testing.T, more map[string]any) folder {
	t.Helper()
	more["embedding"] = map[string]any{"provider": "local"}
	return newFolderWith(t, more)
}

// needMeaning ends a test that only works with the embedding model where that is not
// installed.
func needMeaning(t *testing.T) {
	t.Helper()
	if !embedding.Installed(filepath.Join(repository(t), ".tools", "runtime")) {
		t.Fatal("the embedding model is not installed: run make setup")
	}
}

// discover returns the answer as it was decoded and as it was sent.
func (f finder) discover(t *testing.T, request map[string]any) (search.Answer, []byte) {
	t.Helper()
	r, err := f.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "pml_discover", Arguments: request})
	if err != nil {
		t.Fatal(err)
	}
	text, ok := r.Content[0].(*mcp.TextContent)
	if !ok || r.IsError {
		t.Fatalf("pml_discover %v: %+v", request, r.Content[0])
	}
	var a search.Answer
	if err := json.Unmarshal([]byte(text.Text), &a); err != nil {
		t.Fatal(err)
	}
	return a, []byte(text.Text)
}

// until asks until the answer is as wanted: what is learnt and embedded in the
// background comes a little later.
func (f finder) until(t *testing.T, request map[string]any, ok func(search.Answer) bool) search.Answer {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(100 * time.Millisecond) {
		a, raw := f.discover(t, request)
		if ok(a) {
			return a
		}
		if time.Now().After(deadline) {
			t.Fatalf("pml_discover %v is still %s %+v", request, raw, a.Suggestions)
		}
	}
}

func TestDiscover(t *testing.T) {
	t.Parallel()
	f := newFinder(t)
	t.Run("meaning", f.testMeaning)
	t.Run("pages and approval", f.testPages)
	t.Run("length", f.testLength)
	t.Run("what was learnt", f.testLearnt)
}

func (f finder) testMeaning(t *testing.T) {
	needMeaning(t)
	for want, intents := range map[string][]string{
		"filesystem:read_text_file":   {"read the contents of a text file", "show me what is written in a file", "cat a file"},
		"filesystem:move_file":        {"rename a document", "put a file into another folder", "mv"},
		"filesystem:create_directory": {"create a folder", "make a place for new files", "mkdir"},
	} {
		for _, intent := range intents {
			a, raw := f.discover(t, map[string]any{"intent": intent, "limit": 3})
			if !slices.ContainsFunc(a.Results, func(r search.Result) bool { return r.ID == want }) {
				t.Errorf("%q did not find %s: %s", intent, want, raw)
			}
		}
	}
}

func (f finder) testPages(t *testing.T) {
	for _, intent := range []string{"", "make a new file"} {
		seen := map[string]bool{}
		for offset, total := 0, 1; offset < total; {
			a, raw := f.discover(t, map[string]any{"intent": intent, "limit": 10, "offset": offset})
			if total = a.Total; a.NextOffset == 0 && offset+len(a.Results) != total || a.NextOffset != 0 && a.NextOffset != offset+10 {
				t.Fatalf("page at %d: %s", offset, raw)
			}
			for _, r := range a.Results {
				if seen[r.ID] {
					t.Errorf("%s came twice", r.ID)
				}
				seen[r.ID] = true
				if want := approvalOf(r.ID); r.Approval != want {
					t.Errorf("%s: approval %q, want %q", r.ID, r.Approval, want)
				}
			}
			offset += 10
		}
		if len(seen) < 30 {
			t.Errorf("the pages for %q have %d tools", intent, len(seen))
		}
	}
}

// approvalOf is what the rules of newFinder say.
func approvalOf(id string) string {
	switch id {
	case "filesystem:write_file":
		return "ask"
	case "memory:delete_entities", "memory:delete_observations", "memory:delete_relations":
		return "deny"
	}
	return "allow"
}

// The eight results that need most room stay under 2,000 tokens of four characters,
// so every page of eight does.
func (f finder) testLength(t *testing.T) {
	a, _ := f.discover(t, map[string]any{"limit": 50})
	var sizes []int
	for _, r := range a.Results {
		if r.Signature == "" || r.Call == "" {
			t.Errorf("%s has no signature or call", r.ID)
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(r); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, b.Len())
	}
	slices.Sort(sizes)
	sum := 100 // what is around the results
	for _, size := range sizes[len(sizes)-8:] {
		sum += size
	}
	t.Logf("%d tools; the longest eight results have %d characters, the median one %d", len(sizes), sum, sizes[len(sizes)/2])
	if sum/4 >= 2000 {
		t.Errorf("eight results can have %d characters", sum)
	}
}

// A program that ran with success is found in other words, and with the next tools.
func (f finder) testLearnt(t *testing.T) {
	o := f.call(t, map[string]any{
		"intent": "count the lines of a text file", "args": map[string]any{"file": filepath.Join(f.files, "a.txt")},
		"implementation": map[string]any{"type": "code", "code": `
const found = await mcp.filesystem.search_files({ path: args.file.replace(/[^/]*$/, ""), pattern: "a.txt" });
const text = (await mcp.filesystem.read_text_file({ path: args.file })).content;
return { lines: text.split("\n").length, found };`},
	})
	if o.Status != "success" || o.Capability == nil {
		t.Fatalf("the program did not run: %+v", o)
	}
	intents := []string{o.Capability.Name, "how long is this document, in rows", "number of lines in a file", "tell me how many lines my log has"}
	for _, intent := range intents {
		a := f.until(t, map[string]any{"intent": intent, "limit": 5, "detail": "full"}, func(a search.Answer) bool {
			return slices.ContainsFunc(a.Results, func(r search.Result) bool { return r.ID == o.Capability.ID })
		})
		r := a.Results[slices.IndexFunc(a.Results, func(r search.Result) bool { return r.ID == o.Capability.ID })]
		if r.Call != "capabilities."+o.Capability.Name || r.State != "active" || r.Version != 1 || r.Structure == nil ||
			len(r.ToolsUsed) != 2 || r.Signature != o.Capability.Name+"(args: { file: string; pattern?: string /* = \"a.txt\" */ }): Promise<{ found: { content: string }; lines: number }>" {
			t.Errorf("%q found %+v %+v", intent, r, r.CapabilityResult)
		}
	}
	f.until(t, map[string]any{"limit": 1, "context_tools": []string{"mcp.filesystem.searchFiles"}}, func(a search.Answer) bool {
		return slices.ContainsFunc(a.Suggestions, func(s search.Suggestion) bool {
			return s.ID == "filesystem:read_text_file"
		})
	})
	// Words that nothing has in common with what served them, until it has.
	if o := f.call(t, map[string]any{
		"intent":         "frobnicate the quux",
		"implementation": map[string]any{"type": "code", "code": "return await mcp.memory.read_graph({})"},
	}); o.Status != "success" {
		t.Fatalf("the program did not run: %+v", o)
	}
	f.until(t, map[string]any{"intent": "quux frobnicate", "limit": 1, "filter": map[string]any{"type": "tool"}}, func(a search.Answer) bool {
		return a.Results[0].ID == "memory:read_graph"
	})
	schema, raw := f.discover(t, map[string]any{"intent": "filesystem:readTextFile", "limit": 1, "detail": "schema"})
	if r := schema.Results[0]; r.ID != "filesystem:read_text_file" || len(r.InputSchema) == 0 || r.OutputSource != "declared" || len(r.ExampleArgs) == 0 {
		t.Errorf("schema detail: %s", raw)
	}
}

// What is embedded is in the store: a gateway that is killed in the middle, and
// started again, has it all once.
func TestDiscoverSurvivesAKill(t *testing.T) {
	t.Parallel()
	needMeaning(t)
	folder := newMeaningfulFolder(t, map[string]any{})
	g := folder.start(t)
	if err := g.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = g.cmd.Wait() // killed
	f := finder{learner{folder, connect(t, folder.serveHTTP(t))}}
	f.until(t, map[string]any{"intent": "anything"}, func(a search.Answer) bool { return a.Mode == search.Hybrid && len(a.Servers) == 0 })
	a, raw := f.discover(t, map[string]any{"intent": "rename a document", "limit": 1})
	if a.Results[0].ID != "filesystem:move_file" {
		t.Errorf("found %s", raw)
	}
}
