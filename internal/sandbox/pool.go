package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pml-run/pml/internal/fault"
)

// ErrStopped is the cause with which Stop ends what still runs.
var ErrStopped = errors.New("the sandbox is stopping")

// Pool keeps warm workers and runs one program in each.
type Pool struct {
	opts     Options
	log      *slog.Logger
	metrics  *metrics
	compiler *compiler
	entry    string // the module that workers start with, a data: URL
	runtime  []byte // what it evaluates

	ctx    context.Context // from Start to Stop
	cancel context.CancelCauseFunc
	jobs   chan func() // for the starters' threads
	wg     sync.WaitGroup
	// runs counts Run calls, so that Stop returns after the last.
	runs sync.WaitGroup

	plan plan // fixed before the first run
	// launch starts one worker; a field for tests.
	launch func(plan) (*worker, error)

	mu       sync.Mutex
	state    poolState
	idle     []*worker
	queue    *queue
	busy     int
	starting int
	asleep   bool      // only a few workers are kept
	lastRun  time.Time // when the last run began or ended
	failure  error     // why the last start of a worker failed; nil after a success
	// changed, set by tests, is called after each change of what Stats shows.
	changed func(Stats)

	started atomic.Int64
}

type poolState int

const (
	created poolState = iota
	running
	stopped
)

// asleepSize is how many idle workers are kept when nothing runs for long.
const asleepSize = 2

// compileCache is how many compiled programs are kept.
const compileCache = 256

// New makes a pool; Start makes it work.
func New(o Options) (*Pool, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("sandbox options: %w", err)
	}
	if o.Deno, err = ResolveDeno(o.Deno); err != nil {
		return nil, err
	}
	p := &Pool{opts: o, log: o.Logger.With("system", "sandbox"), compiler: newCompiler(compileCache), queue: newQueue()}
	p.launch = p.start
	if p.metrics, err = newMetrics(p, o.Registerer); err != nil {
		return nil, fmt.Errorf("sandbox metrics: %w", err)
	}
	return p, nil
}

// Start makes the pool ready: it finds out what this system can enforce, returns
// when the first worker is warm, and says why when there is none.
func (p *Pool) Start(ctx context.Context) error {
	p.mu.Lock()
	if p.state != created {
		p.mu.Unlock()
		return errors.New("sandbox: started before")
	}
	p.state, p.lastRun = running, time.Now()
	p.mu.Unlock()
	text, err := bundleRuntime()
	if err != nil {
		return err
	}
	if p.entry, err = bundleBoot(); err != nil {
		return err
	}
	p.runtime = []byte(text)
	p.compiler.compile("return null", "", "__t", "__s0") // the first use of esbuild takes some milliseconds
	p.ctx, p.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	// One place for each worker that can be asked for, so that asking never waits.
	p.jobs = make(chan func(), p.opts.Size+p.opts.MaxBusy+1)
	for range p.opts.Starters {
		p.wg.Go(p.starter)
	}
	first, err := p.negotiate(ctx)
	if err != nil {
		p.Stop()
		return err
	}
	p.log.InfoContext(ctx, "sandbox ready", "level", p.Level(), "jit", p.plan.jit, "size", p.opts.Size,
		"start_ms", first.took.Milliseconds(), "missing", p.plan.report.Missing)
	p.offer(first)
	if p.opts.IdleAfter > 0 {
		p.wg.Go(p.shrink)
	}
	return nil
}

// starter is one thread that starts workers: Linux ends a worker when the thread
// that started it ends, so these threads live as long as the pool.
func (p *Pool) starter() {
	runtime.LockOSThread()
	for {
		select {
		case <-p.ctx.Done():
			return
		case job := <-p.jobs:
			job()
		}
	}
}

// Stop kills every worker and returns when none is left. Runs end as cancelled.
func (p *Pool) Stop() {
	p.mu.Lock()
	was := p.state
	p.state = stopped
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	if was == created {
		return
	}
	if was == running {
		p.cancelRuns()
	}
	for _, w := range idle {
		w.kill()
		<-w.done
	}
	p.runs.Wait()
	p.wg.Wait()
}

func (p *Pool) cancelRuns() {
	if p.cancel != nil {
		p.cancel(ErrStopped)
	}
}

// Level names what is enforced: "deno", "deno+rlimits", "deno+seccomp" or
// "deno+seccomp+landlock". It is empty before Start has returned.
func (p *Pool) Level() string { return p.Report().Level }

// Stats is a look at the pool.
type Stats struct {
	Level                        string
	Idle, Busy, Starting, Queued int
	Started                      int64 // workers, since Start
}

// Stats returns what the pool does right now.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.statsLocked()
}

func (p *Pool) statsLocked() Stats {
	return Stats{
		Level: p.plan.report.Level, Idle: len(p.idle), Busy: p.busy, Starting: p.starting, Queued: p.queue.size,
		Started: p.started.Load(),
	}
}

func (p *Pool) changedLocked() {
	if p.changed != nil {
		p.changed(p.statsLocked())
	}
}

