package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/store/storetest"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// wantCode fails the test unless err carries the code.
func wantCode(tb testing.TB, err error, code fault.Code) {
	tb.Helper()
	if got := fault.CodeOf(err); got != code {
		tb.Fatalf("error %v has code %q, want %q", err, got, code)
	}
}

func newCall(node string, occurrence, seq int, id tool.ID) trace.Call {
	result := json.RawMessage(fmt.Sprintf(`{"text": "call %d"}`, seq))
	return trace.Call{
		NodeID: node, Occurrence: occurrence, Seq: seq, Tool: id, Status: trace.CallOK,
		Args: json.RawMessage(fmt.Sprintf(`{"path": "f%d"}`, seq)), ArgsHash: fmt.Sprint("h", seq),
		Result: result, Bytes: int64(len(result)), StartedAt: moment().Add(time.Duration(seq) * time.Millisecond), Duration: 5 * time.Millisecond,
	}
}

// finished returns a trace of r that succeeded with calls.
func finished(r trace.Run, calls ...trace.Call) trace.Trace {
	r.Status, r.FinishedAt, r.Duration = trace.Succeeded, moment(), 20*time.Millisecond
	r.Result, r.Logs, r.LeaseUntil = json.RawMessage(`{"answer":42}`), []string{"one", "two"}, time.Time{}
	t := trace.Trace{
		Run: r, ExecutedPath: []string{"n1", "n2"}, PathHash: "p", Calls: calls, Success: true, Priority: 0.5,
		Decisions: []trace.Decision{{NodeID: "d1", Condition: "a > 1", Outcome: "true"}},
	}
	for _, c := range calls {
		t.ToolsUsed = append(t.ToolsUsed, c.Tool)
	}
	return t
}

// begun returns a run that is stored.
func begun(tb testing.TB, s *store.Store) trace.Run {
	tb.Helper()
	r := newRun(tb)
	if err := s.BeginRun(tb.Context(), r); err != nil {
		tb.Fatal(err)
	}
	return r
}

// withTools saves a catalog of one server.
func withTools(tb testing.TB, s *store.Store, names ...string) []tool.Tool {
	tb.Helper()
	var tools []tool.Tool
	for _, name := range names {
		tools = append(tools, tool.Tool{ID: tool.MakeID("fs", name), Description: "does " + name, InputSchema: json.RawMessage(`{"type": "object"}`), SchemaHash: "1"})
	}
	if _, err := s.SaveCatalog(tb.Context(), "fs", tools); err != nil {
		tb.Fatal(err)
	}
	return tools
}

func TestFinishRun(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	withTools(t, s, "read", "write")
	failed := newCall("n2", 1, 2, "fs:write")
	failed.Status, failed.Result, failed.Error = trace.CallError, nil, fault.New(fault.ToolFailed, "disk full")
	failed.Bytes = 0
	want := finished(begun(t, s), newCall("n1", 1, 1, "fs:read"), failed)
	learnt := 0
	learn := func(context.Context, *store.Tx) error { learnt++; return nil }
	for range 2 { // a repetition changes nothing
		if err := s.FinishRun(ctx, want, learn); err != nil {
			t.Fatal(err)
		}
	}
	if learnt != 1 {
		t.Errorf("learnt %d times, want once", learnt)
	}
	got, err := s.Trace(ctx, want.Run.ID)
	if err != nil {
		t.Fatal(err)
	}
	result, expires, err := s.RunResult(ctx, want.Run.ID)
	if err != nil || string(result) != string(want.Run.Result) || time.Until(expires) <= 0 {
		t.Errorf("result %s until %s, %v", result, expires, err)
	}
	want.Run.Result = nil
	if diff := cmp.Diff(want, got, equalTimes); diff != "" {
		t.Errorf("trace (-want +got):\n%s", diff)
	}
	stats, err := s.ToolStatistics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	wantStats := []store.ToolStatistics{{ID: "fs:read", Calls: 1, TotalMS: 5}, {ID: "fs:write", Calls: 1, Failures: 1, TotalMS: 5}}
	if diff := cmp.Diff(wantStats, stats); diff != "" {
		t.Errorf("statistics (-want +got):\n%s", diff)
	}
}

func TestFinishRunRefusesOpenAndUnknown(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	open := finished(begun(t, s))
	open.Run.Status = trace.Running
	wantCode(t, s.FinishRun(t.Context(), open, nil), fault.InvalidInput)
	wantCode(t, s.FinishRun(t.Context(), finished(newRun(t)), nil), fault.NotFound)
}

func TestFailedLearningUndoesAll(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	withTools(t, s, "read")
	tr := finished(begun(t, s), newCall("n1", 1, 1, "fs:read"))
	broken := errors.New("broken")
	if err := s.FinishRun(ctx, tr, func(context.Context, *store.Tx) error { return broken }); !errors.Is(err, broken) {
		t.Fatalf("got %v, want the learner's error", err)
	}
	r, err := s.Run(ctx, tr.Run.ID)
	if err != nil || r.Status != trace.Running {
		t.Errorf("run is %s, %v; want it running still", r.Status, err)
	}
	if stats, err := s.ToolStatistics(ctx); err != nil || len(stats) != 0 {
		t.Errorf("statistics %v, %v; want none", stats, err)
	}
}

