package main

import (
	"encoding/json"
	"testing"
)

// TestJobs: a real gateway does each kind of job by hand, and says so afterwards.
func TestJobs(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	f.serveHTTP(t)
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
}
