package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/trace"
)

// Execute carries a request out and answers when the run has ended and is
// recorded, with a handle when options.wait_ms is over, or with a question when a
// person has to allow what the program does. An error of the request or of the
// program is inside the answer. While it waits, the end of ctx cancels the run.
func (e *Engine) Execute(ctx context.Context, req Request) *Answer {
	if e.ctx == nil {
		return e.refused(errNotRunning)
	}
	if err := req.validate(); err != nil {
		return e.refused(err)
	}
	if req.Continue != nil {
		return e.proceed(ctx, req)
	}
	if req.Implementation == nil {
		return e.byIntent(ctx, req)
	}
	if req.Options.DryRun.On {
		return e.dryRun(ctx, req)
	}
	ready, err := e.planner.prepare(ctx, req)
	if err != nil {
		return e.refused(err)
	}
	asks, err := e.judge(ready)
	if err != nil {
		return e.refused(err)
	}
	if len(asks) > 0 {
		return e.askBefore(ctx, req, ready, asks)
	}
	if a := e.fromCache(ctx, req, ready); a != nil {
		return a
	}
	r, err := e.begin(ctx, req, ready)
	if err != nil {
		return e.refused(err)
	}
	go e.carryOut(r, req)
	return e.attend(ctx, r, req.Options.wait())
}

// refused answers a request that never became a run.
func (e *Engine) refused(err error) *Answer {
	return &Answer{Status: StatusFailed, Error: e.fault(uuid.Nil, err)}
}

// newRow is the row of a run that a request asks for.
func (e *Engine) newRow(req Request, ready *prepared, status trace.Status) trace.Run {
	now := e.now()
	impl := *req.Implementation
	if impl.Type == CapabilityType {
		impl.Version = ready.capability.Version // the same one, whenever the run is taken up again
	}
	run := trace.Run{
		ID: e.config.NewID(), Capability: ready.capability.ID, Intent: req.Intent, Args: req.Args, Owner: e.owner, Status: status,
		GatewayVersion: e.config.Version, StartedAt: now, Seed: e.config.NewSeed(),
		Implementation: mustJSON(impl), Options: mustJSON(req.Options), Client: mustJSON(req.Client),
	}
	if status == trace.Running {
		run.LeaseUntil = now.Add(leaseFor)
	}
	return run
}

// newRun makes a run that has a row ready to be carried out.
func (e *Engine) newRun(run trace.Run, ready *prepared, req Request) *activeRun {
	r := &activeRun{run: run, ready: ready, allowPartial: req.Options.AllowPartial, byName: req.Implementation.Type == CapabilityType, done: make(chan struct{}), changed: make(chan struct{}, 1)}
	r.ctx, r.cancel = context.WithCancelCause(e.ctx)
	r.gate = newGate(e, run, ready, req)
	return r
}

// begin stores the run's row: from here on it exists, whatever happens.
func (e *Engine) begin(ctx context.Context, req Request, ready *prepared) (*activeRun, error) {
	r := e.newRun(e.newRow(req, ready, trace.Running), ready, req)
	if err := e.register(r); err != nil {
		r.cancel(err)
		return nil, err
	}
	if err := e.store.BeginRun(ctx, r.run); err != nil {
		r.cancel(err)
		e.unregister(r.run.ID)
		e.wg.Done()
		return nil, fmt.Errorf("the run was not started: %w", err)
	}
	return r, nil
}

// askBefore stores a run that a person has to allow before it starts.
func (e *Engine) askBefore(ctx context.Context, req Request, ready *prepared, asks []policy.Question) *Answer {
	run := e.newRow(req, ready, trace.AwaitingApproval)
	if err := e.store.BeginRun(ctx, run); err != nil {
		return e.refused(fmt.Errorf("the run was not stored: %w", err))
	}
	a := e.newApproval(run.ID, policy.ForRun, policy.Request{Intent: req.Intent, Code: ready.program.Source, Asks: asks})
	if err := e.store.AddApproval(ctx, a, trace.AwaitingApproval); err != nil {
		return e.refused(fmt.Errorf("ask a person: %w", err))
	}
	return approvalAnswer(a)
}

