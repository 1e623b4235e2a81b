package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/trace"
)

// Continue is what a client says to a run that waits.
type Continue struct {
	WorkflowID string `json:"workflow_id"`
	// Decision is approve, reject, replan or abort; empty only asks how the run is.
	Decision string `json:"decision,omitempty"`
	Reason   string `json:"reason,omitempty"`

	// Person is the answer of a person that the protocol itself has brought; nil where
	// the agent speaks.
	Person *policy.Answer `json:"-"`
}

// The decisions of Continue.
const (
	decideApprove = "approve"
	decideReject  = "reject"
	decideReplan  = "replan"
	decideAbort   = "abort"
)

// proceed gives a run the answer that it waits for, and waits for the run.
func (e *Engine) proceed(ctx context.Context, req Request) *Answer {
	id, err := uuid.Parse(req.Continue.WorkflowID)
	if err != nil {
		return e.refused(fault.New(fault.InvalidInput, "continue.workflow_id %q is not an id", req.Continue.WorkflowID).
			WithHint("use the workflow_id of the answer that asked"))
	}
	pending, waits, err := e.pending(ctx, id)
	if err != nil {
		return e.refused(err)
	}
	if waits && (req.Continue.Decision != "" || req.Continue.Person != nil) {
		answer, err := e.answerOf(ctx, *req.Continue, pending, req.Implementation)
		if err == nil {
			_, err = e.Decide(ctx, pending.ID, answer)
		}
		if err != nil {
			a := approvalAnswer(pending)
			a.Error = e.fault(id, err)
			return a
		}
	}
	return e.attendByID(ctx, id, req.Options.wait())
}

// pending finds the question that a run waits for.
func (e *Engine) pending(ctx context.Context, id uuid.UUID) (policy.Approval, bool, error) {
	if _, err := e.store.Run(ctx, id); err != nil {
		return policy.Approval{}, false, err
	}
	approvals, err := e.store.RunApprovals(ctx, id)
	for _, a := range approvals {
		if a.Status == policy.Pending {
			return a, true, err
		}
	}
	return policy.Approval{}, false, err
}

// answerOf makes a decision of a client an answer. The agent may say no to
// anything, and yes to what it has asked for itself; a yes to a tool is a person's.
func (e *Engine) answerOf(ctx context.Context, c Continue, a policy.Approval, plan *Implementation) (policy.Answer, error) {
	if c.Person != nil {
		return *c.Person, nil
	}
	answer := policy.Answer{Approved: true, Scope: policy.Once, Reason: c.Reason, By: "agent"}
	switch c.Decision {
	case decideReject, decideAbort:
		answer.Approved, answer.Scope = false, ""
		return answer, nil
	case decideApprove:
		if a.Kind == policy.ForLayer || e.config.Approvals().AgentRelay {
			return answer, nil
		}
		return answer, fault.New(fault.Denied, "only a person can approve this").
			WithHint("ask the person to run: pml approve %s", a.ID)
	case decideReplan:
		if a.Kind != policy.ForLayer {
			return answer, fault.New(fault.InvalidInput, "only a run that stops after a layer can be replanned").WithHint("reject it and send another program")
		}
		if plan == nil || plan.Type != DAGType || len(plan.DAG) == 0 {
			return answer, fault.New(fault.InvalidInput, "replan needs the new rest as implementation").
				WithHint(`pass implementation: {"type": "dag", "dagStructure": {"tasks": […]}}`)
		}
		answer.Plan = plan.DAG
		return answer, e.checkPlan(ctx, a, plan.DAG)
	}
	return answer, fault.New(fault.InvalidInput, "continue.decision is %q", c.Decision).WithHint("use approve, reject, replan or abort")
}

// checkPlan makes sure that a run can go on with a new rest of its DAG, before the
// rest is stored.
func (e *Engine) checkPlan(ctx context.Context, a policy.Approval, rest json.RawMessage) error {
	run, err := e.store.Run(ctx, a.WorkflowID)
	if err != nil {
		return err
	}
	approvals, err := e.store.RunApprovals(ctx, run.ID)
	if err != nil {
		return err
	}
	a.Status, a.Answer = policy.Approved, &policy.Answer{Plan: rest}
	var req Request
	if err := json.Unmarshal(run.Implementation, &req.Implementation); err != nil {
		return err
	}
	if err := addPlans(&req, append(approvals, a)); err != nil {
		return err
	}
	_, err = e.planner.analyse(ctx, req.Implementation.source(), true)
	return err
}

