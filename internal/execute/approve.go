package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/trace"
)

// ApprovalStore keeps questions to persons, and the runs that wait for answers.
type ApprovalStore interface {
	// AddApproval stores a question and, with it, the state in which its run waits;
	// an empty one changes nothing.
	AddApproval(ctx context.Context, a policy.Approval, status trace.Status) error
	Approval(ctx context.Context, id uuid.UUID) (policy.Approval, error)
	RunApprovals(ctx context.Context, run uuid.UUID) ([]policy.Approval, error)
	// DecideApproval stores an answer and its rules. Only the first counts.
	DecideApproval(ctx context.Context, id uuid.UUID, answer policy.Answer) (policy.Approval, error)
	ExpireApprovals(ctx context.Context, now time.Time) ([]policy.Approval, error)
}

// ApprovalOptions say how persons are asked; the zero value of a field means its default.
type ApprovalOptions struct {
	// Hold is how long a run keeps its worker while it waits; default 60 s, negative
	// for not at all.
	Hold time.Duration
	// Expire is the age at which an unanswered approval is rejected; default 24 h.
	Expire time.Duration
	// AgentRelay lets the agent pass on a person's yes.
	AgentRelay bool
}

func (o ApprovalOptions) hold() time.Duration {
	if o.Hold == 0 {
		return time.Minute
	}
	return max(o.Hold, 0)
}

func (o ApprovalOptions) expire() time.Duration {
	if o.Expire <= 0 {
		return 24 * time.Hour
	}
	return o.Expire
}

// A held call is looked up in the store, too: the answer may have been given to
// another gateway.
const holdPoll = time.Second

// Before a run is suspended the calls that tools work on may end, so that their
// outcome is known; no longer than this.
const suspendPatience = time.Minute

// errSuspended is the cause of a run's end when it waits for a person for too long
// to keep its worker.
var errSuspended = errors.New("the run waits for a person")

// errReplanned is the cause of a run's end when the rest of its DAG was replaced: it
// is taken up again at once with the new one.
var errReplanned = errors.New("the run has a new plan")

// newApproval makes a question about a run.
func (e *Engine) newApproval(run uuid.UUID, kind policy.Kind, requested policy.Request) policy.Approval {
	now := e.now()
	return policy.Approval{
		ID: e.config.NewID(), WorkflowID: run, Kind: kind, Status: policy.Pending, Requested: requested,
		CreatedAt: now, ExpiresAt: now.Add(e.config.Approvals().expire()),
	}
}

// hold keeps a call waiting until a person has answered. A run that waits for long
// is suspended: its worker is freed and its journal kept.
func (e *Engine) hold(ctx context.Context, g *gate, requested policy.Request) (policy.Approval, error) {
	r, ok := e.running(g.run.ID)
	if !ok {
		return policy.Approval{}, errNotRunning
	}
	kind := policy.ForCall
	if len(requested.Asks) == 0 {
		kind = policy.ForLayer
	}
	a, asked := g.consent.waiting(requested)
	if !asked {
		a = e.newApproval(g.run.ID, kind, requested)
		if err := e.store.AddApproval(ctx, a, ""); err != nil {
			return a, fmt.Errorf("ask a person: %w", err)
		}
	}
	g.held.Store(true)
	answered := r.ask(a)
	defer r.asked(a.ID)
	defer sandbox.Hold(ctx)()
	limit, poll := time.NewTimer(e.config.Approvals().hold()), time.NewTicker(holdPoll)
	defer limit.Stop()
	defer poll.Stop()
	if asked { // the answer may have come before the run was back here
		if now, err := e.store.Approval(ctx, a.ID); err == nil && now.Status != policy.Pending {
			r.answered(now)
		}
	}
	patience := e.now().Add(e.config.Approvals().hold() + suspendPatience)
	stopping := e.stopping
	for {
		var decided policy.Approval
		select {
		case <-ctx.Done():
			return a, context.Cause(ctx)
		case <-stopping: // the answer will be given to another gateway
			stopping = nil
			limit.Reset(0)
			continue
		case <-limit.C:
			if g.busy() && e.now().Before(patience) {
				limit.Reset(holdPoll)
			} else {
				r.cancel(errSuspended)
			}
			continue
		case decided = <-answered:
		case <-poll.C:
			var err error
			if decided, err = e.store.Approval(ctx, a.ID); err != nil || decided.Status == policy.Pending {
				continue // the next look may succeed; the run's own end bounds this
			}
		}
		if decided.Status != policy.Approved {
			err := rejection(decided)
			r.cancel(err)
			return decided, err
		}
		g.consent.add(decided)
		return decided, nil
	}
}

