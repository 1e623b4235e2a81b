package jobs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/jobs"
	"github.com/pml-run/pml/internal/learn"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/store/storetest"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/trace"
)

const day = 24 * time.Hour

// in returns a clock that is that far ahead of the database's.
func in(d time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(d) }
}

// does does a job and compares what it says.
func does(t *testing.T, k jobs.Kind, want string) {
	t.Helper()
	got, err := k.Do(t.Context())
	if err != nil || got != want {
		t.Errorf("%s says %q, %v, want %q", k.Name, got, err, want)
	}
}

func saved(t *testing.T, s *store.Store, name string) capability.Capability {
	t.Helper()
	c, _, err := s.UpsertCandidate(t.Context(), capability.Capability{
		Name: name, Intent: name, HashExact: "x" + name, HashShape: name,
		Source:    capability.Source{Type: capability.CodeSource, Code: "return 1"},
		Structure: structure.Structure{Nodes: []structure.Node{}, Edges: []structure.Edge{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func begun(t *testing.T, s *store.Store, parent uuid.UUID) trace.Run {
	t.Helper()
	r := trace.Run{
		ID: uuid.Must(uuid.NewV7()), Parent: parent, Status: trace.Running, Owner: "g", StartedAt: time.Now(),
		LeaseUntil: time.Now().Add(time.Minute),
	}
	if err := s.BeginRun(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// ran stores a finished run of c as the gateway does, and returns its id.
func ran(t *testing.T, s *store.Store, c capability.Capability, path string, success bool, parent uuid.UUID) uuid.UUID {
	t.Helper()
	r := begun(t, s, parent)
	r.Status, r.FinishedAt, r.Duration, r.LeaseUntil = trace.Succeeded, time.Now(), 10*time.Millisecond, time.Time{}
	r.Result, r.Logs = json.RawMessage(`{"answer": 42}`), []string{"a line"}
	if !success {
		r.Status = trace.Failed
	}
	r.Capability = c.ID
	tr := trace.Trace{Run: r, ExecutedPath: []string{path}, PathHash: path, Success: success, Exact: true}
	if c.ID != uuid.Nil {
		tr.CapabilityVersion = 1
	}
	study := learn.Prepare(tr, &c, learn.Options{})
	err := s.FinishRun(t.Context(), tr, func(ctx context.Context, tx *store.Tx) error {
		_, err := study.Apply(ctx, tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.ID
}

func stateOf(t *testing.T, s *store.Store, c capability.Capability) capability.State {
	t.Helper()
	now, err := s.Capability(t.Context(), c.ID.String())
	if err != nil {
		t.Fatal(err)
	}
	return now.State
}

func TestPromote(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	good, bad, young := saved(t, s, "good"), saved(t, s, "bad"), saved(t, s, "young")
	for i := range 4 {
		ran(t, s, good, "p", true, uuid.Nil)
		ran(t, s, bad, "p", i%2 == 0, uuid.Nil)
	}
	ran(t, s, young, "p", true, uuid.Nil)
	registry := prometheus.NewRegistry()
	k := jobs.Promote(s, registry)
	does(t, k, "1 promoted")
	does(t, k, "0 promoted")
	if a, b, c := stateOf(t, s, good), stateOf(t, s, bad), stateOf(t, s, young); a != capability.Promoted || b != capability.Active || c != capability.Active {
		t.Errorf("states %s, %s, %s", a, b, c)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 2 {
		t.Fatalf("%d metrics, %v", len(families), err)
	}
	for _, f := range families {
		if n := f.GetMetric()[0].GetCounter().GetValue(); n != 1 {
			t.Errorf("%s is %v", f.GetName(), n)
		}
	}
}

func TestRetire(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	idle, tried, active := saved(t, s, "idle"), saved(t, s, "tried"), saved(t, s, "active")
	ran(t, s, active, "p", true, uuid.Nil)
	does(t, jobs.Retire(s, in(29*day)), "0 retired")
	set(t, s, `update workflow_execution set started_at = now() + interval '10 days' where workflow_id = $1`, ran(t, s, tried, "p", false, uuid.Nil))
	does(t, jobs.Retire(s, in(31*day)), "1 retired")
	does(t, jobs.Retire(s, in(31*day)), "0 retired")
	if a, b, c := stateOf(t, s, idle), stateOf(t, s, tried), stateOf(t, s, active); a != capability.Retired || b != capability.Candidate || c != capability.Active {
		t.Errorf("states %s, %s, %s", a, b, c)
	}
	if _, err := s.MoveCapability(t.Context(), "idle", capability.Event{Kind: capability.PersonRevives}); err != nil {
		t.Fatal(err)
	}
	does(t, jobs.Retire(s, in(29*day)), "0 retired") // thirty days from the revival
}

func set(t *testing.T, s *store.Store, sql string, args ...any) {
	t.Helper()
	if tag, err := s.Pool().Exec(t.Context(), sql, args...); err != nil || tag.RowsAffected() == 0 {
		t.Fatal(err, tag)
	}
}

func TestExpire(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	id := ran(t, s, capability.Capability{}, "p", true, uuid.Nil)
	quota := func(n int64) func() int64 { return func() int64 { return n } }
	does(t, jobs.Expire(s, quota(1<<30), in(0)), "0 results expired, 0 over the quota")
	does(t, jobs.Expire(s, quota(1), in(0)), "0 results expired, 1 over the quota")
	ran(t, s, capability.Capability{}, "p", true, uuid.Nil)
	does(t, jobs.Expire(s, quota(1<<30), in(2*time.Hour)), "1 results expired, 0 over the quota")
	does(t, jobs.Expire(s, quota(1), in(2*time.Hour)), "0 results expired, 0 over the quota")
	if _, err := s.Trace(t.Context(), id); err != nil {
		t.Errorf("what the run did is gone: %v", err)
	}
}

func TestRetain(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	c := saved(t, s, "work")
	keep := map[string]uuid.UUID{
		"only failure of its path": ran(t, s, c, "q", false, uuid.Nil),
		"open":                     begun(t, s, uuid.Nil).ID,
	}
	gone := map[string]uuid.UUID{"without capability": ran(t, s, capability.Capability{}, "", true, uuid.Nil)}
	parent := ran(t, s, capability.Capability{}, "", true, uuid.Nil)
	keep["parent of one that is kept"], keep["best of its path"] = parent, ran(t, s, c, "p", true, parent)
	set(t, s, `update capability_trace set duration_ms = 1 where id = $1`, keep["best of its path"])
	old := ran(t, s, capability.Capability{}, "", true, uuid.Nil)
	gone["old parent"], gone["its child"] = old, ran(t, s, capability.Capability{}, "", true, old)
	for i := range store.SurprisesKept {
		id := ran(t, s, c, "p", true, uuid.Nil)
		keep[fmt.Sprint("surprise ", i)] = id
		set(t, s, `update capability_trace set priority = 0.9 where id = $1`, id)
	}
	for i := range 3 {
		id := ran(t, s, c, "p", true, uuid.Nil)
		gone[fmt.Sprint("ordinary ", i)] = id
		set(t, s, `update capability_trace set priority = 0.05 where id = $1`, id)
	}
	set(t, s, `update capability_trace set priority = 0.01 where id = any($1)`, []uuid.UUID{keep["only failure of its path"], keep["best of its path"]})
	young := ran(t, s, capability.Capability{}, "", true, uuid.Nil)
	keep["young"] = young
	set(t, s, `update capability_trace set created_at = now() + interval '80 days' where id = $1`, young)
	set(t, s, `update workflow_execution set started_at = now() + interval '80 days', finished_at = now() + interval '80 days' where workflow_id = $1`, young)
	ask := policy.Approval{ID: uuid.New(), WorkflowID: gone["without capability"], Kind: policy.ForRun, CreatedAt: time.Now()}
	if err := s.AddApproval(ctx, ask, ""); err != nil {
		t.Fatal(err)
	}

	const all = 4 + store.SurprisesKept + 3 + 3 // that have ended and are old, with logs
	does(t, jobs.Retain(s, in(6*day)), "0 traces, 0 runs and the logs of 0 dropped")
	does(t, jobs.Retain(s, in(8*day)), fmt.Sprintf("0 traces, 0 runs and the logs of %d dropped", all-1))
	does(t, jobs.Retain(s, in(91*day)), fmt.Sprintf("%d traces, %d runs and the logs of 1 dropped", len(gone), len(gone)))
	does(t, jobs.Retain(s, in(91*day)), "0 traces, 0 runs and the logs of 0 dropped")
	for name, id := range keep {
		if _, err := s.Run(ctx, id); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Trace(ctx, id); err != nil && name != "open" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, id := range gone {
		if _, err := s.Run(ctx, id); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	if _, err := s.Approval(ctx, ask.ID); err == nil {
		t.Error("the approval is still there")
	}
}

func TestGraph(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	k := jobs.Graph(s)
	does(t, k, "no edges yet")
	for _, e := range [][2]string{{"a:x", "a:y"}, {"a:y", "a:z"}, {"b:x", "b:y"}} {
		if err := s.AddEdge(ctx, capability.NewEdge(e[0], e[1], capability.Sequence, capability.ObservedEdge)); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range [][2]string{{"one", "a:x"}, {"one", "a:y"}, {"two", "b:x"}, {"two", "b:y"}} {
		if err := s.AddEdge(ctx, capability.NewEdge(e[0], e[1], capability.Contains, capability.ObservedEdge)); err != nil {
			t.Fatal(err)
		}
	}
	does(t, k, "version 1: 7 nodes, 2 communities")
	does(t, k, "version 1 is up to date")
	var got jobs.Snapshot
	kept, err := s.GraphSnapshot(ctx)
	if err != nil || kept.Version != 1 || kept.At.IsZero() {
		t.Fatalf("%+v, %v", kept, err)
	}
	if err := json.Unmarshal(kept.Results, &got); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, r := range got.PageRank {
		sum += r
	}
	if math.Abs(sum-1) > 1e-6 || got.PageRank["a:z"] <= got.PageRank["a:x"] || got.Communities["a:x"] != got.Communities["a:z"] || got.Communities["a:x"] == got.Communities["b:x"] {
		t.Errorf("%+v", got)
	}
	if c := got.Clusters; len(c) != 6 || c["one"] != c["a:x"] || c["one"] == c["two"] || c["two"] != c["b:y"] {
		t.Errorf("clusters %v", c)
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	c := saved(t, s, "work")
	first := ran(t, s, c, "p", true, uuid.Nil)
	for range 9 {
		ran(t, s, c, "p", true, uuid.Nil)
	}
	before, err := s.Capability(ctx, "work")
	if err != nil {
		t.Fatal(err)
	}
	k := jobs.Replay(s, in(0))
	does(t, k, "10 of 10 runs replayed, 10 have another priority")
	does(t, k, "10 of 10 runs replayed, 0 have another priority")
	tr, err := s.Trace(ctx, first)
	if err != nil {
		t.Fatal(err)
	}
	// It was new: 1. Ten successes later success is expected with 1 - 0.5·0.9^10.
	if want := 0.5 * math.Pow(0.9, 10); math.Abs(tr.Priority-want) > 1e-6 {
		t.Errorf("priority %v, want %v", tr.Priority, want)
	}
	after, err := s.Capability(ctx, "work")
	if err != nil || after.UsageCount != before.UsageCount || after.Learning.Paths[0].Count != before.Learning.Paths[0].Count || after.Learning.Paths[0].SuccessRate != before.Learning.Paths[0].SuccessRate {
		t.Errorf("the replay was learnt from: %+v, %+v, %v", before.Learning, after.Learning, err)
	}
}