// attend waits for a run's end, for a question that it has, or for the time to be
// over. A client that gives up meanwhile cancels the run; one that is gone does not.
func (e *Engine) attend(ctx context.Context, r *activeRun, patience time.Duration) *Answer {
	unlink := context.AfterFunc(ctx, func() {
		if gaveUp(ctx) {
			r.cancel(errCancelled)
		}
	})
	defer unlink()
	wait := time.NewTimer(patience)
	defer wait.Stop()
	ended := ctx.Done()
	for {
		if a, ok := r.open(); ok {
			if e.stillAsks(ctx, r, a) {
				return approvalAnswer(a)
			}
			continue
		}
		select {
		case <-r.done:
			return r.answer
		case <-r.changed:
		case <-ended:
			if !gaveUp(ctx) {
				return e.runningAnswer(r)
			}
			ended = nil
		case <-wait.C:
			return e.runningAnswer(r)
		}
	}
}

// stillAsks reports whether a run's question waits for an answer. One that came before
// the run was back at its call, or at another gateway, is passed on.
func (e *Engine) stillAsks(ctx context.Context, r *activeRun, a policy.Approval) bool {
	now, err := e.store.Approval(ctx, a.ID)
	if err != nil || now.Status == policy.Pending {
		return true
	}
	r.answered(now)
	return false
}

// gaveUp reports whether a request has ended because its client wanted it to: an end
// of which the cause is told is that of the connection.
func gaveUp(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ctx.Err()) }

// lookAgain is how often a run is looked at that is not in progress here: another
// gateway has it, or it is about to be taken up.
const lookAgain = 100 * time.Millisecond

// attendByID is attend for a run that may be in progress here, may be elsewhere, may
// be taken up again meanwhile, and may have ended.
func (e *Engine) attendByID(ctx context.Context, id uuid.UUID, patience time.Duration) *Answer {
	deadline := time.Now().Add(patience)
	for {
		a := e.look(ctx, id, max(time.Until(deadline), 0))
		if a.Status != StatusRunning || !time.Now().Before(deadline) {
			return a
		}
		select {
		case <-time.After(lookAgain):
		case <-e.stopping:
			return a
		case <-ctx.Done():
			return a
		}
	}
}

func (e *Engine) look(ctx context.Context, id uuid.UUID, patience time.Duration) *Answer {
	if r, ok := e.running(id); ok {
		return e.attend(ctx, r, patience)
	}
	run, err := e.store.Run(ctx, id)
	if err != nil {
		return e.refused(err)
	}
	switch {
	case run.Status == trace.AwaitingApproval || run.Status == trace.Suspended:
		a, waits, err := e.pending(ctx, id)
		if err != nil {
			return e.refused(err)
		}
		if waits {
			return approvalAnswer(a)
		}
		if err := e.resume(ctx, id); err != nil { // it may go on, and nobody has taken it up
			return e.refused(err)
		}
	case !run.Status.Open():
		return e.storedAnswer(ctx, run)
	case run.LeaseUntil.IsZero() && !e.config.Brief: // its gateway has released it
		if err := e.recover(ctx, id); err != nil {
			return e.refused(err)
		}
	}
	return e.runningAnswer(&activeRun{run: run, gate: newGate(e, run, &prepared{}, Request{})})
}

// storedAnswer is the answer of a run that has ended earlier.
func (e *Engine) storedAnswer(ctx context.Context, run trace.Run) *Answer {
	t, err := e.store.Trace(ctx, run.ID)
	if err != nil {
		t = trace.Trace{Run: run}
	}
	a := &Answer{Status: StatusSuccess, WorkflowID: run.ID.String(), Logs: run.Logs, Error: run.Error, Trace: summarize(t), ToolFailures: failures(t.Calls)}
	if run.Error != nil {
		a.Status = StatusFailed
		return a
	}
	result, _, err := e.store.RunResult(ctx, run.ID)
	if err != nil {
		a.Error = e.fault(run.ID, err)
		return a
	}
	a.setResult(result)
	return a
}

// approvalAnswer says what a person is asked, and how the answer is given.
func approvalAnswer(a policy.Approval) *Answer {
	id := a.WorkflowID.String()
	next := fmt.Sprintf("a person decides: pml approve %s, or pml reject %s; then call pml_execute with continue: {workflow_id: %q} for the result", a.ID, a.ID, id)
	if a.Kind == policy.ForLayer {
		next = fmt.Sprintf("call pml_execute with continue: {workflow_id: %q, decision: approve, replan or abort}", id)
	}
	answer := &Answer{Status: StatusApproval, WorkflowID: id, Approval: &a, Next: next}
	if a.Kind == policy.ForLayer {
		answer.Layer = &Layer{Index: a.Requested.Layer, Results: a.Requested.Results}
		answer.Approval = nil
	}
	return answer
}

// Layer is what a layer of a DAG has come to.
type Layer struct {
	Index   int             `json:"index"`
	Results json.RawMessage `json:"results"`
}