// rejection is the fault of a run that a person did not want.
func rejection(a policy.Approval) *fault.Error {
	if a.Status == policy.Expired {
		return fault.New(fault.ApprovalExpired, "nobody answered the approval %s in time", a.ID).WithHint("send the program again when somebody is there to answer")
	}
	if a.Kind == policy.ForLayer {
		return fault.New(fault.Cancelled, "the run was aborted after layer %d", a.Requested.Layer)
	}
	reason := "no reason was given"
	if a.Answer != nil && a.Answer.Reason != "" {
		reason = a.Answer.Reason
	}
	return fault.New(fault.ApprovalRejected, "a person rejected it: %s", reason).
		WithHint("do not send the same again; change what was objected to, or ask the person")
}

// Decide gives a person's answer to a question. The run that waits for it goes on
// or ends; nobody needs to wait for it.
func (e *Engine) Decide(ctx context.Context, id uuid.UUID, answer policy.Answer) (policy.Approval, error) {
	a, err := e.store.DecideApproval(ctx, id, answer)
	if err != nil {
		return a, err
	}
	e.config.Rules.Changed(ctx)
	e.config.Logger.InfoContext(ctx, "approval decided", "approval", id, "workflow_id", a.WorkflowID, "status", a.Status, "by", answer.By)
	return a, e.follow(ctx, a)
}

// follow has a run go on as an approval says.
func (e *Engine) follow(ctx context.Context, a policy.Approval) error {
	if r, ok := e.running(a.WorkflowID); ok {
		r.answered(a)
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if a.Status == policy.Approved && (e.config.Brief || e.isStopping()) {
		return nil
	}
	if a.Status == policy.Approved {
		return e.resume(ctx, a.WorkflowID)
	}
	return e.reject(ctx, a)
}

// reject ends a run that waits and will not go on.
func (e *Engine) reject(ctx context.Context, a policy.Approval) error {
	run, ok, err := e.claim(ctx, a.WorkflowID)
	if err != nil || !ok {
		return err
	}
	return e.endUnrun(ctx, run, rejection(a))
}

// endUnrun records the end of a run whose program does not run now.
func (e *Engine) endUnrun(ctx context.Context, run trace.Run, reason *fault.Error) error {
	run.Status, run.Error, run.FinishedAt = statusOf(reason.Code), reason, e.now()
	run.Duration = run.FinishedAt.Sub(run.StartedAt)
	calls, err := e.store.Journal(ctx, run.ID)
	if err != nil {
		return err
	}
	t := trace.Trace{Run: run, Calls: calls, Decisions: []trace.Decision{}, ToolsUsed: toolsUsed(calls)}
	trace.FoldCalls(calls).Put(&t)
	_, err = e.commit(ctx, []Finished{{Trace: t, begun: true}})
	return err
}

// expire ends the approvals whose time is over, and their runs.
func (e *Engine) expire(ctx context.Context) error {
	over, err := e.store.ExpireApprovals(ctx, e.now())
	for _, a := range over {
		err = errors.Join(err, e.follow(ctx, a))
	}
	return err
}

// ask notes that a person is asked about a held call, and tells whoever waits for
// the run. The answer comes from the channel.
func (r *activeRun) ask(a policy.Approval) <-chan policy.Approval {
	answer := make(chan policy.Approval, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.questions = append(r.questions, question{a, answer})
	r.signalLocked()
	return answer
}

func (r *activeRun) signalLocked() {
	select {
	case r.changed <- struct{}{}:
	default: // it will look all the same
	}
}

// asked forgets a question.
func (r *activeRun) asked(id uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.questions = slices.DeleteFunc(r.questions, func(q question) bool { return q.approval.ID == id })
}

// answered passes an answer to the call that waits for it.
func (r *activeRun) answered(a policy.Approval) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.questions {
		if q.approval.ID == a.ID {
			q.answer <- a // has room: only the first answer of an approval gets here
		}
	}
	r.questions = slices.DeleteFunc(r.questions, func(q question) bool { return q.approval.ID == a.ID })
}

// question is a held call.
type question struct {
	approval policy.Approval
	answer   chan policy.Approval
}

// open returns the first question that waits.
func (r *activeRun) open() (policy.Approval, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.questions) == 0 {
		return policy.Approval{}, false
	}
	return r.questions[0].approval, true
}
