package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sorting reads files in a loop, writes some of them elsewhere, and deletes by a branch.
const sorting = `
let moved = 0;
for (const name of args.names) {
  const { content } = await mcp.filesystem.read_text_file({ path: args.dir + "/" + name });
  if (content.startsWith("al")) {
    await mcp.filesystem.write_file({ path: args.dir + "/sorted-" + name, content });
    moved++;
  } else {
    await mcp.memory.create_entities({ entities: [{ name, entityType: "left", observations: [content] }] });
  }
}
if (moved > 5) await mcp.memory.delete_entities({ entityNames: ["x"] });
return moved;`

// dryAnswer is what the test reads of a dry run's answer.
type dryAnswer struct {
	Status     string
	WorkflowID string `json:"workflow_id"`
	Result     json.RawMessage
	Error      *struct{ Code, Message string }
	DryRun     struct {
		Calls []struct {
			TaskID     string `json:"task_id"`
			Tool       string
			AnsweredBy string `json:"answered_by"`
			Connector  string
			Problem    string
		}
		ExecutedPath   []string `json:"executed_path"`
		NotVisited     []string `json:"branches_not_visited"`
		Approvals      []struct{ Tool string }
		EstimatedCalls map[string]int `json:"estimated_calls"`
		Warnings       []string
	} `json:"dry_run"`
}

// TestADryRunChangesNothing: every call is reported, and no write reaches a server.
func TestADryRunChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFolderWith(t, nil)
	l := learner{f, connect(t, f.serveHTTP(t))}
	run := func(code string, dry any) dryAnswer {
		t.Helper()
		var a dryAnswer
		raw := l.raw(t, map[string]any{
			"intent": "sort the notes", "implementation": map[string]any{"type": "code", "code": code},
			"args": map[string]any{"dir": f.files, "names": []string{"a.txt", "b.txt", "c.txt"}}, "options": map[string]any{"dry_run": dry},
		})
		if err := json.Unmarshal(raw, &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := run(sorting, map[string]string{"reads": "real"})
	if a.Status != "success" || string(a.Result) != "1" || a.WorkflowID != "" {
		t.Errorf("got %+v", a)
	}
	var calls []string
	for _, c := range a.DryRun.Calls {
		calls = append(calls, c.TaskID+" "+c.Tool+" "+c.AnsweredBy)
	}
	want := []string{
		"n1 filesystem:read_text_file real", "n2 filesystem:write_file mock", "n1@2 filesystem:read_text_file real",
		"n3 memory:create_entities mock", "n1@3 filesystem:read_text_file real", "n3@2 memory:create_entities mock",
	}
	if !slices.Equal(calls, want) {
		t.Errorf("calls\n%s\nwant\n%s", strings.Join(calls, "\n"), strings.Join(want, "\n"))
	}
	if !slices.Equal(a.DryRun.NotVisited, []string{"d2:true"}) {
		t.Errorf("not visited %q", a.DryRun.NotVisited)
	}
	if n := a.DryRun.EstimatedCalls["filesystem:read_text_file"]; n != 3 {
		t.Errorf("estimated %v", a.DryRun.EstimatedCalls)
	}
	if len(a.DryRun.Approvals) != 2 { // write_file and delete_entities: memory says that creating destroys nothing
		t.Errorf("approvals %+v", a.DryRun.Approvals)
	}
	if strings.Join(a.DryRun.ExecutedPath, " ") == "" {
		t.Error("no path")
	}

	a = run(sorting, true)
	if a.Status != "success" || len(a.DryRun.Calls) != 6 || a.DryRun.Calls[0].AnsweredBy != "mock" {
		t.Errorf("without real reads: %+v", a)
	}
	if !slices.ContainsFunc(a.DryRun.Warnings, func(w string) bool { return strings.Contains(w, "branch d1 depends on mocked data") }) {
		t.Errorf("warnings %q", a.DryRun.Warnings)
	}
	a = run(`return await mcp.filesystem.write_file({ path: 5 });`, true)
	if a.Error == nil || len(a.DryRun.Calls) != 1 || a.DryRun.Calls[0].Problem == "" || a.DryRun.Calls[0].AnsweredBy != "refused" {
		t.Errorf("wrong arguments: %+v", a)
	}

	entries, err := os.ReadDir(f.files)
	if err != nil || len(entries) != 3 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(f.root, "memory.jsonl")); err == nil {
		t.Error("the memory was written")
	}
	if out, err := f.pml(t.Context(), t, "trace", "ls", "--json"); err != nil || strings.TrimSpace(out) != "[]" && strings.TrimSpace(out) != "null" {
		t.Errorf("runs were stored: %s %v", out, err)
	}
	if out, err := f.pml(t.Context(), t, "capability", "ls", "--json"); err != nil || strings.TrimSpace(out) != "[]" && strings.TrimSpace(out) != "null" {
		t.Errorf("capabilities were stored: %s %v", out, err)
	}
}
