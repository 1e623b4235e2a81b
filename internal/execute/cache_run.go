package execute

import (
	"bytes"
	"context"
	"slices"

	"github.com/pml-run/pml/internal/trace"
)

// fromCache answers a request with the result of an earlier run, as a run of its own;
// nil where it has to run. Then the program knows how its result is to be kept.
func (e *Engine) fromCache(ctx context.Context, req Request, ready *prepared) *Answer {
	c := e.config.Cache
	if !c.on(ctx) || req.Options.PerLayer {
		return nil
	}
	plan := planCache(e.upstream.Catalog(), req, ready)
	if plan == nil {
		return nil
	}
	ready.cache = plan
	f, ok := c.find(ctx, plan, !req.Options.mayUseCache())
	if !ok {
		return nil
	}
	return e.answerWith(ctx, req, ready, f)
}

// answerWith answers a request with a result that was kept; nil while the engine stops.
func (e *Engine) answerWith(ctx context.Context, req Request, ready *prepared, f found) *Answer {
	if !e.enter() {
		return nil
	}
	defer e.wg.Done()
	run := e.newRow(req, ready, trace.Succeeded)
	run.Result, run.FinishedAt = f.result, e.now()
	run.Duration = run.FinishedAt.Sub(run.StartedAt)
	t := trace.Trace{
		Run: run, CapabilityVersion: ready.capability.Version, Arguments: ready.arguments, ExecutedPath: []string{}, Decisions: []trace.Decision{},
		Calls: []trace.Call{}, ToolsUsed: toolsUsed(nil), Success: true, CacheHit: f.level, SandboxLevel: e.sandbox.Level(),
	}
	learnt, err := e.commit(ctx, []Finished{{Trace: t, Capability: &ready.capability}})
	if err != nil {
		return e.refused(err)
	}
	a := &Answer{
		Status: StatusSuccess, WorkflowID: run.ID.String(), Trace: summarize(t), Capability: ready.used(learnt),
		CacheHit: f.level, CacheAgeMS: milliseconds(f.age),
	}
	a.setResult(f.result)
	return a
}

// remember gives the cache what a run has come to: its result, or its failure.
func (e *Engine) remember(r *activeRun, finished []Finished) {
	c := e.config.Cache
	if !c.on(r.ctx) {
		return
	}
	ctx := context.WithoutCancel(r.ctx)
	for _, f := range finished {
		if f.Trace.Run.Status == trace.Failed {
			c.failed(ctx, f.Trace.Run.Capability)
		}
	}
	p := r.ready.cache
	if p == nil || !p.keep || r.gate.held.Load() || !keepable(p, finished) {
		return
	}
	run := finished[0].Trace.Run
	c.keepInMemory(p, r.ready.capability.Name, run.Result, run.StartedAt)
	c.keepInStore(ctx, p, run.Result)
	v, _ := e.config.Matcher.(Vectors)
	c.keepIntent(ctx, v, p, r, run.Result)
}

// keepable reports whether a run may stand for later ones: it succeeded without a
// failed call, called nothing that was not foreseen, printed nothing that a later
// answer would lack, and returns nothing that is read through its own calls.
func keepable(p *cachePlan, finished []Finished) bool {
	run := finished[0].Trace.Run
	if len(run.Logs) > 0 || len(run.Result) == 0 || len(run.Result) > maxCached || bytes.Contains(run.Result, []byte(`"data_ref"`)) {
		return false
	}
	for _, f := range finished {
		wrong := func(c trace.Call) bool { return c.Status != trace.CallOK || !slices.Contains(p.tools, c.Tool) }
		if f.Trace.Run.Status != trace.Succeeded || slices.ContainsFunc(f.Trace.Calls, wrong) {
			return false
		}
	}
	return true
}
