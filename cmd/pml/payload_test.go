package main

import (
	"strings"
	"testing"
)

func TestAPayloadIsKeptBesideItsCall(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	session := connect(t, f.serveHTTP(t))
	a, err := execute(t, session, `return await mcp.everything["get-tiny-image"]({})`, nil)
	if err != nil || a.Status != "success" || !strings.Contains(string(a.Result), `"data_ref":"blob:0"`) {
		t.Fatalf("got %+v, %v", a, err)
	}
	image := readResult(t, session, map[string]any{"workflow_id": a.WorkflowID, "task_id": "n1", "path": "[1].data_ref", "limit": 1500})
	if !strings.HasPrefix(image.Content, "iVBORw0KGgo") || image.Type != "string" {
		t.Errorf("got %+v", image)
	}
	trace, err := f.pml(t.Context(), t, "trace", "ls", "--json")
	if err != nil || strings.Contains(trace, "blob:") {
		t.Errorf("%v: %s", err, trace)
	}
}
