package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pml-run/pml/internal/search"
)

// guess is what the tests read of an answer to an intent without a program.
type guess struct {
	Status string
	Result json.RawMessage
	Error  *struct{ Code, Message string }
	Match  *struct {
		Name       string
		Confidence float64
		Reason     string
	}
	Missing     []struct{ Name string }
	Suggestions []struct{ Call string }
	Plan        json.RawMessage
	Next        string
	CacheHit    string `json:"cache_hit"`
	Similarity  float64
}

// TestOneJobInThreeWordings: first as code, then found by other words, then run by
// the intent alone with other arguments.
func TestOneJobInThreeWordings(t *testing.T) {
	t.Parallel()
	needMeaning(t)
	f := newFinder(t)
	ask := func(request map[string]any) (guess, int) {
		t.Helper()
		sent, _ := json.Marshal(request)
		raw := f.raw(t, request)
		var g guess
		if err := json.Unmarshal(raw, &g); err != nil {
			t.Fatal(err)
		}
		return g, (len(sent) + len(raw)) / 4
	}
	code := `const { content } = await mcp.filesystem.read_text_file({ path: args.path });
const words = content.split(/\\s+/).filter(Boolean);
return { words: words.length, longest: words.sort((a, b) => b.length - a.length)[0] };`
	first, asCode := ask(map[string]any{
		"intent": "count the words of a text file", "implementation": map[string]any{"type": "code", "code": strings.ReplaceAll(code, `\\`, `\`)},
		"args": map[string]any{"path": filepath.Join(f.files, "a.txt")},
	})
	if first.Status != "success" {
		t.Fatalf("as code: %+v %+v", first, first.Error)
	}
	found := f.until(t, map[string]any{"intent": "how many words are in this document", "filter": map[string]any{"type": "capability"}}, func(a search.Answer) bool {
		return len(a.Results) > 0 && a.Results[0].Type == "capability" && a.Mode == search.Hybrid
	})
	_, raw := f.discover(t, map[string]any{"intent": "how many words are in this document", "limit": 3})
	needs, _ := ask(map[string]any{"intent": "count the words of a text file"})
	if needs.Status != "needs_input" || len(needs.Missing) != 1 || needs.Missing[0].Name != "path" || needs.Match == nil {
		t.Errorf("without its argument: %+v %+v", needs, needs.Match)
	}
	alone, byIntent := ask(map[string]any{"intent": "count the words in a text file", "args": map[string]any{"path": filepath.Join(f.files, "b.txt")}})
	if alone.Status != "success" || string(alone.Result) != `{"longest":"beta","words":1}` || alone.Match == nil || alone.Match.Confidence < 0.85 {
		t.Errorf("by intent: %+v %+v", alone, alone.Match)
	}
	t.Logf("tokens (characters/4): as code %d, found by discover %d (%s), by intent alone %d", asCode, len(raw)/4, found.Results[0].Call, byIntent)

	other, _ := ask(map[string]any{"intent": "delete every entity about turtles", "args": map[string]any{}})
	if other.Status != "suggestions" || len(other.Suggestions) == 0 || other.Next == "" {
		t.Errorf("something else: %+v", other)
	}
	lines, _ := ask(map[string]any{"intent": "count the lines of a text file", "args": map[string]any{"path": filepath.Join(f.files, "b.txt")}})
	if lines.Status != "suggestions" || lines.Match == nil || lines.Match.Confidence >= 0.85 {
		t.Errorf("nearly the same, but another thing: %+v %+v", lines, lines.Match)
	}
}

// TestALikeIntentIsAnsweredFromTheCache: where the configuration asks for it, until a
// write makes the result old.
func TestALikeIntentIsAnsweredFromTheCache(t *testing.T) {
	t.Parallel()
	needMeaning(t)
	if isNative() {
		t.Skip("nothing is kept in memory where another gateway may write")
	}
	f := newFinderWith(t, map[string]any{"permissions": map[string]any{"default": "allow"}, "cache": map[string]any{"intents": true}})
	path := filepath.Join(f.files, "b.txt")
	ask := func(intent string, code string) guess {
		t.Helper()
		request := map[string]any{"intent": intent, "args": map[string]any{"path": path}}
		if code != "" {
			request["implementation"] = map[string]any{"type": "code", "code": code}
		}
		var g guess
		if err := json.Unmarshal(f.raw(t, request), &g); err != nil {
			t.Fatal(err)
		}
		return g
	}
	if g := ask("count the letters of a text file", `return (await mcp.filesystem.read_text_file({ path: args.path })).content.trim().length;`); g.Status != "success" {
		t.Fatalf("as code: %+v %+v", g, g.Error)
	}
	f.until(t, map[string]any{"intent": "count the letters of a text file"}, func(a search.Answer) bool {
		return len(a.Results) > 0 && a.Results[0].Type == "capability" && a.Mode == search.Hybrid
	})
	if g := ask("count the letters of a text file", ""); g.Status != "success" || string(g.Result) != "4" {
		t.Fatalf("by intent: %+v %+v %+v", g, g.Error, g.Match)
	}
	if g := ask("count the letters in a text file", ""); g.CacheHit != "intent_similar" || g.Similarity < 0.95 || string(g.Result) != "4" {
		t.Errorf("a like intent: %+v", g)
	}
	if g := ask("make the file longer", `return await mcp.filesystem.write_file({ path: args.path, content: "longer" });`); g.Status != "success" {
		t.Fatalf("write: %+v %+v", g, g.Error)
	}
	if g := ask("count the letters in a text file", ""); g.CacheHit != "" || string(g.Result) != "6" {
		t.Errorf("after a write: %+v", g)
	}
}
