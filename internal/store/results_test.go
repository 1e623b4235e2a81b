package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/store/storetest"
	"github.com/pml-run/pml/internal/trace"
)

func TestHeadsSayWhatIsKeptAndUntilWhen(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	r := begun(t, s)
	failed := newCall("n2", 1, 2, "fs:write")
	failed.Status, failed.Result, failed.Bytes, failed.Error = trace.CallError, nil, 0, fault.New(fault.ToolFailed, "disk full")
	done := newCall("n1", 1, 1, "fs:read")
	if err := s.FinishRun(ctx, finished(r, done, failed), nil); err != nil {
		t.Fatal(err)
	}
	run, until, err := s.RunHead(ctx, r.ID)
	if err != nil || run.Status != trace.Succeeded || until.Before(time.Now()) {
		t.Errorf("run: %+v until %s, %v", run, until, err)
	}
	call, until, err := s.CallHead(ctx, r.ID, "n1", 1)
	if err != nil || call.Tool != "fs:read" || call.Status != trace.CallOK || call.Bytes != done.Bytes || until.Before(time.Now()) {
		t.Errorf("call: %+v until %s, %v", call, until, err)
	}
	call, _, err = s.CallHead(ctx, r.ID, "n2", 1)
	if err != nil || call.Status != trace.CallError || call.Error == nil || call.Error.Message != "disk full" {
		t.Errorf("failed call: %+v, %v", call, err)
	}
	later := store.At(s, time.Now().Add(2*time.Hour))
	_, _, err = later.RunHead(ctx, r.ID)
	wantCode(t, err, fault.Expired)
	_, _, err = later.CallHead(ctx, r.ID, "n1", 1)
	wantCode(t, err, fault.Expired)
	_, _, err = s.CallHead(ctx, r.ID, "n1", 2)
	wantCode(t, err, fault.NotFound)
	_, _, err = s.RunHead(ctx, uuid.New())
	wantCode(t, err, fault.NotFound)
}

func TestNodesAndInnerRuns(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	outer := begun(t, s)
	middle, inner := newRun(t), newRun(t)
	middle.Parent, inner.Parent = outer.ID, middle.ID
	for _, r := range []trace.Run{middle, inner} {
		if err := s.BeginRun(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.RecordCalls(ctx, outer.ID, []trace.Call{newCall("n2", 1, 2, "fs:b"), newCall("n2", 2, 3, "fs:b"), newCall("n1", 1, 1, "fs:a")}); err != nil {
		t.Fatal(err)
	}
	if err := s.RecordCalls(ctx, inner.ID, []trace.Call{newCall("n7", 1, 1, "fs:c")}); err != nil {
		t.Fatal(err)
	}
	payload := newCall("n1/blob:0", 1, 1, "fs:a") // stands beside its call and is none
	if err := s.RecordCalls(ctx, outer.ID, []trace.Call{payload}); err != nil {
		t.Fatal(err)
	}
	if got, _, err := s.CallResult(ctx, outer.ID, "n1/blob:0", 1); err != nil || !bytes.Equal(got, payload.Result) {
		t.Errorf("payload: %s, %v", got, err)
	}
	for name, list := range map[string]func(context.Context, uuid.UUID) ([]trace.Call, error){"calls": s.Calls, "journal": s.Journal} {
		if calls, err := list(ctx, outer.ID); err != nil || len(calls) != 3 {
			t.Errorf("%s: %+v, %v", name, calls, err)
		}
	}
	nodes, err := s.CallNodes(ctx, outer.ID, 10)
	want := []trace.Call{{NodeID: "n1", Tool: "fs:a", Occurrence: 1}, {NodeID: "n2", Tool: "fs:b", Occurrence: 2}}
	if diff := cmp.Diff(want, nodes); err != nil || diff != "" {
		t.Errorf("nodes (-want +got), %v:\n%s", err, diff)
	}
	if nodes, err = s.CallNodes(ctx, outer.ID, 1); err != nil || len(nodes) != 1 {
		t.Errorf("one node: %+v, %v", nodes, err)
	}
	for node, want := range map[string]int{"n7": 1, "n2": 0} {
		runs, err := s.InnerRuns(ctx, outer.ID, node)
		if err != nil || len(runs) != want || want > 0 && runs[0].ID != inner.ID {
			t.Errorf("%s: %+v, %v", node, runs, err)
		}
	}
}

// incompressible is a JSON string of about n bytes.
func incompressible(n int) json.RawMessage {
	r := rand.NewChaCha8([32]byte{7})
	b := make([]byte, n)
	_, _ = r.Read(b)
	for i := range b {
		b[i] = 'a' + b[i]%26
	}
	return json.RawMessage(`"` + string(b) + `"`)
}

func TestQuotaDropsTheOldestOfEndedRuns(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	big := incompressible(40 << 10)
	var runs []trace.Run
	for i := range 4 {
		r := newRun(t)
		r.StartedAt = r.StartedAt.Add(time.Duration(i) * time.Minute)
		call := newCall("n1", 1, 1, "fs:read")
		call.Result, call.Bytes = big, int64(len(big))
		if err := s.BeginRun(ctx, r); err != nil {
			t.Fatal(err)
		}
		if err := s.RecordCalls(ctx, r.ID, []trace.Call{call}); err != nil {
			t.Fatal(err)
		}
		if i > 0 { // the oldest is open
			if err := s.FinishRun(ctx, finished(r, call), nil); err != nil {
				t.Fatal(err)
			}
		}
		runs = append(runs, r)
	}
	size, err := store.Query(ctx, s, `select octet_length(result)::text from task_result where workspace_id = '`+store.Workspace(s)+`' limit 1`)
	if err != nil {
		t.Fatal(err)
	}
	var one int64
	if err := json.Unmarshal([]byte(size[0]), &one); err != nil {
		t.Fatal(err)
	}
	for _, quota := range []int64{-1, 4*one + 100} {
		if n, err := s.EnforceQuota(ctx, quota); err != nil || n != 0 {
			t.Errorf("quota %d: %d went, %v", quota, n, err)
		}
	}
	// There is room for two results beside small ones: the open run's and the newest.
	for round, want := range []int64{4, 0} {
		if n, err := s.EnforceQuota(ctx, 2*one+one/2); err != nil || n != want {
			t.Fatalf("round %d: %d went, %v; want %d", round, n, err, want)
		}
	}
	for i, want := range []bool{true, false, false, true} {
		got, _, err := s.CallResult(ctx, runs[i].ID, "n1", 1)
		if want && (err != nil || !bytes.Equal(got, big)) {
			t.Errorf("run %d: %d bytes, %v", i, len(got), err)
		}
		if !want {
			wantCode(t, err, fault.Expired)
			_, _, err = s.RunResult(ctx, runs[i].ID)
			wantCode(t, err, fault.Expired)
		}
	}
	if n, err := s.EnforceQuota(ctx, 1); err != nil || n != 2 {
		t.Errorf("%d went, %v; want the newest run's result and its call's", n, err)
	}
	if _, _, err := s.CallResult(ctx, runs[0].ID, "n1", 1); err != nil {
		t.Errorf("the open run's result: %v", err)
	}
}
