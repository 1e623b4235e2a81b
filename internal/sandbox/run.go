package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox/wire"
)

// Causes with which a run's context ends.
var (
	errEnded = errors.New("the program has ended")
	errWall  = errors.New("wall-clock limit")
	errCPU   = errors.New("CPU limit")
)

// Run runs a program in a worker of its own and answers its calls through host. An
// error is a *fault.Error; the outcome holds what is known in either case.
func (p *Pool) Run(ctx context.Context, prog Program, host Host) (Outcome, error) {
	if !p.enter() {
		return Outcome{}, notRunning()
	}
	defer p.runs.Done()
	prog.Limits = prog.Limits.withDefaults()
	prog.Limits.MemoryMB = min(prog.Limits.MemoryMB, p.opts.MemoryMB)
	if prog.Recorder == "" {
		prog.Recorder = "__t"
	}
	if prog.Frame == "" {
		prog.Frame = "__s0"
	}
	if prog.Original == "" {
		prog.Original = prog.Source
	}
	start, units, err := p.prepare(prog)
	if err != nil {
		return Outcome{Level: p.Level()}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errEnded)
	defer context.AfterFunc(p.ctx, func() { cancel(ErrStopped) })()
	w, err := p.take(ctx, prog.Client)
	if err != nil {
		return Outcome{Level: p.Level()}, err
	}
	defer p.release(w)
	s := newSession(p, w, prog, units, host)
	err = s.run(ctx, start)
	reason := "done"
	if err != nil {
		reason = string(fault.CodeOf(err))
	}
	p.metrics.killed(reason)
	return s.out, err
}

// enter counts a run in, unless the pool does not run; pairs with runs.Done.
func (p *Pool) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != running || p.plan.report.Level == "" {
		return false
	}
	p.runs.Add(1)
	return true
}

func notRunning() error {
	return fault.New(fault.Unavailable, "the sandbox is not running").
		WithHint("the gateway is starting or stopping: try again in a few seconds")
}

// prepare compiles a program and makes the message that starts it.
func (p *Pool) prepare(prog Program) ([]byte, map[string]unit, error) {
	units := map[string]unit{}
	main, msg := p.compiler.compile(prog.Source, "", prog.Recorder, prog.Frame)
	if msg != nil {
		return nil, nil, syntaxFault(prog, *msg)
	}
	units[""] = main
	l := prog.Limits
	m := wire.Program{
		Source: main.js, Args: prog.Args, Capabilities: map[string]string{},
		Limits: wire.ProgramLimits{
			Argument: l.Argument, Result: l.Result, LogLines: l.LogLines, LogBytes: l.LogBytes, Records: l.Records, Depth: l.Depth,
		},
	}
	if len(m.Args) == 0 {
		m.Args = json.RawMessage("{}")
	}
	if prog.Seed != nil {
		m.Seed = &wire.Seed{Now: prog.Seed.Now.UnixMilli(), Random: prog.Seed.Random}
	}
	for name, source := range prog.Capabilities {
		u, msg := p.compiler.compile(source, name, prog.Recorder, prog.Frame)
		if msg != nil {
			return nil, nil, capabilitySyntaxFault(name, source, *msg)
		}
		units[name], m.Capabilities[name] = u, u.js
	}
	start, err := json.Marshal(m)
	if err != nil {
		return nil, nil, fault.New(fault.InvalidInput, "the program's args are not JSON: %v", err).WithHint("pass args as a JSON object")
	}
	return start, units, nil
}

// limitWorker narrows a worker's limits to those of its run, as the system's own
// backstop: the gateway measures by itself.
func (p *Pool) limitWorker(w *worker, l Limits, used time.Duration) error {
	if !p.plan.layers.Rlimits {
		return nil
	}
	var data uint64
	if p.plan.baseline > 0 {
		data = p.plan.dataLimit(l.MemoryMB)
	}
	seconds := math.Ceil((used + l.CPU).Seconds()) + 1
	return limitProcess(w.pid(), data, uint64(min(seconds, cpuBackstop)))
}