// take returns a warm worker, waiting in the client's line when there is none.
// Pairs with release.
func (p *Pool) take(ctx context.Context, client string) (*worker, error) {
	p.mu.Lock()
	if p.state != running || p.plan.report.Level == "" {
		p.mu.Unlock()
		return nil, notRunning()
	}
	p.lastRun, p.asleep = time.Now(), false
	w := p.takeIdleLocked()
	if w != nil {
		p.replenishLocked(p.opts.Size / 2)
		p.mu.Unlock()
		return w, nil
	}
	if p.queue.size >= p.opts.QueueLimit {
		err := p.unavailableLocked("the queue in front of the sandbox is full")
		p.mu.Unlock()
		return nil, err
	}
	t := p.queue.push(client)
	p.replenishLocked(p.opts.Size)
	p.changedLocked()
	p.mu.Unlock()
	return p.await(ctx, t)
}

func (p *Pool) await(ctx context.Context, t *ticket) (*worker, error) {
	timer := time.NewTimer(p.opts.QueueWait)
	defer timer.Stop()
	select {
	case w := <-t.worker:
		return w, nil
	case <-ctx.Done():
	case <-timer.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.queue.remove(t) {
		return <-t.worker, nil // served at the same moment
	}
	if ctx.Err() != nil {
		return nil, cancelled(ctx)
	}
	return nil, p.unavailableLocked(fmt.Sprintf("no worker became free within %s", p.opts.QueueWait))
}

func (p *Pool) unavailableLocked(why string) error {
	e := fault.New(fault.Unavailable, "%s: %d programs are waiting, %d are running", why, p.queue.size, p.busy)
	if p.failure != nil {
		return e.WithHint("workers do not start, see 'pml doctor': %v", p.failure)
	}
	return e.WithHint("try again in a few seconds, with fewer programs at a time")
}

// takeIdleLocked takes the newest idle worker that still lives.
func (p *Pool) takeIdleLocked() *worker {
	for len(p.idle) > 0 && p.busy < p.opts.MaxBusy {
		w := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if !w.gone() {
			p.busy++
			return w
		}
		w.kill()
		p.metrics.killed("died_idle")
	}
	return nil
}

// release kills a worker after its run and has another started.
func (p *Pool) release(w *worker) {
	w.kill()
	p.mu.Lock()
	p.busy--
	p.lastRun = time.Now()
	p.serveLocked()
	p.replenishLocked(p.opts.Size)
	p.changedLocked()
	p.mu.Unlock()
}

// offer puts a warm worker to use.
func (p *Pool) offer(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == stopped {
		w.kill()
		return
	}
	p.idle = append(p.idle, w)
	p.serveLocked()
	p.replenishLocked(p.opts.Size)
	p.changedLocked()
}

// serveLocked gives idle workers to those who wait.
func (p *Pool) serveLocked() {
	for p.queue.size > 0 {
		w := p.takeIdleLocked()
		if w == nil {
			return
		}
		p.queue.pop().worker <- w
	}
}

// replenishLocked has workers started until enough are idle or about to be. A run
// of a short program is not disturbed by a start as long as low of them are left.
func (p *Pool) replenishLocked(low int) {
	if p.state != running || p.plan.report.Level == "" || len(p.idle)+p.starting >= max(low, min(p.queue.size, p.opts.Size)) {
		return
	}
	want := p.opts.Size
	if p.asleep {
		want = asleepSize
	}
	for len(p.idle)+p.starting < want && p.busy+len(p.idle)+p.starting < p.opts.Size+p.opts.MaxBusy {
		p.starting++
		p.jobs <- p.startOne
	}
}

// startBackoff is the pause after a worker did not start.
const startBackoff = 200 * time.Millisecond

// startOne starts one worker, on a starter's thread.
func (p *Pool) startOne() {
	w, err := p.launch(p.plan)
	p.mu.Lock()
	p.starting--
	p.failure = err
	p.mu.Unlock()
	if err == nil {
		p.offer(w)
		return
	}
	p.log.WarnContext(p.ctx, "a sandbox worker did not start", "error", err)
	select {
	case <-p.ctx.Done():
	case <-time.After(startBackoff):
		p.mu.Lock()
		p.replenishLocked(p.opts.Size)
		p.mu.Unlock()
	}
}

// shrink lets workers go when nothing has run for long.
func (p *Pool) shrink() {
	tick := time.NewTicker(p.opts.IdleAfter / 2)
	defer tick.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-tick.C:
		}
		p.letGo(time.Now())
	}
}

// letGo ends the workers that are too many when nothing has run for long.
func (p *Pool) letGo(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy > 0 || p.queue.size > 0 || now.Sub(p.lastRun) < p.opts.IdleAfter {
		return
	}
	p.asleep = true
	for len(p.idle) > asleepSize {
		p.idle[0].kill()
		p.idle = p.idle[1:]
	}
	p.changedLocked()
}

// start starts one worker as a plan says.
func (p *Pool) start(pl plan) (*worker, error) {
	name, args := pl.spec(p.opts, p.entry).Command(p.opts.Self)
	p.started.Add(1)
	w, err := startWorker(&p.wg, p.runtime, name, args)
	if err != nil {
		return nil, err
	}
	p.metrics.spawn.Observe(w.took.Seconds())
	return w, nil
}

// onThread runs f on a starter's thread and waits for it.
func (p *Pool) onThread(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case p.jobs <- func() { defer close(done); f() }:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	<-done
	return nil
}