func TestFinishRunsWithParent(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	parent, child := begun(t, s), newRun(t)
	child.Parent = parent.ID
	if err := s.BeginRun(ctx, child); err != nil {
		t.Fatal(err)
	}
	if err := s.FinishRun(ctx, finished(child), nil); err == nil {
		t.Fatal("a trace was stored whose parent has none")
	}
	// The child first: the reference is looked at when all is written.
	if err := s.FinishRuns(ctx, []trace.Trace{finished(child), finished(parent)}, nil); err != nil {
		t.Fatal(err)
	}
	got, err := s.Trace(ctx, child.ID)
	if err != nil || got.Run.Parent != parent.ID {
		t.Errorf("parent %s, %v; want %s", got.Run.Parent, err, parent.ID)
	}
}

func TestBigResult(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	big := newCall("n1", 1, 1, "fs:read")
	big.Result = json.RawMessage(`{"rows":[{"id":1,"name":"x"}],"text":"` + strings.Repeat("lorem ", 40_000) + `"}`)
	big.Bytes = int64(len(big.Result))
	tr := finished(begun(t, s), big)
	if err := s.FinishRun(ctx, tr, nil); err != nil {
		t.Fatal(err)
	}
	got, err := s.Trace(ctx, tr.Run.ID)
	if err != nil || len(got.Calls) != 1 || got.Calls[0].Result != nil || got.Calls[0].Bytes != big.Bytes {
		t.Fatalf("the trace does not have the call cut to its size: %v", err)
	}
	whole, _, err := s.CallResult(ctx, tr.Run.ID, "n1", 1)
	if err != nil || string(whole) != string(big.Result) {
		t.Errorf("result of %d bytes, %v; want %d", len(whole), err, len(big.Result))
	}
	_, _, err = s.CallResult(ctx, tr.Run.ID, "n1", 2)
	wantCode(t, err, fault.NotFound)
}

func TestHostileValues(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	withTools(t, s, "read")
	for name, raw := range map[string]string{
		"nul": `{"a":"x\u0000y"}`, "half pair": `["\ud800", "\udc00x", "\ud83d\ude00"]`, "huge number": `[1e999999, -2E-999999]`,
		"not json": `{"a":`, "bytes": "\"\xff\xfe\"", "escaped backslash": `"\\u0000"`, "deep": strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			r := begun(t, s)
			c := newCall("n1", 1, 1, "fs:read")
			c.Args, c.Result, c.ArgsHash = json.RawMessage(raw), json.RawMessage(raw), ""
			c.Error = fault.New(fault.ToolFailed, "a\x00b\xff")
			tr := finished(r, c)
			tr.Run.Intent, tr.Run.Args = "nul \x00 and \xff", json.RawMessage(raw)
			tr.Run.Logs = []string{"log \x00"}
			if err := s.FinishRun(ctx, tr, nil); err != nil {
				t.Fatal(err)
			}
			got, _, err := s.CallResult(ctx, r.ID, "n1", 1)
			if err != nil || string(got) != raw {
				t.Errorf("result %q, %v; want it as it was", got, err)
			}
		})
	}
}

func TestExamplesAreFew(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	withTools(t, s, "read")
	long := newCall("n9", 1, 0, "fs:read")
	long.Args = json.RawMessage(`"` + strings.Repeat("x", 3000) + `"`)
	first := finished(begun(t, s), long, newCall("n1", 1, 1, "fs:read"), newCall("n1", 2, 1, "fs:read"), newCall("n2", 1, 2, "fs:read"))
	second := finished(begun(t, s), newCall("n1", 1, 2, "fs:read"), newCall("n2", 1, 3, "fs:read"), newCall("n3", 1, 4, "fs:read"))
	for _, tr := range []trace.Trace{first, second} {
		if err := s.FinishRun(ctx, tr, nil); err != nil {
			t.Fatal(err)
		}
	}
	examples, err := s.ToolExamples(ctx, "fs:read")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range examples {
		got = append(got, string(e.Args))
	}
	if want := []string{`{"path": "f1"}`, `{"path": "f2"}`, `{"path": "f3"}`}; !slices.Equal(got, want) {
		t.Errorf("examples %v, want %v", got, want)
	}
}

// TestManyAtOnce runs whole runs from many goroutines over the same tools: none may
// wait for another for ever, and no count may be lost.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	const workers = 64
	s, ctx := storetest.New(t), t.Context()
	withTools(t, s, "a", "b", "c")
	var group sync.WaitGroup
	errs := make([]error, workers)
	for i := range workers {
		r := newRun(t)
		group.Go(func() {
			ids := []tool.ID{"fs:a", "fs:b", "fs:c"}
			if i%2 == 1 {
				slices.Reverse(ids)
			}
			var calls []trace.Call
			for k, id := range ids {
				calls = append(calls, newCall(fmt.Sprint("n", k), 1, k, id))
			}
			errs[i] = errors.Join(s.BeginRun(ctx, r), s.RecordCalls(ctx, r.ID, calls[:1]), s.FinishRun(ctx, finished(r, calls...), nil))
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	stats, err := s.ToolStatistics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range stats {
		if st.Calls != workers {
			t.Errorf("%s has %d calls, want %d", st.ID, st.Calls, workers)
		}
	}
}

func TestUnknownRun(t *testing.T) {
	t.Parallel()
	s, ctx, id := storetest.New(t), t.Context(), uuid.New()
	_, err := s.Run(ctx, id)
	wantCode(t, err, fault.NotFound)
	_, err = s.Trace(ctx, id)
	wantCode(t, err, fault.NotFound)
	_, _, err = s.RunResult(ctx, id)
	wantCode(t, err, fault.NotFound)
	wantCode(t, s.RecordCalls(ctx, id, []trace.Call{newCall("n1", 1, 1, "fs:read")}), fault.NotFound)
}
