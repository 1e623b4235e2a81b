package upstream

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pml-run/pml/internal/config"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
)

// The states of a server.
const (
	StateStarting    = "starting"
	StateReady       = "ready"
	StateFailed      = "failed"  // it will be tried again
	StateStopped     = "stopped" // lazy and not yet called, or the gateway stops
	StateDisabled    = "disabled"
	StateOpenBreaker = "open-breaker"
)

// Times of a link.
const (
	connectTimeout = 30 * time.Second
	installTimeout = 4 * time.Minute // where the first start fetches a package
	firstBackoff   = 250 * time.Millisecond
	lastBackoff    = time.Minute
	steadyAfter    = 30 * time.Second // a session this old starts the back-off anew
)

// Causes of a cancelled call.
var (
	errCallTimeout = errors.New("the server did not answer in time")
	errStopping    = errors.New("the gateway is stopping or the server's configuration has changed")
)

// link keeps one configured server connected: run opens a session, serves until
// it ends, and opens the next. Calls wait on changed for the state they need.
type link struct {
	m       *Manager
	name    string
	config  config.Server
	log     *slog.Logger
	slots   chan struct{}
	breaker *breaker
	wake    chan struct{} // a call wants a session now
	relist  chan struct{} // the server's list has changed
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when run has returned

	noise    atomic.Int64
	stopping atomic.Bool // set before the session is closed on purpose
	legacy   bool        // owned by run

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced with each change of state
	state    string
	err      error
	session  *session
	opened   int // sessions so far
	tries    int // connects so far, failed ones included
	protocol string
	stderr   string
}

func newLink(m *Manager, name string, c config.Server) *link {
	l := &link{
		m: m, name: name, config: c,
		log:     m.log.With("server", name),
		slots:   make(chan struct{}, c.Concurrency()),
		breaker: &breaker{now: m.now},
		wake:    make(chan struct{}, 1),
		relist:  make(chan struct{}, 1),
		done:    make(chan struct{}),
		changed: make(chan struct{}),
		state:   StateStarting,
	}
	switch {
	case c.Disabled:
		l.state = StateDisabled
	case c.Problem != "":
		l.state = StateFailed
		l.err = fault.New(fault.UpstreamUnavailable, "server %q cannot be started: %s", name, c.Problem)
	case c.Lazy():
		l.state = StateStopped
	}
	return l
}

// run owns the sessions of the link until ctx ends.
func (l *link) run(ctx context.Context) {
	defer close(l.done)
	defer l.set(StateStopped, nil, nil)
	if l.config.Disabled || l.config.Problem != "" {
		l.m.saveState(ctx, l)
		<-ctx.Done()
		return
	}
	if l.config.Lazy() && !l.pause(ctx, -1) {
		return
	}
	for failures := 0; ctx.Err() == nil; failures++ {
		began := l.m.now()
		s, tools, err := l.connect(ctx)
		if err == nil {
			err = l.serve(ctx, s, tools)
		}
		if ctx.Err() != nil {
			return
		}
		if l.m.now().Sub(began) > steadyAfter {
			failures = 0
		}
		l.set(StateFailed, nil, err)
		l.m.saveState(ctx, l)
		l.log.WarnContext(ctx, "server is not connected", "error", err)
		if !l.pause(ctx, backoff(failures)) {
			return
		}
	}
}

// backoff doubles from the first to the last, with up to a fifth of jitter.
func backoff(failures int) time.Duration {
	d := min(firstBackoff<<min(failures, 16), lastBackoff)
	return d + rand.N(d/5) //nolint:gosec // jitter needs no secrecy
}

// pause waits for d, or for a call that wants a session; a negative d waits for
// a call only. It reports false when ctx has ended.
func (l *link) pause(ctx context.Context, d time.Duration) bool {
	var after <-chan time.Time
	if d >= 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		after = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-after:
	case <-l.wake:
	}
	return true
}

