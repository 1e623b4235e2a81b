package learn_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/learn"
	"github.com/pml-run/pml/internal/trace"
)

// TestReferenceProgram runs the program of reference three times: the file is not
// there, then it is, twice.
func TestReferenceProgram(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if b.cap.State != capability.Candidate || b.cap.State.Discoverable() {
		t.Fatalf("state %s before the first run", b.cap.State)
	}
	first := b.finish(t, b.creates(true, 40), learn.Options{})
	if first.Before != capability.Candidate || first.After != capability.Active || !first.Save || formatted(first.Priority) != "1.00" {
		t.Errorf("first run: %+v", first)
	}
	if second := b.finish(t, b.reads(true, 10), learn.Options{}); formatted(second.Priority) != "1.00" {
		t.Errorf("second run, a new path: %+v", second)
	}
	third := b.reads(true, 20)
	if r := b.finish(t, third, learn.Options{}); formatted(r.Priority) != "0.45" { // 1 − 0.55
		t.Errorf("third run: %+v", r)
	}
	c := b.now(t)
	want := capability.Learning{
		Paths: []capability.PathStats{
			{Path: []string{"n1", "d1", "n3", "n4"}, Count: 1, SuccessRate: 0.55, AvgDurationMS: 40},
			{Path: []string{"n1", "d1", "n2"}, Count: 2, SuccessRate: 0.595, AvgDurationMS: 11},
		},
		Decisions: []capability.DecisionStats{
			{NodeID: "d1", Outcome: "false", Count: 1, SuccessRate: 0.55},
			{NodeID: "d1", Outcome: "true", Count: 2, SuccessRate: 0.595},
		},
	}
	got := c.Learning
	if got.DominantPath != got.Paths[0].Hash { // none has three runs: the first seen
		t.Errorf("dominant path %s", got.DominantPath)
	}
	got.DominantPath, got.Paths[0].Hash, got.Paths[1].Hash = "", "", ""
	if diff := cmp.Diff(want, got, cmp.Comparer(near)); diff != "" {
		t.Error(diff)
	}
	if c.UsageCount != 3 || c.SuccessCount != 3 || c.SuccessRate != 1 || !near(c.AvgDurationMS, 35.3) {
		t.Errorf("counts %+v", c)
	}
	var tools []string
	for _, i := range c.ToolInvocations {
		tools = append(tools, i.ID)
	}
	if strings.Join(tools, " ") != "stat#0 read#0" || len(c.ToolsUsed) != 4 {
		t.Errorf("invocations %v, tools %v", tools, c.ToolsUsed)
	}
	b.finish(t, b.reads(true, 10), learn.Options{}) // the third on this path
	if c = b.now(t); c.Learning.DominantPath != third.PathHash {
		t.Error("the path with three runs is not the dominant one")
	}
	stored, err := b.store.Trace(t.Context(), third.Run.ID)
	if err != nil || formatted(stored.Priority) != "0.45" || stored.Run.Capability != c.ID || stored.CapabilityVersion != 1 {
		t.Errorf("stored trace %+v, %v", stored, err)
	}
}

// TestRunsInParallel: each of many runs at once counts, and none twice.
func TestRunsInParallel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const runs = 64
	atOnce(t, runs, func(i int) error {
		tr := b.reads(true, 10)
		if i%2 == 1 {
			tr = b.creates(true, 10)
		}
		_, err := b.tryFinish(t.Context(), tr, learn.Options{})
		if err == nil && i%8 == 0 { // a caller that lost the answer asks again
			_, err = b.tryFinish(t.Context(), tr, learn.Options{})
		}
		return err
	})
	c := b.now(t)
	if c.UsageCount != runs || c.SuccessCount != runs || len(c.Learning.Paths) != 2 {
		t.Fatalf("usage %d, successes %d, %d paths", c.UsageCount, c.SuccessCount, len(c.Learning.Paths))
	}
	for _, p := range c.Learning.Paths {
		if p.Count != runs/2 {
			t.Errorf("path %v counted %d times, want %d", p.Path, p.Count, runs/2)
		}
	}
	seen, err := b.store.ObservedSchemas(t.Context())
	if err != nil || seen["fs:stat"].Count != runs || seen["fs:read"].Count != runs/2 {
		t.Errorf("observed %+v, %v", seen, err)
	}
}

