package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// resultPage is what the tests read of pml_get_task_result's answer.
type resultPage struct {
	Status     string `json:"status"`
	Type       string `json:"type"`
	Content    string `json:"content"`
	TotalChars int    `json:"total_chars"`
	NextOffset int    `json:"next_offset"`
	Matches    int    `json:"matches"`
	ExpiresAt  string `json:"expires_at"`
}

// smallAnswer is what an answer may cost a model that asks for little, in bytes.
const smallAnswer = 2048

// readResult asks for a page and fails the test unless the answer is small.
func readResult(t *testing.T, s *mcp.ClientSession, args map[string]any) resultPage {
	t.Helper()
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "pml_get_task_result", Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(result.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	if result.IsError || len(b) >= smallAnswer {
		t.Fatalf("%v: %d bytes: %.300s", args, len(b), b)
	}
	var p resultPage
	if err := json.Unmarshal(b, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestALargeResultIsBrowsedInSmallAnswers(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	var text strings.Builder
	for i := 0; text.Len() < 12<<20; i++ {
		fmt.Fprintf(&text, "line %d: caf\u00e9 \"%s\"\n", i, strings.Repeat("lorem ", 40))
	}
	if err := os.WriteFile(filepath.Join(f.files, "big.txt"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	session := connect(t, f.serveHTTP(t))
	a, err := execute(t, session, `const r = await mcp.filesystem.read_text_file({ path: "`+f.files+`/big.txt" }); return Object.keys(r)`, nil)
	if err != nil || a.Status != "success" {
		t.Fatalf("got %+v, %v", a, err)
	}
	read := func(args map[string]any) resultPage {
		t.Helper()
		args["workflow_id"], args["task_id"], args["limit"] = a.WorkflowID, "n1", 1500
		return readResult(t, session, args)
	}

	shape := read(map[string]any{"format": "shape"})
	if !strings.HasPrefix(shape.Content, "{ content: string }\n") || !strings.Contains(shape.Content, "$.content: string of ") || shape.ExpiresAt == "" {
		t.Errorf("shape: %s", shape.Content)
	}

	want := []rune(text.String())
	first := read(map[string]any{"path": "content"})
	if first.Type != "string" || first.TotalChars != len(want) || first.Content != string(want[:1500]) || first.NextOffset != 1500 {
		t.Errorf("first page: %d characters, on to %d: %.100s", first.TotalChars, first.NextOffset, first.Content)
	}
	for offset := first.NextOffset; offset < 20*1500; {
		page := read(map[string]any{"path": "content", "offset": offset})
		if page.Content != string(want[offset:offset+1500]) || page.NextOffset != offset+1500 {
			t.Fatalf("page at %d, on to %d: %.100s", offset, page.NextOffset, page.Content)
		}
		offset = page.NextOffset
	}
	last := read(map[string]any{"path": "content", "offset": len(want) - 100})
	if last.Content != string(want[len(want)-100:]) || last.NextOffset != 0 {
		t.Errorf("last page, on to %d: %s", last.NextOffset, last.Content)
	}

	found := read(map[string]any{"path": "content", "grep": "line 3333[0-4]:"})
	var line, offset int
	if _, err := fmt.Sscanf(found.Content, "%d:%d:line 33330:", &line, &offset); err != nil || found.Matches != 5 || line != 33331 {
		t.Fatalf("%d matches, %v: %.200s", found.Matches, err, found.Content)
	}
	if page := read(map[string]any{"path": "content", "offset": offset}); !strings.HasPrefix(page.Content, "line 33330: caf\u00e9 \"lorem") {
		t.Errorf("from the match on: %.100s", page.Content)
	}

	if keys := readResult(t, session, map[string]any{"workflow_id": a.WorkflowID}); keys.Content != `["content"]` || keys.Type != "list" {
		t.Errorf("the run's own result: %+v", keys)
	}
}

func TestResourcesOfRealServersAndRuns(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	session := connect(t, f.serveHTTP(t))
	a, err := execute(t, session, `return await mcp.filesystem.list_directory({ path: "`+f.files+`" })`, map[string]any{"name": "look_around"})
	if err != nil || a.Status != "success" {
		t.Fatalf("got %+v, %v", a, err)
	}
	list, err := session.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, r := range list.Resources {
		listed[r.URI] = true
	}
	if !listed["pml://types/filesystem.d.ts"] {
		t.Errorf("listed: %v", listed)
	}
	for uri, parts := range map[string][]string{
		"pml://types/filesystem.d.ts":  {"declare namespace mcp", "read_text_file(args: {"},
		"pml://trace/" + a.WorkflowID:  {`"executed_path":["n1"]`, "filesystem:list_directory"},
		"pml://capability/look_around": {`"signature":"look_around(args?: { path?: `, `Promise\u003c{ content: string }\u003e"`, `"usage_count":1`, `"static_structure":{`, `"parameters":[`},
	} {
		r, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Errorf("%s: %v", uri, err)
			continue
		}
		for _, part := range parts {
			if !strings.Contains(r.Contents[0].Text, part) {
				t.Errorf("%s lacks %s: %.600s", uri, part, r.Contents[0].Text)
			}
		}
	}
	for uri, part := range map[string]string{
		"pml://types/nothing.d.ts":                         "the servers are: everything, filesystem, memory",
		"pml://trace/01890000-0000-7000-8000-000000000000": "there is no run",
		"pml://trace/nonsense":                             "is not the id of a run",
		"pml://capability/nothing":                         `there is no capability "nothing"`,
	} {
		if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}