// carryOut runs the program and records it. It ends with the answer set and done
// closed, also after a panic of our own.
func (e *Engine) carryOut(r *activeRun, req Request) {
	defer e.wg.Done()
	defer close(r.done)
	defer e.unregister(r.run.ID)
	defer r.cancel(nil)
	defer func() { r.gate.written.settle(r.ctx, e.config.Cache) }() // what came after the one below
	defer func() {
		if p := recover(); p != nil {
			r.answer = &Answer{Status: StatusFailed, WorkflowID: r.run.ID.String(), Error: e.internal(r.run.ID, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))}
		}
	}()
	outcome, err := e.sandbox.Run(r.ctx, e.program(r, req), r.gate)
	r.gate.written.settle(r.ctx, e.config.Cache)
	if cause := context.Cause(r.ctx); err != nil && goesOn(cause) {
		if errors.Is(cause, errLeft) {
			r.answer = e.release(r)
		} else {
			r.answer = e.park(r.ctx, r)
		}
		return
	}
	finished := e.conclude(r, outcome, err)
	learnt, err := e.commit(r.ctx, finished)
	if err != nil {
		r.answer = &Answer{Status: StatusFailed, WorkflowID: r.run.ID.String(), Error: e.fault(r.run.ID, err)}
		return
	}
	e.remember(r, finished)
	r.answer = finalAnswer(r, finished[0].Trace, outcome, learnt)
	if n := len(r.answer.ToolFailures); n > 0 && finished[0].Trace.Success && !learnt.Saved {
		e.config.Logger.InfoContext(r.ctx, "capability not saved due to tool failures", "intent", req.Intent, "failed_tools", failedTools(r.answer.ToolFailures))
	}
}

// program is what the sandbox is to run.
func (e *Engine) program(r *activeRun, req Request) sandbox.Program {
	limits := e.config.Limits
	limits.Wall = req.Options.timeout()
	p := sandbox.Program{
		Seed:   &sandbox.Determinism{Now: r.run.StartedAt, Random: r.run.Seed},
		Source: r.ready.code.Text, Original: r.ready.program.Source, Recorder: r.ready.program.Recorder, Frame: r.ready.program.Frame,
		Args: r.ready.args, Client: req.Client.Session, Limits: limits, Nodes: kinds(r.ready.code), Position: r.ready.code.Position,
		Site: func(node string) (int, int, bool) {
			at, ok := r.ready.program.Info[node]
			return at.Line, at.Column, ok
		},
	}
	if len(r.ready.inner) == 0 {
		return p
	}
	p.Capabilities, p.CapabilityNodes = map[string]string{}, map[string]map[string]sandbox.NodeKind{}
	for name, in := range r.ready.inner {
		p.Capabilities[name], p.CapabilityNodes[name] = in.text, in.nodes
	}
	return p
}

func statusOf(code fault.Code) trace.Status {
	switch code {
	case fault.Cancelled:
		return trace.CancelledRun
	case fault.Interrupted, fault.InterruptedCall:
		return trace.InterruptedRun
	case fault.ApprovalRejected, fault.ApprovalExpired:
		return trace.Rejected
	default:
		return trace.Failed
	}
}

// A commit is tried for longer than the embedded database needs to come back
// after a crash: an answer is given only for what is stored.
const (
	commitTries = 8
	commitPause = 250 * time.Millisecond
)

// commit stores the traces and what is learnt from them. It goes on after the end of
// the run's context: what was done must be recorded also when the client has left.
func (e *Engine) commit(ctx context.Context, finished []Finished) (Learnt, error) {
	ctx = context.WithoutCancel(ctx)
	var err error
	for try := range commitTries {
		var learnt Learnt
		if learnt, err = e.tryCommit(ctx, finished); fault.CodeOf(err) != fault.StorageUnavailable {
			return learnt, err
		}
		e.config.Logger.WarnContext(ctx, "trace not stored yet", "workflow_id", finished[0].Trace.Run.ID, "try", try+1, "error", err)
		<-time.After(commitPause << min(try, 4))
	}
	return Learnt{}, err
}

func (e *Engine) tryCommit(ctx context.Context, finished []Finished) (Learnt, error) {
	for _, f := range finished {
		if !f.begun {
			if err := e.store.BeginRun(ctx, f.Trace.Run); err != nil {
				return Learnt{}, err
			}
		}
	}
	return e.store.Finish(ctx, finished)
}

// fault turns any error of a run into one that a reader can use.
func (e *Engine) fault(run uuid.UUID, err error) *fault.Error {
	if f, ok := asFault(err); ok {
		return f
	}
	return e.internal(run, err)
}

// internal hides an unexpected error behind the run's id, with which the log has it.
func (e *Engine) internal(run uuid.UUID, err error) *fault.Error {
	id := run
	if id == uuid.Nil {
		id = e.config.NewID()
	}
	e.config.Logger.ErrorContext(e.ctx, "internal error", "id", id, "error", err)
	f := fault.New(fault.Internal, "an internal error ended the run").WithHint("the gateway's log has the detail under this id")
	f.ID = id.String()
	return f
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return b
}
