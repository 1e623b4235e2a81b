package main

import (
	"strings"
	"testing"
)

// TestARunIsCancelledAtTheCommandLine: a run that would go on for an hour ends, and says why.
func TestARunIsCancelledAtTheCommandLine(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	l := learner{f, connect(t, f.serveHTTP(t))}
	started := l.call(t, map[string]any{
		"intent": "echo for ever", "options": map[string]any{"wait_ms": 0, "timeout_ms": 3_600_000},
		"implementation": map[string]any{"type": "code", "code": `while (true) await mcp.everything.echo({ message: "again" });`},
	})
	if started.Status != "running" {
		t.Fatalf("got %+v", started)
	}
	if out, err := f.pml(t.Context(), t, "cancel", started.WorkflowID); err != nil || !strings.Contains(out, "cancelled") {
		t.Fatalf("%s, %v", out, err)
	}
	ended := l.call(t, map[string]any{"intent": "wait", "continue": map[string]any{"workflow_id": started.WorkflowID}})
	if ended.Error == nil || ended.Error.Code != "cancelled" {
		t.Errorf("got %+v, %+v", ended, ended.Error)
	}
	for name, id := range map[string]string{"ended already": started.WorkflowID, "no id": "everything"} {
		if out, err := f.pml(t.Context(), t, "cancel", id); err == nil {
			t.Errorf("%s: %s", name, out)
		}
	}
}
