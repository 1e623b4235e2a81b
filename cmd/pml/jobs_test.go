package main

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/httpapi"
)

// TestJobs: a real gateway does each kind of job by hand, and says so afterwards.
func TestJobs(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	l := learner{f, connect(t, f.serveHTTP(t))}
	type job struct {
		Kind, Outcome, Detail string
		LastRun               string `json:"last_run"`
		NextRun               string `json:"next_run"`
	}
	list := func() []job {
		t.Helper()
		out, err := f.pml(t.Context(), t, "--json", "jobs", "ls")
		if err != nil {
			t.Fatal(err)
		}
		var jobs []job
		if err := json.Unmarshal([]byte(out), &jobs); err != nil {
			t.Fatal(err)
		}
		return jobs
	}
	kinds := list()
	if len(kinds) != 8 {
		t.Errorf("%d kinds: %+v", len(kinds), kinds)
	}
	for _, k := range kinds {
		if k.Kind == "embeddings" {
			continue // it may wait for a model
		}
		if out, err := f.pml(t.Context(), t, "jobs", "run", k.Kind); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	for _, k := range list() {
		if k.Kind != "embeddings" && (k.Outcome != "ok" || k.Detail == "" || k.LastRun == "" || k.NextRun == "") {
			t.Errorf("%+v", k)
		}
	}
	if _, err := f.pml(t.Context(), t, "jobs", "run", "nothing"); err == nil {
		t.Error("a kind that is none was run")
	}
	if out, err := f.pml(t.Context(), t, "doctor"); err != nil {
		t.Errorf("%v\n%s", err, out)
	} else {
		t.Log(out)
	}
	l.graph(t)
}

// graph looks at which tools go together before and after a program has called two.
func (l learner) graph(t *testing.T) {
	t.Helper()
	if _, err := l.pml(t.Context(), t, "graph", "nothing:here"); err == nil {
		t.Error("what is none is in the graph")
	}
	if o := l.run(t, "const { content } = await mcp.filesystem.read_text_file({path: args.path});\n"+
		"return await mcp.everything.echo({message: content})", map[string]any{"path": filepath.Join(l.files, "a.txt")}); o.Status != "success" {
		t.Fatalf("%+v", o)
	}
	if _, err := l.pml(t.Context(), t, "jobs", "run", "graph"); err != nil {
		t.Fatal(err)
	}
	out, err := l.pml(t.Context(), t, "--json", "graph", "everything:echo")
	var g httpapi.Graph
	if err := errors.Join(err, json.Unmarshal([]byte(out), &g)); err != nil {
		t.Fatal(err)
	}
	after := func(e capability.Edge) bool {
		return e.From == "filesystem:read_text_file" && e.To == "everything:echo" && e.Type == capability.Sequence && e.Count == 1
	}
	if g.Version == 0 || len(g.Nodes) < 3 || g.Nodes[0].ID != "everything:echo" || g.Nodes[0].Rank <= 0 || g.Nodes[0].Cluster == 0 || !slices.ContainsFunc(g.Edges, after) {
		t.Errorf("%s", out)
	}
	if out, err = l.pml(t.Context(), t, "graph"); err != nil || !strings.Contains(out, "everything:echo") {
		t.Errorf("%s, %v", out, err)
	}
}
