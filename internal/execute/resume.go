package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/trace"
)

// OpenRuns keeps the runs that wait, or have lost their gateway.
type OpenRuns interface {
	Run(ctx context.Context, id uuid.UUID) (trace.Run, error)
	ChildRuns(ctx context.Context, parent uuid.UUID) ([]trace.Run, error)
	// Journal returns the calls of an open run with all their results.
	Journal(ctx context.Context, run uuid.UUID) ([]trace.Call, error)
	// ClaimRun makes owner the one who works on a run that nobody works on, or whose
	// lease ended before lost; of several, one gets it.
	ClaimRun(ctx context.Context, id uuid.UUID, owner string, now, lost, lease time.Time) (bool, error)
	ParkRun(ctx context.Context, id uuid.UUID, status trace.Status) error
	// ReleaseRun says that owner works no more on a run that goes on.
	ReleaseRun(ctx context.Context, id uuid.UUID, owner string) error
	// LostRuns are the running ones whose lease ended before a time, or that were
	// released; never owner's.
	LostRuns(ctx context.Context, before time.Time, owner string) ([]uuid.UUID, error)
	InterruptRun(ctx context.Context, id uuid.UUID, reason *fault.Error) error
}

// claim takes a run that waits or was lost; false where another gateway has it, or
// it has ended.
func (e *Engine) claim(ctx context.Context, id uuid.UUID) (trace.Run, bool, error) {
	now := e.now()
	ok, err := e.store.ClaimRun(ctx, id, e.owner, now, e.lostBefore(now), now.Add(leaseFor))
	if err != nil || !ok {
		return trace.Run{}, false, err
	}
	run, err := e.store.Run(ctx, id)
	return run, err == nil, err
}

// resume takes a run up where it was left: its program runs again from the start,
// and every call that is in the journal is answered from there. It returns when the
// run is in progress. What keeps it from going on is the run's end, unless it is that
// the gateway stops.
func (e *Engine) resume(ctx context.Context, id uuid.UUID) error {
	if e.isStopping() {
		return errNotRunning
	}
	run, ok, err := e.claim(ctx, id)
	if err != nil || !ok {
		return err
	}
	r, req, err := e.revive(ctx, run)
	if err == nil {
		err = e.register(r)
	}
	switch {
	case err == nil:
		go e.carryOut(r, req)
		return nil
	case e.isStopping():
		return errors.Join(err, e.store.ReleaseRun(context.WithoutCancel(ctx), id, e.owner))
	}
	return errors.Join(err, e.endUnrun(ctx, run, e.fault(run.ID, err)))
}

// revive makes a run that was stored ready to go on.
func (e *Engine) revive(ctx context.Context, run trace.Run) (*activeRun, Request, error) {
	req := Request{Intent: run.Intent, Args: run.Args}
	err := errors.Join(
		json.Unmarshal(run.Implementation, &req.Implementation), json.Unmarshal(run.Options, &req.Options), json.Unmarshal(run.Client, &req.Client))
	if err != nil {
		return nil, req, fmt.Errorf("read the stored request: %w", err)
	}
	approvals, err := e.store.RunApprovals(ctx, run.ID)
	if err == nil {
		err = addPlans(&req, approvals)
	}
	if err != nil {
		return nil, req, err
	}
	ready, err := e.planner.prepare(ctx, req)
	if err != nil {
		return nil, req, err
	}
	run.Capability = ready.capability.ID // a new plan makes it another program
	r := e.newRun(run, ready, req)
	for _, a := range approvals {
		r.gate.consent.add(a)
	}
	if err := e.recall(ctx, r); err != nil {
		return nil, req, err
	}
	return r, req, nil
}

// recall gives a run the journals that its earlier attempts have left.
func (e *Engine) recall(ctx context.Context, r *activeRun) error {
	own, err := e.store.Journal(ctx, r.run.ID)
	if err != nil {
		return err
	}
	children, err := e.store.ChildRuns(ctx, r.run.ID)
	if err != nil {
		return err
	}
	calls := map[int][]trace.Call{0: own}
	r.gate.began = map[int]uuid.UUID{}
	for _, c := range children {
		var in innerImplementation
		if json.Unmarshal(c.Implementation, &in) != nil || in.Frame == 0 {
			continue
		}
		r.gate.began[in.Frame] = c.ID
		if calls[in.Frame], err = e.store.Journal(ctx, c.ID); err != nil {
			return err
		}
	}
	r.gate.past = newJournal(calls)
	return nil
}

