package execute

import (
	"context"
	"encoding/json"
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
	if e.ctx == nil {
		return e.refused(errNotRunning)
	}
	if err := req.validate(); err != nil {
		return e.refused(err)
	}
	ready, err := e.planner.prepare(ctx, req)
	if err != nil {
		return e.refused(err)
	}
	runCtx, cancel := context.WithCancelCause(e.ctx)
	r, err := e.begin(ctx, req, ready, cancel)
	if err != nil {
		cancel(err)
		return e.refused(err)
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
func (e *Engine) refused(err error) *Answer {
	return &Answer{Status: StatusFailed, Error: e.fault(uuid.Nil, err)}
}

// begin stores the run's row: from here on it exists, whatever happens.
func (e *Engine) begin(ctx context.Context, req Request, ready *prepared, cancel context.CancelCauseFunc) (*activeRun, error) {
	now := e.config.Now()
	run := trace.Run{
		ID: e.config.NewID(), Capability: ready.capability.ID, Intent: req.Intent, Args: ready.args, Owner: e.owner, Status: trace.Running,
		GatewayVersion: e.config.Version, StartedAt: now, LeaseUntil: now.Add(leaseFor),
		Implementation: mustJSON(req.Implementation), Options: mustJSON(req.Options), Client: mustJSON(req.Client),
	}
	r := &activeRun{run: run, ready: ready, allowPartial: req.Options.AllowPartial, cancel: cancel, done: make(chan struct{})}
	r.gate = newGate(e, run, ready, req.Progress)
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
	finished := e.conclude(r, outcome, err)
	learnt, err := e.commit(ctx, finished)
	if err != nil {
		r.answer = &Answer{Status: StatusFailed, WorkflowID: r.run.ID.String(), Error: e.fault(r.run.ID, err)}
		return
	}
	r.answer = finalAnswer(r, finished[0].Trace, outcome, learnt)
	if n := len(r.answer.ToolFailures); n > 0 && finished[0].Trace.Success && !learnt.Saved {
		e.config.Logger.InfoContext(ctx, "capability not saved due to tool failures", "intent", req.Intent, "failed_tools", failedTools(r.answer.ToolFailures))
	}
}

// program is what the sandbox is to run.
func (e *Engine) program(r *activeRun, req Request) sandbox.Program {
	limits := e.config.Limits
	limits.Wall = req.Options.timeout()
	p := sandbox.Program{
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
