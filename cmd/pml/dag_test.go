package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// layered is what the tests read of an answer about a DAG.
type layered struct {
	Status     string
	WorkflowID string `json:"workflow_id"`
	Result     json.RawMessage
	Error      *struct{ Code, Message, Hint string }
	Layer      *struct {
		Index   int
		Results map[string]json.RawMessage
	}
	Capability *struct{ Name, State string }
	Trace      struct {
		ExecutedPath []string `json:"executed_path"`
		ToolsCalled  []struct {
			TaskID string `json:"task_id"`
			OK     bool
		} `json:"tools_called"`
	}
}

func (l learner) layered(t *testing.T, arguments map[string]any) layered {
	t.Helper()
	var a layered
	if err := json.Unmarshal(l.raw(t, arguments), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func dag(tasks string) map[string]any {
	return map[string]any{"type": "dag", "dagStructure": json.RawMessage(`{"tasks": [` + tasks + `]}`)}
}

// gathering has three layers: two files and one that is missing, a count of both
// files, and a note of the count.
const gathering = `
{"id": "first", "tool": "filesystem:read_text_file", "arguments": {"path": {"$args": "a"}}},
{"id": "second", "tool": "filesystem:read_text_file", "arguments": {"path": {"$args": "b"}}},
{"id": "missing", "tool": "filesystem:read_text_file", "arguments": {"path": {"$args": "gone"}}, "on_error": "skip"},
{"id": "count", "code": "return { letters: (args.one + args.two).trim().length }", "arguments": {"one": {"$ref": "first.content"}, "two": {"$ref": "second.content"}}},
{"id": "note", "tool": "memory:create_entities", "arguments": {"entities": [{"name": "count", "entityType": "note", "observations": [{"$ref": "first.content"}]}]}, "depends_on": ["count"], "condition": "count.letters > 3"}`

func TestADAGRunsLikeCode(t *testing.T) {
	t.Parallel()
	l := newLearner(t)
	args := map[string]any{"a": filepath.Join(l.files, "a.txt"), "b": filepath.Join(l.files, "b.txt"), "gone": filepath.Join(l.files, "none.txt")}
	a := l.layered(t, map[string]any{"intent": "gather notes", "implementation": dag(gathering), "args": args, "options": map[string]any{"allow_partial": true}})
	if a.Status != "success" {
		t.Fatalf("got %+v %+v", a, a.Error)
	}
	called := map[string]bool{}
	for _, c := range a.Trace.ToolsCalled {
		called[c.TaskID] = c.OK
	}
	if !called["first"] || !called["second"] || called["missing"] || !called["note"] {
		t.Errorf("called %v, path %v", called, a.Trace.ExecutedPath)
	}
	if a.Capability == nil || a.Capability.State != "active" {
		t.Fatalf("capability %+v", a.Capability)
	}
	args["a"] = filepath.Join(l.files, "c.txt")
	again := l.layered(t, map[string]any{"intent": "the same", "implementation": map[string]any{"type": "capability", "name": a.Capability.Name}, "args": args})
	if again.Status != "success" {
		t.Errorf("as a capability: %+v %+v", again, again.Error)
	}
	for name, bad := range map[string]string{
		"circle":  `{"id": "a", "tool": "filesystem:list_allowed_directories", "depends_on": ["b"]}, {"id": "b", "tool": "filesystem:list_allowed_directories", "depends_on": ["a"]}`,
		"unknown": `{"id": "a", "tool": "filesystem:nothing_like_it"}`,
		"ref":     `{"id": "a", "tool": "filesystem:read_text_file", "arguments": {"path": {"$ref": "nobody.path"}}}`,
	} {
		if r := l.layered(t, map[string]any{"intent": "bad", "implementation": dag(bad)}); r.Error == nil || r.Error.Hint == "" || r.WorkflowID != "" {
			t.Errorf("%s: %+v %+v", name, r, r.Error)
		}
	}
}

// TestADAGIsReplannedAfterALayer: what has run is not run again, and the new rest
// reads its results, also after the gateway was killed.
func TestADAGIsReplannedAfterALayer(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	g := f.start(t)
	l := learner{f, connect(t, g.url)}
	note := func(id, name, after string) string {
		return `{"id": "` + id + `", "tool": "memory:create_entities", "arguments": {"entities": [{"name": "` + name + `", "entityType": "note", "observations": [` + after + `]}]}}`
	}
	read := `{"id": "read", "tool": "filesystem:read_text_file", "arguments": {"path": "` + filepath.Join(f.files, "a.txt") + `"}}`
	tasks := read + "," + note("one", "one", "") + "," + note("two", "two", `{"$ref": "one.entities[0].name"}`) + "," + note("three", "three", `{"$ref": "two.entities[0].name"}`)
	first := l.layered(t, map[string]any{"intent": "three layers", "implementation": dag(tasks), "options": map[string]any{"per_layer_validation": true}})
	if first.Status != "approval_required" || first.Layer == nil || first.Layer.Index != 0 || first.Layer.Results["read"] == nil {
		t.Fatalf("after the first layer: %+v %+v", first, first.Error)
	}
	goOn := func(decision string, more map[string]any) layered {
		arguments := map[string]any{"intent": "go on", "continue": map[string]any{"workflow_id": first.WorkflowID, "decision": decision}}
		maps.Copy(arguments, more)
		return l.layered(t, arguments)
	}
	second := goOn("approve", nil)
	if second.Status != "approval_required" || second.Layer == nil || second.Layer.Index != 1 {
		t.Fatalf("after the second layer: %+v %+v", second, second.Error)
	}
	if bad := goOn("replan", map[string]any{"implementation": dag(note("one", "again", ""))}); bad.Error == nil || !strings.Contains(bad.Error.Message, "one") {
		t.Errorf("a task that has run was taken again: %+v %+v", bad, bad.Error)
	}
	g.kill(t)
	again := f.start(t)
	again.stopLater(t)
	l.session = connect(t, again.url)
	rest := note("other", "other", `{"$ref": "two.entities[0].name"}, {"$ref": "read.content"}`)
	third := goOn("replan", map[string]any{"implementation": dag(rest)})
	if third.Status != "success" {
		t.Fatalf("after the new plan: %+v %+v %+v", third, third.Layer, third.Error)
	}
	b, err := os.ReadFile(filepath.Join(f.root, "memory.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"one": 1, "two": 1, "three": 0, "other": 1} {
		if n := strings.Count(string(b), `"name":"`+name+`"`); n != want {
			t.Errorf("%s is there %d times, not %d:\n%s", name, n, want, b)
		}
	}
	stopped := l.layered(t, map[string]any{"intent": "three layers", "implementation": dag(tasks), "options": map[string]any{"per_layer_validation": true}})
	aborted := l.layered(t, map[string]any{"intent": "stop", "continue": map[string]any{"workflow_id": stopped.WorkflowID, "decision": "abort"}})
	if aborted.Error == nil || aborted.Error.Code != "cancelled" {
		t.Errorf("aborted: %+v %+v", aborted, aborted.Error)
	}
}