// addPlans replaces the rest of a request's DAG as often as its client has.
func addPlans(req *Request, approvals []policy.Approval) error {
	for _, a := range approvals {
		if a.Status != policy.Approved || a.Answer == nil || len(a.Answer.Plan) == 0 {
			continue
		}
		dag, err := structure.ParseDAG(req.Implementation.DAG)
		if err != nil {
			return err
		}
		joined, err := replan(dag, a.Requested.Layer, a.Answer.Plan)
		if err != nil {
			return err
		}
		req.Implementation = &Implementation{Type: DAGType, DAG: joined}
	}
	return nil
}

// recoverAtOnce is how many lost runs are taken up at the same time: they stand
// behind nobody, and must not keep new ones from a worker.
const recoverAtOnce = 3

// recoverLost takes up the runs that have lost their gateway. One in which a call
// was sent whose outcome nobody knows is not repeated: it is interrupted.
func (e *Engine) recoverLost(ctx context.Context, now time.Time) error {
	if e.config.Brief || e.isStopping() {
		return nil
	}
	ids, err := e.store.LostRuns(ctx, e.lostBefore(now), e.owner)
	if err != nil || len(ids) == 0 || !e.recovering.CompareAndSwap(false, true) {
		return err
	}
	e.config.Logger.WarnContext(ctx, "runs were left by their gateway and are taken up", "runs", len(ids))
	e.config.Cache.lost(ctx)
	e.wg.Go(func() {
		defer e.recovering.Store(false)
		var runs errgroup.Group
		runs.SetLimit(recoverAtOnce)
		for _, id := range ids {
			runs.Go(func() error {
				if err := e.recover(e.ctx, id); err != nil && !e.isStopping() {
					e.config.Logger.WarnContext(e.ctx, "a lost run was not resumed", "workflow_id", id, "error", err)
				}
				if r, ok := e.running(id); ok {
					<-r.done
				}
				return nil // the others go on
			})
		}
		_ = runs.Wait()
	})
	return nil
}

func (e *Engine) recover(ctx context.Context, id uuid.UUID) error {
	open, err := e.unknownCall(ctx, id)
	if err != nil {
		return err
	}
	if open == nil {
		return e.resume(ctx, id)
	}
	run, ok, err := e.claim(ctx, id)
	if err != nil || !ok {
		return err
	}
	return errors.Join(e.endUnrun(ctx, run, open), e.store.InterruptRun(ctx, id, open))
}

// unknownCall is the fault that keeps a lost run from being resumed: a call that was
// sent, has no end in the journal, and must not be repeated.
func (e *Engine) unknownCall(ctx context.Context, id uuid.UUID) (*fault.Error, error) {
	children, err := e.store.ChildRuns(ctx, id)
	if err != nil {
		return nil, err
	}
	ids := []uuid.UUID{id}
	for _, c := range children {
		ids = append(ids, c.ID)
	}
	for _, run := range ids {
		calls, err := e.store.Journal(ctx, run)
		if err != nil {
			return nil, err
		}
		for _, c := range calls {
			if c.Status != trace.CallStarted {
				continue
			}
			// A tool that its server does not list now may be anything.
			if t, ok := e.upstream.Catalog().Get(c.Tool); ok && t.Idempotent() {
				continue
			}
			return unknownOutcome(c), nil
		}
	}
	return nil, nil
}

// unknownOutcome says of which call nobody knows whether it took effect.
func unknownOutcome(c trace.Call) *fault.Error {
	f := fault.New(fault.InterruptedCall, "the call of %s was sent, and whether it took effect is not known", c.Tool).
		WithHint("look at what it may have changed before you send the program again: it is not repeated by itself")
	f.Tool, f.NodeID = string(c.Tool), c.NodeID
	return f
}

// park leaves a suspended run for whoever takes it up when it was answered.
func (e *Engine) park(ctx context.Context, r *activeRun) *Answer {
	ctx = context.WithoutCancel(ctx)
	err := errors.Join(r.gate.flush(ctx), e.store.ParkRun(ctx, r.run.ID, trace.Suspended))
	if err != nil {
		return &Answer{Status: StatusFailed, WorkflowID: r.run.ID.String(), Error: e.fault(r.run.ID, err)}
	}
	e.unregister(r.run.ID)
	approvals, err := e.store.RunApprovals(ctx, r.run.ID)
	if err != nil {
		return &Answer{Status: StatusFailed, WorkflowID: r.run.ID.String(), Error: e.fault(r.run.ID, err)}
	}
	for _, a := range approvals {
		if a.Status == policy.Pending {
			return approvalAnswer(a)
		}
	}
	// It was answered while the run was on its way here.
	e.wg.Go(func() {
		if err := e.resume(e.ctx, r.run.ID); err != nil && !e.isStopping() {
			e.config.Logger.WarnContext(e.ctx, "a suspended run was not resumed", "workflow_id", r.run.ID, "error", err)
		}
	})
	return e.runningAnswer(r)
}
