package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pml-run/pml/internal/search"
)

// newTwins makes two gateways with a data folder each, over one database and the same
// files.
func newTwins(t *testing.T, more map[string]any) (a, b learner) {
	t.Helper()
	if !isNative() {
		t.Skip("two gateways share a native Postgres only; 'make test-native' has one")
	}
	first := newFolderWith(t, more)
	second := first
	second.home = filepath.Join(first.root, "second")
	url, _ := databases.Load(first.home)
	databases.Store(second.home, url)
	return learner{first, connect(t, first.serveHTTP(t))}, learner{second, connect(t, second.serveHTTP(t))}
}

// TestTwoGatewaysShareOneMemory: what one gateway began, another goes on with, and what
// one has learnt, the other finds and runs.
func TestTwoGatewaysShareOneMemory(t *testing.T) {
	t.Parallel()
	a, b := newTwins(t, map[string]any{
		"permissions": map[string]any{"allow": []string{"memory:create_entities"}}, "approvals": map[string]any{"hold_ms": 0},
	})
	first := askedOf(t, a.raw(t, map[string]any{"intent": "leave marks in the memory", "implementation": map[string]any{"type": "code", "code": hidden}}))
	if first.Status != "approval_required" || first.Approval == nil {
		t.Fatalf("got %+v", first)
	}
	if _, err := b.pml(t.Context(), t, "approve", first.Approval.ID); err != nil {
		t.Fatal(err)
	}
	goOn := map[string]any{"intent": "go on", "continue": map[string]any{"workflow_id": first.WorkflowID}}
	for name, l := range map[string]learner{"where it was approved": b, "where it began": a} {
		if done := askedOf(t, l.raw(t, goOn)); done.Status != "success" {
			t.Errorf("%s: %+v", name, done)
		}
	}
	marks, err := os.ReadFile(filepath.Join(a.root, "memory.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{`"before-`, `"after-`, `"last"`} {
		if n := strings.Count(string(marks), word); n != 1 {
			t.Errorf("%s is there %d times:\n%s", word, n, marks)
		}
	}
	finder{b}.until(t, map[string]any{"intent": "leave marks in the memory"}, func(found search.Answer) bool {
		return len(found.Results) > 0 && found.Results[0].CapabilityResult != nil
	})
}

// TestALayerGoesOnAtAnotherGateway: the state of a DAG between two layers is in the
// database alone.
func TestALayerGoesOnAtAnotherGateway(t *testing.T) {
	t.Parallel()
	a, b := newTwins(t, map[string]any{"permissions": map[string]any{"default": "allow"}})
	tasks := `{"id": "read", "tool": "filesystem:read_text_file", "arguments": {"path": "` + filepath.Join(a.files, "a.txt") + `"}},
		{"id": "write", "tool": "filesystem:write_file", "arguments": {"path": "` + filepath.Join(a.files, "made.txt") + `", "content": {"$ref": "read.content"}}}`
	first := a.layered(t, map[string]any{"intent": "copy in two layers", "implementation": dag(tasks), "options": map[string]any{"per_layer_validation": true}})
	if first.Status != "approval_required" || first.Layer == nil || exists(a.folder, "made.txt") {
		t.Fatalf("after the first layer: %+v %+v", first, first.Error)
	}
	last := b.layered(t, map[string]any{"intent": "go on", "continue": map[string]any{"workflow_id": first.WorkflowID, "decision": "approve"}})
	if last.Status != "success" || !exists(a.folder, "made.txt") {
		t.Errorf("at the other gateway: %+v %+v", last, last.Error)
	}
}
