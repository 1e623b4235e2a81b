package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pml-run/pml/internal/sandbox/jail"
)

// Report says what is enforced here, for people.
type Report struct {
	Deno    string // path of the executable
	Level   string
	Layers  jail.Layers
	JIT     bool
	Missing []string // what is not enforced, and why
}

// plan is how workers are started.
type plan struct {
	report   Report
	reads    jail.Reads
	layers   jail.Layers
	jit      bool
	baseline uint64 // RLIMIT_DATA of an idle worker; 0 = unknown
}

const (
	// cpuBackstop ends a worker that nobody watches any more, in seconds. A run's
	// own, lower limit is set when it begins.
	cpuBackstop = 600
	// semiSpaceMB bounds the room for young objects, of which V8 has three. Its own
	// choice of 16 leaves too little of a small limit for anything else.
	semiSpaceMB = 8
)

// spec is the command of one worker.
func (pl plan) spec(o Options, entry string) jail.Spec {
	flags := []string{
		"--max-old-space-size=" + strconv.Itoa(max(32, o.MemoryMB)), "--max-semi-space-size=" + strconv.Itoa(semiSpaceMB),
		// Dropped buffers are freed before the next ones are made: a thread of its own
		// for that falls behind on a busy machine, and the limit ends the program.
		"--no-concurrent-array-buffer-sweeping",
	}
	if !pl.jit {
		flags = append(flags, "--jitless")
	}
	s := jail.Spec{Binary: o.Deno, Layers: pl.layers, Reads: pl.reads, CPU: cpuBackstop}
	// No remote and no npm: without these flags a program without any permission
	// may still import code from Deno's default hosts, and so send data there.
	s.Args = []string{
		"run", "--no-prompt", "--no-config", "--no-lock", "--no-remote", "--no-npm", "--no-code-cache",
		"--v8-flags=" + strings.Join(flags, ","), entry,
	}
	if pl.baseline > 0 {
		s.Data = pl.dataLimit(o.MemoryMB)
	}
	return s
}

// dataLimit is the RLIMIT_DATA that leaves a program this much memory, in objects, in
// buffers or in both. V8 limits the objects by itself. It needs a margin on top, for
// young objects and for garbage: it counts buffers outside its heap only now and then,
// and gives up when it cannot have a page in the middle of a collection.
func (pl plan) dataLimit(memoryMB int) uint64 {
	return pl.baseline + uint64(memoryMB+max(32, memoryMB/4))<<20
}

// negotiate finds the strongest plan that works here, by starting a worker with
// each, and returns the first worker.
func (p *Pool) negotiate(ctx context.Context) (*worker, error) {
	support := jail.Detect()
	full := support.Layers.Without(p.opts.Without)
	if p.opts.Require == "full" && full != jail.Full() {
		return nil, fmt.Errorf("sandbox.require is full, but this system does not offer every layer: %s", strings.Join(support.Missing, "; "))
	}
	attempts := []jail.Layers{full}
	if p.opts.Require != "full" {
		attempts = append(attempts, full.Without(jail.Layers{Landlock: true}), full.Without(jail.Layers{Landlock: true, Seccomp: true}), jail.Layers{})
	}
	reads := jail.Libraries(ctx, p.opts.Deno)
	missing := support.Missing
	var failures error
	tried := map[jail.Layers]bool{}
	for _, layers := range attempts {
		if tried[layers] {
			continue
		}
		tried[layers] = true
		pl := p.planFor(layers, reads)
		w, err := p.first(ctx, &pl)
		if err != nil {
			failures = errors.Join(failures, fmt.Errorf("%s: %w", pl.report.Level, err))
			missing = append(missing, fmt.Sprintf("%s: a worker does not start with it: %v", pl.report.Level, err))
			continue
		}
		pl.report.Missing = missing
		p.mu.Lock()
		p.plan = pl
		p.mu.Unlock()
		return w, nil
	}
	return nil, fmt.Errorf("no sandbox worker starts; check that %s is a working Deno 2.9 or later: %w", p.opts.Deno, failures)
}

func (p *Pool) planFor(layers jail.Layers, reads jail.Reads) plan {
	jit := p.opts.JIT == "on" || p.opts.JIT == "auto" && layers == jail.Full()
	return plan{layers: layers, reads: reads, jit: jit, report: Report{
		Deno: p.opts.Deno, Level: level(layers), Layers: layers, JIT: jit,
	}}
}

func level(l jail.Layers) string {
	switch {
	case l.Seccomp && l.Landlock:
		return "deno+seccomp+landlock"
	case l.Seccomp:
		return "deno+seccomp"
	case l.Rlimits:
		return "deno+rlimits"
	}
	return "deno"
}

// first starts a worker with a plan and measures it for the memory limit of those
// to come.
func (p *Pool) first(ctx context.Context, pl *plan) (*worker, error) {
	var w *worker
	var err error
	if threadErr := p.onThread(ctx, func() { w, err = p.start(*pl) }); threadErr != nil {
		return nil, threadErr
	}
	if err != nil {
		return nil, err
	}
	if pl.layers.Rlimits {
		if pl.baseline, err = dataSize(w.pid()); err != nil {
			p.log.WarnContext(ctx, "the memory of workers is limited by V8 only", "error", err)
		}
	}
	return w, nil
}

// Report says what is enforced; the zero value before Start has returned.
func (p *Pool) Report() Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plan.report
}
