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
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/trace"
)

// Execute carries a request out and answers when the run has ended and is
// recorded, or with a handle when options.wait_ms is over. An error of the
// request or of the program is inside the answer. While it waits, the end of ctx
// cancels the run.
func (e *Engine) Execute(ctx context.Context, req Request) *Answer {
	if err := req.validate(); err != nil {
		return refused(err)
	}
	if e.ctx == nil {
		return refused(errNotRunning)
	}
	runCtx, cancel := context.WithCancelCause(e.ctx)
	r, err := e.begin(ctx, req, cancel)
	if err != nil {
		cancel(err)
		return refused(err)
	}
	go e.carryOut(runCtx, r, req)
	unlink := context.AfterFunc(ctx, func() { r.cancel(errCancelled) })
	defer unlink()
	wait := time.NewTimer(req.Options.wait())
	defer wait.Stop()
	select {
	case <-r.done:
		return r.answer
	case <-wait.C:
		return e.runningAnswer(r)
	}
}

// refused answers a request that never became a run.
func refused(err error) *Answer {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = fault.New(fault.Internal, "%v", err)
	}
	return &Answer{Status: StatusFailed, Error: f}
}

// begin stores the run's row: from here on it exists, whatever happens.
func (e *Engine) begin(ctx context.Context, req Request, cancel context.CancelCauseFunc) (*activeRun, error) {
	now := e.config.Now()
	run := trace.Run{
		ID: e.config.NewID(), Intent: req.Intent, Args: req.Args, Owner: e.owner, Status: trace.Running,
		GatewayVersion: e.config.Version, StartedAt: now, LeaseUntil: now.Add(leaseFor),
		Implementation: mustJSON(req.Implementation), Options: mustJSON(req.Options), Client: mustJSON(req.Client),
	}
	r := &activeRun{run: run, cancel: cancel, done: make(chan struct{})}
	r.gate = newGate(e, run.ID, req.Progress)
	if err := e.register(r); err != nil {
		return nil, err
	}
	if err := e.store.BeginRun(ctx, run); err != nil {
		e.unregister(run.ID)
		e.wg.Done()
		return nil, fmt.Errorf("the run was not started: %w", err)
	}
	return r, nil
}

// carryOut runs the program and records it. It ends with the answer set and done
// closed, also after a panic of our own.
func (e *Engine) carryOut(ctx context.Context, r *activeRun, req Request) {
	defer e.wg.Done()
	defer close(r.done)
	defer e.unregister(r.run.ID)
	defer r.cancel(nil)
	defer func() {
		if p := recover(); p != nil {
			r.answer = &Answer{Status: StatusFailed, WorkflowID: r.run.ID.String(), Error: e.internal(r.run.ID, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))}
		}
	}()
	outcome, err := e.sandbox.Run(ctx, e.program(r, req), r.gate)
	t := e.conclude(r, outcome, err)
	if err := e.commit(ctx, t); err != nil {
		r.answer = &Answer{Status: StatusFailed, WorkflowID: r.run.ID.String(), Error: e.fault(r.run.ID, err)}
		return
	}
	r.answer = finalAnswer(t, outcome)
}

func (e *Engine) program(_ *activeRun, req Request) sandbox.Program {
	limits := e.config.Limits
	limits.Wall = req.Options.timeout()
	return sandbox.Program{Source: req.Implementation.Code, Args: req.Args, Client: req.Client.Session, Limits: limits}
}

// conclude makes the trace of a run that has ended.
func (e *Engine) conclude(r *activeRun, outcome sandbox.Outcome, err error) trace.Trace {
	run := r.run
	run.FinishedAt = e.config.Now()
	run.Duration = run.FinishedAt.Sub(run.StartedAt)
	run.Logs = outcome.Logs
	if err != nil {
		run.Error = e.fault(run.ID, err)
		run.Status = statusOf(run.Error.Code)
	} else {
		run.Status, run.Result = trace.Succeeded, outcome.Result
	}
	calls := r.gate.close()
	return trace.Trace{
		Run: run, Calls: calls, ToolsUsed: toolsUsed(calls), ExecutedPath: callPath(calls), Decisions: []trace.Decision{},
		Success: err == nil, SandboxLevel: outcome.Level,
	}
}

func statusOf(code fault.Code) trace.Status {
	switch code {
	case fault.Cancelled:
		return trace.CancelledRun
	case fault.Interrupted:
		return trace.InterruptedRun
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

// commit stores the trace. It goes on after the end of the run's context: what
// was done must be recorded also when the client has left.
func (e *Engine) commit(ctx context.Context, t trace.Trace) error {
	ctx = context.WithoutCancel(ctx)
	var err error
	for try := range commitTries {
		if err = e.store.FinishRun(ctx, t); fault.CodeOf(err) != fault.StorageUnavailable {
			return err
		}
		e.config.Logger.WarnContext(ctx, "trace not stored yet", "workflow_id", t.Run.ID, "try", try+1, "error", err)
		<-time.After(commitPause << min(try, 4))
	}
	return err
}

// fault turns any error of a run into one that a reader can use.
func (e *Engine) fault(run uuid.UUID, err error) *fault.Error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	return e.internal(run, err)
}

// internal hides an unexpected error behind the run's id, with which the log has it.
func (e *Engine) internal(run uuid.UUID, err error) *fault.Error {
	e.config.Logger.ErrorContext(e.ctx, "internal error", "workflow_id", run, "error", err)
	f := fault.New(fault.Internal, "an internal error ended the run").WithHint("the gateway's log has the detail under this id")
	f.ID = run.String()
	return f
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return b
}
