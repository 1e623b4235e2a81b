package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/store/storetest"
	"github.com/pml-run/pml/internal/trace"
)

func TestJournalOnlyGetsFurther(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	r := begun(t, s)
	done := newCall("n1", 1, 1, "fs:write")
	started := done
	started.Status, started.Result, started.Bytes, started.Duration = trace.CallStarted, nil, 0, 0
	for _, calls := range [][]trace.Call{{started}, {started, done}, {started}} {
		if err := s.RecordCalls(ctx, r.ID, calls); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Calls(ctx, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]trace.Call{done}, got, equalTimes); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

func TestPurgeKeepsOpenRunsAndOutcomes(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	open, closed := begun(t, s), begun(t, s)
	call := newCall("n1", 1, 1, "fs:read")
	for _, r := range []trace.Run{open, closed} {
		if err := s.RecordCalls(ctx, r.ID, []trace.Call{call}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.FinishRun(ctx, finished(closed, call), nil); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(2 * time.Hour)
	if n, err := s.PurgeExpired(ctx, later); err != nil || n != 2 {
		t.Fatalf("purged %d, %v; want the closed run's result and its call's", n, err)
	}
	if got, _, err := s.CallResult(ctx, open.ID, "n1", 1); err != nil || string(got) != string(call.Result) {
		t.Errorf("open run: %s, %v", got, err)
	}
	calls, err := s.Calls(ctx, closed.ID)
	if err != nil || len(calls) != 1 || calls[0].Status != trace.CallOK {
		t.Errorf("closed run: %v, %v; want the outcome kept", calls, err)
	}
	_, _, err = store.At(s, later).CallResult(ctx, closed.ID, "n1", 1)
	wantCode(t, err, fault.Expired)
	_, _, err = store.At(s, later).RunResult(ctx, closed.ID)
	wantCode(t, err, fault.Expired)
}

func TestLeases(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	kept, lost, waiting := newRun(t), newRun(t), newRun(t)
	lost.Owner, waiting.Owner, waiting.Status = "gateway-2", "gateway-2", trace.AwaitingApproval
	for _, r := range []trace.Run{kept, lost, waiting} {
		if err := s.BeginRun(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.ExtendLeases(ctx, kept.Owner, moment().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	ids, err := s.LostRuns(ctx, moment().Add(2*time.Minute), "me")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uuid.UUID{lost.ID}, ids); diff != "" {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
	for _, owner := range []string{"me", kept.Owner} { // who has it may release it, nobody else
		if err := s.ReleaseRun(ctx, kept.ID, owner); err != nil {
			t.Fatal(err)
		}
		if err := s.ExtendLeases(ctx, kept.Owner, moment().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		ids, err := s.LostRuns(ctx, moment().Add(-time.Hour), "me")
		if released := len(ids) == 1 && ids[0] == kept.ID; err != nil || released != (owner == kept.Owner) {
			t.Errorf("released by %s: %v, %v", owner, ids, err)
		}
	}
	if err := s.InterruptRun(ctx, lost.ID, fault.New(fault.Interrupted, "its gateway is gone")); err != nil {
		t.Fatal(err)
	}
	got, err := s.Run(ctx, lost.ID)
	if err != nil || got.Status != trace.InterruptedRun || got.Error == nil || got.Error.Code != fault.Interrupted {
		t.Errorf("lost run %+v, %v", got, err)
	}
}

func TestRunsFilter(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	var all []trace.Run
	for i, intent := range []string{"read MAIL", "write notes", "read notes"} {
		r := newRun(t)
		r.Intent, r.StartedAt = intent, r.StartedAt.Add(time.Duration(i)*time.Second)
		if err := s.BeginRun(ctx, r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if err := s.FinishRun(ctx, finished(all[1]), nil); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		filter store.RunFilter
		want   []string
	}{
		"all, newest first": {store.RunFilter{}, []string{"read notes", "write notes", "read MAIL"}},
		"by status":         {store.RunFilter{Status: trace.Succeeded}, []string{"write notes"}},
		"by text":           {store.RunFilter{Query: "mail"}, []string{"read MAIL"}},
		"not a pattern":     {store.RunFilter{Query: "%"}, nil},
		"since":             {store.RunFilter{Since: all[1].StartedAt}, []string{"read notes", "write notes"}},
		"page":              {store.RunFilter{Limit: 1, Offset: 1}, []string{"write notes"}},
	} {
		t.Run(name, func(t *testing.T) {
			runs, err := s.Runs(ctx, c.filter)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range runs {
				got = append(got, r.Intent)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("runs (-want +got):\n%s", diff)
			}
		})
	}
}
