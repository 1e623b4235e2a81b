package learn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/learn"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/store/storetest"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// began is when the first call of every run of the tests starts.
var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// reference is the program
//
//	const file = await mcp.fs.stat({ path });
//	if (file.exists) return await mcp.fs.read({ path });
//	await mcp.fs.create({ path });
//	await mcp.fs.write({ path, content: "" });
func reference(name string) capability.Capability {
	task := func(id, name string) structure.Node {
		return structure.Node{ID: id, Type: structure.Task, Tool: "fs:" + name}
	}
	return capability.Capability{
		Name: name, Intent: "Read the file, or create it when it is not there", HashExact: "exact-" + name, HashShape: "shape-" + name,
		Source: capability.Source{Type: capability.CodeSource, Code: "const file = await mcp.fs.stat({ path });"},
		Structure: structure.Structure{
			Nodes: []structure.Node{
				task("n1", "stat"),
				{ID: "d1", Type: structure.Decision, Condition: "file.exists"},
				task("n2", "read"),
				task("n3", "create"),
				task("n4", "write"),
			},
			Edges: []structure.Edge{
				{From: "n1", To: "d1", Type: structure.Sequence},
				{From: "d1", To: "n2", Type: structure.Conditional, Outcome: "true"},
				{From: "d1", To: "n3", Type: structure.Conditional, Outcome: "false"},
				{From: "n3", To: "n4", Type: structure.Sequence},
				{From: "n1", To: "n2", Type: structure.Provides, Coverage: "optional", Via: "guard"},
			},
		},
	}
}

// bundle is a store with one capability and the catalog of its server.
type bundle struct {
	store *store.Store
	cap   capability.Capability
}

func setup(tb testing.TB) bundle {
	tb.Helper()
	s := storetest.New(tb)
	var tools []tool.Tool
	for _, name := range []string{"stat", "read", "create", "write", "list"} {
		tools = append(tools, tool.Tool{ID: tool.MakeID("fs", name), InputSchema: json.RawMessage(`{"type":"object"}`), SchemaHash: "1"})
	}
	if _, err := s.SaveCatalog(tb.Context(), "fs", tools); err != nil {
		tb.Fatal(err)
	}
	c, created, err := s.UpsertCandidate(tb.Context(), reference("read_or_create"))
	if err != nil || !created {
		tb.Fatalf("created %t, %v", created, err)
	}
	return bundle{s, c}
}

// calls makes one call after the other of the nodes' tools; "n2!" fails.
func (b bundle) calls(nodes ...string) []trace.Call {
	var out []trace.Call
	for i, node := range nodes {
		node, failed := strings.CutSuffix(node, "!")
		n, _ := b.cap.Structure.Node(node)
		c := trace.Call{
			NodeID: node, Occurrence: 1, Seq: i, Tool: tool.ID(n.Tool), Status: trace.CallOK, Args: json.RawMessage(`{"path":"a"}`),
			ArgsHash: fmt.Sprint("h", i), Result: json.RawMessage(`{"exists":true}`),
			StartedAt: began.Add(time.Duration(i) * 10 * time.Millisecond), Duration: 5 * time.Millisecond,
		}
		if failed {
			c.Status, c.Result, c.Error = trace.CallError, nil, fault.New(fault.ToolFailed, "broken")
		}
		out = append(out, c)
	}
	return out
}

// run is a finished run of the bundle's capability.
func (b bundle) run(path string, success bool, ms int, nodes ...string) trace.Trace {
	r := trace.Run{
		ID: uuid.Must(uuid.NewV7()), Capability: b.cap.ID, Intent: "read it", StartedAt: began, FinishedAt: began.Add(time.Second),
		Duration: time.Duration(ms) * time.Millisecond, Status: trace.Succeeded,
	}
	if !success {
		r.Status, r.Error = trace.Failed, fault.New(fault.RuntimeError, "no")
	}
	var records []trace.Record
	for i, word := range strings.Fields(path) {
		id, outcome, _ := strings.Cut(word, "=")
		kind := trace.CallEvent
		if outcome != "" {
			kind = trace.DecisionSet
		}
		records = append(records, trace.Record{Type: kind, Seq: i, ID: id, Outcome: outcome})
	}
	t := trace.Trace{Run: r, CapabilityVersion: b.cap.Version, Calls: b.calls(nodes...), Success: success}
	trace.Fold(b.cap.Structure, records).Put(&t)
	for _, c := range t.Calls {
		t.ToolsUsed = append(t.ToolsUsed, c.Tool)
	}
	return t
}

// reads and creates are the two ways through the reference program.
func (b bundle) reads(success bool, ms int) trace.Trace {
	return b.run("n1 d1=true n2", success, ms, "n1", "n2")
}

func (b bundle) creates(success bool, ms int) trace.Trace {
	return b.run("n1 d1=false n3 n4", success, ms, "n1", "n3", "n4")
}

// finish stores a run and learns from it.
func (b bundle) finish(tb testing.TB, t trace.Trace, o learn.Options) learn.Result {
	tb.Helper()
	r, err := b.tryFinish(tb.Context(), t, o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func (b bundle) tryFinish(ctx context.Context, t trace.Trace, o learn.Options) (learn.Result, error) {
	open := t.Run
	open.Status, open.Error = trace.Running, nil
	if err := b.store.BeginRun(ctx, open); err != nil {
		return learn.Result{}, err
	}
	var result learn.Result
	study := learn.Prepare(t, &b.cap, o)
	err := b.store.FinishRun(ctx, t, func(ctx context.Context, tx *store.Tx) error {
		var err error
		result, err = study.Apply(ctx, tx)
		return err
	})
	return result, err
}

// atOnce calls f so many times at the same time; none of them may fail.
func atOnce(t *testing.T, times int, f func(i int) error) {
	t.Helper()
	errs := make([]error, times)
	var wg sync.WaitGroup
	for i := range times {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// now returns the capability as it is stored.
func (b bundle) now(tb testing.TB) capability.Capability {
	tb.Helper()
	c, err := b.store.Capability(tb.Context(), b.cap.ID.String())
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

func formatted(f float64) string { return fmt.Sprintf("%.2f", f) }

func applying(s *learn.Study) func(context.Context, *store.Tx) error {
	return func(ctx context.Context, tx *store.Tx) error {
		_, err := s.Apply(ctx, tx)
		return err
	}
}
