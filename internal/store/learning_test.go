package store_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/store/storetest"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// equalJSON compares raw JSON by its compact text.
var equalJSON = cmp.Comparer(func(a, b json.RawMessage) bool {
	return strings.ReplaceAll(string(a), " ", "") == strings.ReplaceAll(string(b), " ", "")
})

// teaching is a learner that reads the evidence of tr, has it changed, and keeps it.
func teaching(tr trace.Trace, change func(*capability.Lesson)) func(context.Context, *store.Tx) error {
	return func(ctx context.Context, tx *store.Tx) error {
		e, _, err := tx.ReadLearning(ctx, tr.Run.Capability, tr.CapabilityVersion, nil)
		if err != nil {
			return err
		}
		l := capability.Lesson{Run: tr.Run.ID, Evidence: e}
		change(&l)
		tx.KeepLesson(l)
		return nil
	}
}

func TestReadLearning(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	withTools(t, s, "read")
	c := saved(t, s, "work", "a")
	tr := finished(begun(t, s), newCall("n1", 1, 0, "fs:read"), newCall("n2", 1, 1, "fs:gone"))
	tr.Run.Capability, tr.CapabilityVersion = c.ID, 1
	err := s.FinishRun(ctx, tr, func(ctx context.Context, tx *store.Tx) error {
		e, seen, err := tx.ReadLearning(ctx, c.ID, 1, []tool.ID{"fs:read", "fs:gone"})
		if err != nil || e.Version != 1 || e.Head != 1 || e.Proven || e.State != capability.Candidate || len(seen) != 1 {
			t.Errorf("evidence %+v, observed %v, %v", e, seen, err)
		}
		if e, _, err := tx.ReadLearning(ctx, uuid.Nil, 0, nil); e != nil || err != nil {
			t.Errorf("no capability: %+v, %v", e, err)
		}
		if _, _, err := tx.ReadLearning(ctx, uuid.New(), 1, nil); err == nil {
			t.Error("evidence of a capability that no trace names")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	orphan := finished(begun(t, s))
	orphan.Run.Capability = uuid.New()
	if err := s.FinishRun(ctx, orphan, func(ctx context.Context, tx *store.Tx) error {
		e, _, err := tx.ReadLearning(ctx, orphan.Run.Capability, 0, nil)
		if e != nil {
			t.Errorf("evidence of a capability that is gone: %+v", e)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestKeepLesson: a parent and two runs of one child, in one transaction.
func TestKeepLesson(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	withTools(t, s, "read")
	parent, child := saved(t, s, "parent", "p"), saved(t, s, "child", "c")
	if err := s.AddDependency(ctx, parent.ID, child.ID, capability.Contains); err != nil {
		t.Fatal(err)
	}
	traces := []trace.Trace{finished(begun(t, s), newCall("n1", 1, 0, "fs:read")), finished(begun(t, s)), finished(begun(t, s))}
	for i := range traces {
		traces[i].Run.Capability, traces[i].CapabilityVersion = child.ID, 1
		if i > 0 {
			traces[i].Run.Parent = traces[0].Run.ID
		}
	}
	traces[0].Run.Capability = parent.ID
	shape, err := tool.ShapeOf(json.RawMessage(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time nothing is left to do
		err = s.FinishRuns(ctx, traces, func(ctx context.Context, tx *store.Tx) error {
			for _, tr := range traces {
				learner := teaching(tr, func(l *capability.Lesson) {
					l.Priority = 0.25
					l.Evidence.UsageCount++
					l.Evidence.Learning.Paths = append(l.Evidence.Learning.Paths, capability.PathStats{Hash: "h", Path: []string{"n1"}})
					l.Observed = map[tool.ID]tool.Observed{"fs:read": {Shape: shape, Count: 1}}
					l.Invocations = []capability.Invocation{{ID: "read#0", Tool: "fs:read"}}
				})
				if err := learner(ctx, tx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p, c := named(t, s, "parent"), named(t, s, "child")
	if p.UsageCount != 1 || c.UsageCount != 2 || len(c.Learning.Paths) != 2 || len(p.ToolInvocations) != 1 {
		t.Errorf("parent %+v\nchild %+v", p, c)
	}
	edges, err := s.Edges(ctx)
	if err != nil || len(edges) != 1 || edges[0].Count != 2 || edges[0].From != parent.ID.String() {
		t.Errorf("edges %+v, %v", edges, err)
	}
	seen, err := s.ObservedSchemas(ctx)
	if err != nil || len(seen) != 1 || seen["fs:read"].Count != 1 || seen["fs:read"].Shape.Required[0] != "a" {
		t.Errorf("observed %+v, %v", seen, err)
	}
	stored, err := s.Trace(ctx, traces[1].Run.ID)
	if err != nil || stored.Priority != 0.25 {
		t.Errorf("trace %+v, %v", stored, err)
	}
}

func TestAddDependencyRefusesCircles(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	a, b, c := saved(t, s, "a", "a"), saved(t, s, "b", "b"), saved(t, s, "c", "c")
	for _, pair := range [][2]capability.Capability{{a, b}, {b, c}, {a, b}} {
		if err := s.AddDependency(ctx, pair[0].ID, pair[1].ID, capability.Contains); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []capability.EdgeType{capability.Contains, capability.Dependency} {
		err := s.AddDependency(ctx, c.ID, a.ID, kind)
		wantCode(t, err, fault.InvalidInput)
		if !strings.HasSuffix(err.Error(), "would close a circle: c → a → b → c") {
			t.Errorf("the circle is not named: %v", err)
		}
	}
	if err := s.AddDependency(ctx, c.ID, a.ID, capability.Sequence); err != nil {
		t.Errorf("a sequence may be a circle: %v", err)
	}
	wantCode(t, s.AddDependency(ctx, a.ID, a.ID, capability.Contains), fault.InvalidInput)
	wantCode(t, s.AddDependency(ctx, a.ID, uuid.New(), capability.Contains), fault.UnknownCapability)
	edges, err := s.Edges(ctx)
	if err != nil || len(edges) != 3 {
		t.Errorf("%d edges, %v", len(edges), err)
	}
}

func TestObservedEdgesOutrankGuesses(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	edge := func(source capability.EdgeSource, coverage tool.Coverage, field string) capability.Edge {
		e := capability.NewEdge("s:a", "s:b", capability.Provides, source)
		e.Coverage = coverage
		if field != "" {
			e.FieldMapping = []tool.FieldMapping{{From: field, To: field, TypeCompatible: true}}
		}
		return e
	}
	want := func(step string, source capability.EdgeSource, coverage tool.Coverage, field string, count int64, weight float64) {
		t.Helper()
		edges, err := s.Edges(ctx)
		if err != nil || len(edges) != 1 {
			t.Fatalf("%s: %v, %v", step, edges, err)
		}
		w := edge(source, coverage, field)
		w.Count, w.Weight = count, weight
		if diff := cmp.Diff(w, edges[0]); diff != "" {
			t.Errorf("%s: %s", step, diff)
		}
	}
	guess := func(e capability.Edge) {
		t.Helper()
		if err := s.SaveGuesses(ctx, []capability.Edge{e}); err != nil {
			t.Fatal(err)
		}
	}
	guess(edge(capability.InferredEdge, tool.Optional, "x"))
	guess(edge(capability.InferredEdge, tool.Strict, "guess"))
	want("guessed", capability.InferredEdge, tool.Strict, "guess", 0, capability.Weight(capability.Provides, capability.InferredEdge))
	for range 2 {
		if err := s.AddEdge(ctx, edge(capability.ObservedEdge, tool.Partial, "seen")); err != nil {
			t.Fatal(err)
		}
	}
	want("observed", capability.ObservedEdge, tool.Partial, "seen", 2, 0.7)
	guess(edge(capability.InferredEdge, tool.Strict, "guess"))
	want("guessed again", capability.ObservedEdge, tool.Partial, "seen", 2, 0.7)
	if err := s.AddEdge(ctx, edge(capability.ObservedEdge, tool.Strict, "")); err != nil {
		t.Fatal(err)
	}
	want("observed whole", capability.ObservedEdge, tool.Strict, "seen", 3, 0.7)
	wantCode(t, s.SaveGuesses(ctx, []capability.Edge{capability.NewEdge("s:a", "s:b", capability.Contains, capability.InferredEdge)}), fault.InvalidInput)
	wantCode(t, s.SaveGuesses(ctx, []capability.Edge{edge(capability.ObservedEdge, "", "")}), fault.InvalidInput)
	wantCode(t, s.AddEdge(ctx, capability.NewEdge("s:a", "s:a", capability.Sequence, capability.ObservedEdge)), fault.InvalidInput)
	if err := s.SaveGuesses(ctx, nil); err != nil {
		t.Error(err)
	}
}

func TestWorkspacesDoNotShareWhatIsLearnt(t *testing.T) {
	t.Parallel()
	one, two := storetest.New(t), storetest.New(t)
	a, b := saved(t, one, "work", "same"), saved(t, two, "work", "same")
	if a.ID == b.ID {
		t.Error("two workspaces share a capability")
	}
	proves(t, one, a)
	if c := named(t, two, "work"); c.UsageCount != 0 || c.State != capability.Candidate {
		t.Errorf("the other workspace has learnt: %+v", c)
	}
	if _, err := two.Capability(t.Context(), a.ID.String()); fault.CodeOf(err) != fault.UnknownCapability {
		t.Errorf("another workspace's capability: %v", err)
	}
}