// connect opens a session and lists its tools.
func (l *link) connect(ctx context.Context) (*session, []tool.Tool, error) {
	l.set(StateStarting, nil, nil)
	ctx, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	var heard atomic.Bool
	s, err := open(ctx, l.sessionOptions(&heard))
	if err != nil {
		// A server that said nothing at all may have died of the unknown first
		// request: the next attempt begins with initialize.
		l.legacy = !heard.Load() && !l.legacy
		return nil, nil, err
	}
	tools, err := l.list(ctx, s)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = fault.New(fault.UpstreamUnavailable, "server %q did not list its tools in time", l.name).
				WithHint("%s", lastWords(s.stderr()))
		}
		s.close()
		return nil, nil, err
	}
	return s, tools, nil
}

// installers are programs that fetch a server's package before they start it.
// Killed half-way they leave a cache in which the package is broken for good.
var installers = []string{"npx", "bunx", "uvx", "pipx", "pnpm", "yarn", "docker", "podman"}

// patience is how long a connect may take.
func (l *link) patience() time.Duration {
	if slices.Contains(installers, filepath.Base(l.config.Command)) {
		return max(l.m.connectTimeout, installTimeout)
	}
	return l.m.connectTimeout
}

func (l *link) sessionOptions(heard *atomic.Bool) sessionOptions {
	o := l.m.opts
	return sessionOptions{
		name: l.name, config: l.config, environ: o.Environ, version: o.Version,
		lineLimit: l.m.lineLimit, patient: l.m.connectTimeout / 3,
		roots: o.Roots, watchdog: o.Watchdog, log: l.log, legacy: l.legacy, heard: heard,
		elicit:  o.Elicit,
		skipped: l.skipped,
		changed: func() {
			select {
			case l.relist <- struct{}{}:
			default: // one refresh is enough for many changes
			}
		},
	}
}

// skipped counts noise; the first lines of it are worth a log entry.
func (l *link) skipped(text string) {
	l.m.metrics.noise.WithLabelValues(l.name).Inc()
	if l.noise.Add(1) <= 3 {
		l.log.Warn("skipped a line that is no JSON-RPC", "line", text)
	}
}

// list asks for the tools; a server that has no tools at all has an empty list.
func (l *link) list(ctx context.Context, s *session) ([]tool.Tool, error) {
	tools, problems, err := s.list(ctx)
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && wire.Code == jsonrpc.CodeMethodNotFound {
		return nil, nil
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, s.callFailed(err)
	}
	for i, p := range problems {
		if i == 10 {
			l.log.WarnContext(ctx, "more problems in the list of tools", "count", len(problems)-i)
			break
		}
		l.log.WarnContext(ctx, "problem in the list of tools", "tool", p.Tool, "problem", p.Message)
	}
	return tools, nil
}

// serve keeps the session until it ends by itself or ctx does.
func (l *link) serve(ctx context.Context, s *session, tools []tool.Tool) error {
	l.m.publish(ctx, l.name, tools)
	l.set(StateReady, s, nil)
	l.m.saveState(ctx, l)
	l.m.metrics.ready.WithLabelValues(l.name).Set(1)
	defer l.m.metrics.ready.WithLabelValues(l.name).Set(0)
	for {
		select {
		case <-ctx.Done():
			l.stopping.Store(true)
			l.set(StateStopped, nil, nil)
			s.close()
			return ctx.Err()
		case <-s.done:
			err := s.ended()
			l.set(StateFailed, nil, err)
			s.close()
			return err
		case <-l.relist:
			l.refresh(ctx, s)
		}
	}
}

// refresh lists again; on failure the old list stays.
func (l *link) refresh(ctx context.Context, s *session) {
	ctx, cancel := context.WithTimeout(ctx, l.m.connectTimeout)
	defer cancel()
	tools, err := l.list(ctx, s)
	if err != nil {
		l.log.WarnContext(ctx, "list of tools could not be refreshed", "error", err)
		return
	}
	l.m.publish(ctx, l.name, tools)
}

// set changes the state and wakes who waits for it.
func (l *link) set(state string, s *session, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != nil && s == nil {
		l.stderr = l.session.stderr()
	}
	l.state, l.session = state, s
	switch state {
	case StateStarting:
		l.tries++
	case StateReady:
		if l.opened++; l.opened > 1 {
			l.m.metrics.restarts.WithLabelValues(l.name).Inc()
		}
		l.protocol, _ = s.protocol()
		l.err = nil
	case StateFailed:
		l.err = err
	}
	close(l.changed)
	l.changed = make(chan struct{})
}