// TestPriorities brings real rows to where the wanted values hold.
func TestPriorities(t *testing.T) {
	t.Parallel()
	b := setup(t)
	last := func(tr trace.Trace) string { return formatted(b.finish(t, tr, learn.Options{}).Priority) }
	wants := func(what, want string, tr trace.Trace) {
		t.Helper()
		if got := last(tr); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	wants("a path never seen", "1.00", b.creates(false, 10))
	for range 21 { // to 1 − 0.5·0.9²¹
		b.finish(t, b.reads(true, 10), learn.Options{})
	}
	wants("the dominant path at 0.95 succeeds", "0.05", b.reads(true, 10))
	wants("the dominant path at 0.95 fails", "0.95", b.reads(false, 10))
	for range 20 {
		b.finish(t, b.reads(true, 10), learn.Options{})
	}
	for _, success := range []bool{true, true, false} { // with the first failure: to 0.499, and 4 of 47 runs
		b.finish(t, b.creates(success, 10), learn.Options{})
	}
	wants("a rare path at 0.50 succeeds", "0.60", b.creates(true, 10))
	wants("a slow run of a path at 0.98", "0.22", b.reads(true, 100))
	surprises, err := b.store.HighPriorityTraces(t.Context(), b.cap.ID, 3)
	if err != nil || len(surprises) != 3 {
		t.Fatalf("%d surprises, %v", len(surprises), err)
	}
	for i, want := range []string{"1.00", "1.00", "0.95"} {
		if got := formatted(surprises[i].Priority); got != want {
			t.Errorf("surprise %d has the priority %s, want %s", i, got, want)
		}
	}
}

func TestRunsThatDoNotTeach(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cached := b.reads(true, 1)
	cached.CacheHit, cached.Calls = "execution", nil
	cancelled := b.reads(false, 1)
	cancelled.Run.Status = trace.CancelledRun
	for name, tr := range map[string]trace.Trace{"cached": cached, "cancelled": cancelled} {
		r := b.finish(t, tr, learn.Options{})
		if c := b.now(t); c.UsageCount != 0 || len(c.Learning.Paths) != 0 || c.State != capability.Candidate || r.Priority != 0 {
			t.Errorf("%s: %+v, result %+v", name, c, r)
		}
	}
	guessed := b.reads(true, 10)
	trace.FoldCalls(guessed.Calls).Put(&guessed)
	r := b.finish(t, guessed, learn.Options{})
	if c := b.now(t); c.UsageCount != 1 || len(c.Learning.Paths) != 0 || c.State != capability.Active || r.Priority != 1 {
		t.Errorf("without marks: %+v, result %+v", c, r)
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	caught := b.run("n1 d1=true n2", true, 10, "n1", "n2!")
	r := b.finish(t, caught, learn.Options{})
	if r.Save || len(r.ToolFailures) != 1 || r.ToolFailures[0] != (capability.ToolFailure{Tool: "fs:read", NodeID: "n2", Error: "broken"}) {
		t.Errorf("caught failure: %+v", r)
	}
	if c := b.now(t); c.State != capability.Candidate {
		t.Errorf("state %s after a caught failure", c.State)
	}
	r = b.finish(t, b.run("n1 d1=true n2", true, 10, "n1", "n2!"), learn.Options{AllowPartial: true})
	if c := b.now(t); c.State != capability.Active || !c.Partial || !r.Partial {
		t.Errorf("allowed failure: %s, partial %t", c.State, c.Partial)
	}
	b.finish(t, b.reads(true, 10), learn.Options{})
	if c := b.now(t); c.Partial {
		t.Error("still partial after a full success")
	}
	for i := range 3 {
		if c := b.now(t); c.State != capability.Active {
			t.Errorf("state %s after %d failures", c.State, i)
		}
		b.finish(t, b.reads(false, 10), learn.Options{})
	}
	if c := b.now(t); c.State != capability.Degraded || c.StateReason != "3 failures in a row" || c.ConsecutiveFailures != 3 {
		t.Errorf("state %s (%s)", c.State, c.StateReason)
	}
	if r := b.finish(t, b.reads(true, 10), learn.Options{}); r.After != capability.Active {
		t.Errorf("state %s after a full success", r.After)
	}
}

func TestEdgesAreStored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.finish(t, b.creates(true, 10), learn.Options{})
	b.finish(t, b.creates(true, 10), learn.Options{})
	edges, err := b.store.Edges(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]capability.Edge{}
	for _, e := range edges {
		got[strings.Replace(e.From, b.cap.ID.String(), "it", 1)+" "+string(e.Type)+" "+e.To] = e
	}
	for _, want := range []string{"fs:stat sequence fs:create", "fs:create sequence fs:write", "it contains fs:write"} {
		e, ok := got[want]
		if !ok || e.Count != 2 || e.Source != capability.ObservedEdge || e.Weight != capability.Weight(e.Type, e.Source) {
			t.Errorf("%s: %+v", want, e)
		}
	}
	if len(got) != 5 {
		t.Errorf("edges %v", got)
	}
}

// TestAnotherVersion: a changed program under the same name takes over when it has
// succeeded, and spoils nothing while it has not.
func TestAnotherVersion(t *testing.T) {
	t.Parallel()
	one := setup(t)
	one.finish(t, one.reads(true, 10), learn.Options{})
	if _, err := one.store.MoveCapability(t.Context(), "read_or_create", capability.Event{Kind: capability.Proved}); err != nil {
		t.Fatal(err)
	}
	changed := reference("read_or_create")
	changed.HashExact, changed.HashShape = "exact-2", "shape-2"
	c, _, err := one.store.UpsertCandidate(t.Context(), changed)
	if err != nil || c.Version != 2 {
		t.Fatalf("version %d, %v", c.Version, err)
	}
	two := bundle{one.store, c}
	for range 3 {
		if r := two.finish(t, two.reads(false, 10), learn.Options{}); r.Activated || r.After != capability.Promoted {
			t.Errorf("a failed run: %+v", r)
		}
	}
	if c := one.now(t); c.Version != 1 || c.UsageCount != 1 || c.FailureCount != 0 || c.ConsecutiveFailures != 0 {
		t.Errorf("the head has failed with it: %+v", c)
	}
	if r := two.finish(t, two.reads(true, 10), learn.Options{}); !r.Activated || r.After != capability.Active || formatted(r.Priority) != "0.64" {
		t.Errorf("the first success: %+v", r)
	}
	if c := one.now(t); c.Version != 2 || c.UsageCount != 2 || len(c.Learning.Paths) != 1 || c.Learning.Paths[0].Count != 4 {
		t.Errorf("after the first success: %+v", c)
	}
	one.finish(t, one.creates(true, 10), learn.Options{}) // the old program once more
	if c := one.now(t); c.Version != 2 || c.UsageCount != 2 || len(c.Learning.Paths) != 1 {
		t.Errorf("after a run of the old version: %+v", c)
	}
	if err := one.store.RollbackCapability(t.Context(), "read_or_create", 1); err != nil {
		t.Fatal(err)
	}
	if c := one.now(t); c.Version != 1 || len(c.Learning.Paths) != 2 {
		t.Errorf("the old version has learnt %+v", c.Learning)
	}
}

// BenchmarkFinishRun stores runs of five calls by turns with and without learning,
// so that both meet the same machine.
func BenchmarkFinishRun(b *testing.B) {
	bundle := setup(b)
	var with, without []time.Duration
	finish := func(learning bool) time.Duration {
		tr := bundle.run("n1 d1=false n3 n4", true, 40, "n1", "n3", "n4", "n1", "n2")
		for i := range tr.Calls {
			tr.Calls[i].Occurrence = 1 + i/3
		}
		open := tr.Run
		open.Status = trace.Running
		if err := bundle.store.BeginRun(b.Context(), open); err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		learner := applying(learn.Prepare(tr, &bundle.cap, learn.Options{}))
		if !learning {
			learner = nil
		}
		if err := bundle.store.FinishRun(b.Context(), tr, learner); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	for b.Loop() {
		with = append(with, finish(true))
		without = append(without, finish(false))
	}
	slices.Sort(with)
	slices.Sort(without)
	report := func(list []time.Duration, percent int, unit string) {
		b.ReportMetric(float64(list[len(list)*percent/100])/float64(time.Millisecond), unit)
	}
	report(with, 50, "p50-ms")
	report(with, 99, "p99-ms")
	report(without, 50, "without-p50-ms")
}
