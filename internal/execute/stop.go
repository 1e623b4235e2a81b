package execute

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox"
)

// errLeft is the cause of a run's end on a gateway that stops: the run itself goes
// on where it is taken up again.
var errLeft = errors.New("the gateway stops, and the run is left to the next one")

// errStopping ends a dry run when the gateway stops: it has no row, and nobody can
// take it up.
var errStopping = fault.New(fault.Interrupted, "the gateway was stopped while the program ran").
	WithHint("send it again in a few seconds; a dry run has changed nothing")

// errNotRunning refuses a request before Start and after Drain.
var errNotRunning = fault.New(fault.Unavailable, "the gateway is stopping").WithHint("try again in a few seconds")

// goesOn reports whether a run that has ended here for a reason is taken up again:
// its journal stays, and nothing says that it has ended.
func goesOn(cause error) bool {
	return errors.Is(cause, errLeft) || errors.Is(cause, errSuspended) || errors.Is(cause, errReplanned)
}

// Drain brings the engine's work to its end, and returns when all of it is recorded.
// No run begins any more and no call is sent; those in flight have until the end of
// ctx. A run that has not ended by itself then is left open, as a crash would leave
// it, and without a lease: whoever looks for lost runs next takes it up. One that
// waits for a person is suspended, and a dry run, of which nobody would know, ends.
func (e *Engine) Drain(ctx context.Context) { e.leave(ctx.Done()) }

// Stop is Drain without patience. It may be called twice and without Start.
func (e *Engine) Stop() {
	over := make(chan struct{})
	close(over)
	e.leave(over)
	e.config.Cache.wait()
}

func (e *Engine) leave(over <-chan struct{}) {
	for _, r := range e.shut() {
		rest := r.gate.rest
		if e.config.Brief {
			// The command that has begun the run may have been given up, which is about to
			// cancel it: a run that looks idle must not be left to another gateway before.
			rest = nil
		}
		select {
		case <-r.done:
		case <-rest:
		case <-over:
		}
		r.cancel(errLeft)
	}
	if e.stop != nil {
		e.stop(errStopping)
	}
	e.wg.Wait()
}

// shut has no run and no call begin from now on, and returns the runs in progress.
func (e *Engine) shut() []*activeRun {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.isStopping() {
		close(e.stopping)
	}
	return slices.Collect(maps.Values(e.active))
}

// isStopping reports whether the gateway is about to stop.
func (e *Engine) isStopping() bool {
	select {
	case <-e.stopping:
		return true
	default:
		return false
	}
}

// release leaves a run to whoever takes it up next, and answers who waits for it.
// Where that cannot be written the run is taken up when its lease has ended.
func (e *Engine) release(r *activeRun) *Answer {
	ctx := context.WithoutCancel(r.ctx)
	if err := errors.Join(r.gate.flush(ctx), e.store.ReleaseRun(ctx, r.run.ID, e.owner)); err != nil {
		e.config.Logger.WarnContext(ctx, "a run was not released", "workflow_id", r.run.ID, "error", err)
	}
	a := e.runningAnswer(r)
	a.Next = fmt.Sprintf("the gateway stops, and the next one goes on with the program: do not send it again; "+
		"wait for it there with pml_execute {continue: {workflow_id: %q}}", a.WorkflowID)
	return a
}

// admit counts a call in that is about to be sent; pairs with dismiss. While the
// gateway stops it keeps the call back until the run's end here: it is made when the
// run is taken up again.
func (g *gate) admit(ctx context.Context) error {
	g.mu.Lock()
	keep := g.engine.isStopping()
	if keep {
		g.kept++
		g.settleLocked()
	} else {
		g.calling++
	}
	g.mu.Unlock()
	if !keep {
		return nil
	}
	defer sandbox.Hold(ctx)()
	<-ctx.Done()
	return context.Cause(ctx)
}

func (g *gate) dismiss() {
	g.mu.Lock()
	g.calling--
	g.settleLocked()
	g.mu.Unlock()
}

// settleLocked tells when the run cannot go on here. As no call is admitted after one
// was kept back, that stays so.
func (g *gate) settleLocked() {
	if g.kept == 0 || g.calling > 0 {
		return
	}
	select {
	case <-g.rest:
	default:
		close(g.rest)
	}
}
