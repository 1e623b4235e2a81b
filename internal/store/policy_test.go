package store_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/store/storetest"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

func TestRulesOfPersons(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	for range 2 { // the second changes nothing
		if err := s.AddPolicyRule(ctx, policy.Rule{Pattern: "fs:*", Effect: policy.Allow, CreatedBy: "cli"}); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, s.AddPolicyRule(ctx, policy.Rule{Pattern: "fs", Effect: policy.Allow}), fault.InvalidInput)
	rules, err := s.PolicyRules(ctx)
	if err != nil || len(rules) != 1 || rules[0].Pattern != "fs:*" || rules[0].Origin != policy.FromPerson || rules[0].CreatedBy != "cli" {
		t.Fatalf("rules %+v, %v", rules, err)
	}
	if err := s.RevokePolicyRule(ctx, rules[0].ID); err != nil {
		t.Fatal(err)
	}
	wantCode(t, s.RevokePolicyRule(ctx, rules[0].ID), fault.NotFound)
	if rules, err = s.PolicyRules(ctx); err != nil || len(rules) != 0 {
		t.Errorf("after revoking: %+v, %v", rules, err)
	}
}

// waiting stores a run that waits for an approval of two tools.
func waiting(t *testing.T, s *store.Store, expires time.Time) policy.Approval {
	t.Helper()
	r := newRun(t)
	r.Status = trace.AwaitingApproval
	if err := s.BeginRun(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	a := policy.Approval{
		ID: uuid.Must(uuid.NewV7()), WorkflowID: r.ID, Kind: policy.ForRun, CreatedAt: moment(), ExpiresAt: expires,
		Requested: policy.Request{Intent: "x", Asks: []policy.Question{{Tool: "fs:write"}, {Tool: "fs:delete"}}},
	}
	if err := s.AddApproval(t.Context(), a, trace.AwaitingApproval); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestOnlyTheFirstAnswerCounts(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	a := waiting(t, s, time.Now().Add(time.Hour))
	_, err := s.DecideApproval(ctx, a.ID, policy.Answer{Approved: true, Always: []tool.ID{"fs:other"}})
	wantCode(t, err, fault.InvalidInput) // it was not asked for, and nothing is decided
	var yes, no atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := s.DecideApproval(ctx, a.ID, policy.Answer{Approved: true, Scope: policy.Once, Always: []tool.ID{"fs:write"}, By: "cli"})
			switch fault.CodeOf(err) {
			case "":
				yes.Add(1)
			case fault.InvalidInput:
				no.Add(1)
			default:
				t.Errorf("decide: %v", err)
			}
		})
	}
	wg.Wait()
	if yes.Load() != 1 || no.Load() != 7 {
		t.Errorf("%d answers counted, %d were too late", yes.Load(), no.Load())
	}
	got, err := s.Approval(ctx, a.ID)
	if err != nil || got.Status != policy.Approved || got.Answer == nil || got.Answer.By != "cli" || got.DecidedAt.IsZero() {
		t.Errorf("approval %+v, %v", got, err)
	}
	rules, err := s.PolicyRules(ctx)
	if err != nil || len(rules) != 1 || rules[0].Pattern != "fs:write" {
		t.Errorf("rules %+v, %v", rules, err)
	}
}

func TestApprovalsExpire(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	old, young := waiting(t, s, time.Now().Add(-time.Minute)), waiting(t, s, time.Now().Add(time.Hour))
	_, err := s.DecideApproval(ctx, old.ID, policy.Answer{Approved: true})
	wantCode(t, err, fault.ApprovalExpired)
	over, err := s.ExpireApprovals(ctx, time.Now())
	if err != nil || len(over) != 1 || over[0].ID != old.ID || over[0].Status != policy.Expired {
		t.Errorf("expired %+v, %v", over, err)
	}
	pending, err := s.PendingApprovals(ctx)
	if err != nil || len(pending) != 1 || pending[0].ID != young.ID {
		t.Errorf("pending %+v, %v", pending, err)
	}
	if err := s.InterruptRun(ctx, young.WorkflowID, fault.New(fault.Interrupted, "x")); err != nil {
		t.Fatal(err)
	}
	if pending, err = s.PendingApprovals(ctx); err != nil || len(pending) != 0 {
		t.Errorf("a run that has ended still waits: %+v, %v", pending, err)
	}
}

func TestARunIsClaimedOnce(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	a := waiting(t, s, time.Time{})
	now := time.Now()
	var got atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			ok, err := s.ClaimRun(ctx, a.WorkflowID, uuid.NewString(), now, now, now.Add(time.Minute))
			if err != nil {
				t.Error(err)
			}
			if ok {
				got.Add(1)
			}
		})
	}
	wg.Wait()
	if got.Load() != 1 {
		t.Errorf("%d owners", got.Load())
	}
	if ok, err := s.ClaimRun(ctx, a.WorkflowID, "late", now, now.Add(2*time.Minute), now.Add(3*time.Minute)); !ok || err != nil {
		t.Errorf("a lost run was not claimed: %v", err)
	}
	run, err := s.Run(ctx, a.WorkflowID)
	if err != nil || run.Owner != "late" || run.Status != trace.Running {
		t.Errorf("run %+v, %v", run, err)
	}
}
