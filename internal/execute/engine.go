package execute

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// Store keeps runs: a row before a run starts, the journal while it goes, and
// the trace in one transaction before the answer.
type Store interface {
	BeginRun(ctx context.Context, run trace.Run) error
	RecordCalls(ctx context.Context, run uuid.UUID, calls []trace.Call) error
	// Finish stores finished runs, a run before those inside it, and learns from
	// them, in one transaction. It tells what the first one has done.
	Finish(ctx context.Context, finished []Finished) (Learnt, error)
	ExtendLeases(ctx context.Context, owner string, until time.Time) error
	Trace(ctx context.Context, id uuid.UUID) (trace.Trace, error)
	RunResult(ctx context.Context, id uuid.UUID) (json.RawMessage, time.Time, error)
	OpenRuns
	ApprovalStore
	Recorded

	// UpsertCandidate stores a program that was analysed, or finds it.
	UpsertCandidate(ctx context.Context, c capability.Capability) (stored capability.Capability, created bool, err error)
	Capability(ctx context.Context, nameOrID string) (capability.Capability, error)
	// CapabilityAt returns a capability at one of its versions; 0 is its head.
	CapabilityAt(ctx context.Context, nameOrID string, version int) (capability.Capability, error)
	AddDependency(ctx context.Context, from, to uuid.UUID, kind capability.EdgeType) error
}

// Upstream reaches the tools.
type Upstream interface {
	Catalog() *tool.Catalog
	Resolve(ctx context.Context, server, name string) (tool.Tool, error)
	Call(ctx context.Context, id tool.ID, args json.RawMessage, onProgress func(done, total float64, message string)) (json.RawMessage, error)
}

// Sandbox runs a program, its calls going to host.
type Sandbox interface {
	Run(ctx context.Context, program sandbox.Program, host sandbox.Host) (sandbox.Outcome, error)
	Level() string
}

// Config of an Engine; the zero value of a field means its default.
type Config struct {
	Logger  *slog.Logger
	Version string // the gateway's
	Limits  sandbox.Limits
	// Exclusive says that no other gateway shares the store, so that every run
	// that is open at start has lost its owner.
	Exclusive bool
	// Brief says that the gateway is there for one command: runs that are lost, or may
	// go on, are left to one that stays.
	Brief bool
	// Rules decide about calls; nil allows every call.
	Rules Rules
	// Matcher finds what an intent alone asks for; nil: every request needs a program.
	Matcher Matcher
	// Cache may answer runs that only read; nil: every run is carried out.
	Cache *Cache
	// Approvals say how persons are asked; nil means the defaults.
	Approvals func() ApprovalOptions
	Now       func() time.Time
	NewID     func() uuid.UUID
	NewSeed   func() uint32 // of a run's randomness
}

// The lease of a run is extended well before it ends, so that one slow write
// does not make a living run look lost.
const (
	leaseFor   = 45 * time.Second
	leaseEvery = 10 * time.Second
)

// Engine carries requests out. Its runs outlive the calls that asked for them.
type Engine struct {
	store    Store
	upstream Upstream
	sandbox  Sandbox
	config   Config
	owner    string

	validator *tool.Validator
	planner   *planner

	started    time.Time
	recovering atomic.Bool
	ctx        context.Context // the engine's own life, between Start and Stop
	stop       context.CancelCauseFunc
	wg         sync.WaitGroup

	stopping chan struct{} // closed under mu when nothing may begin any more

	mu     sync.Mutex
	active map[uuid.UUID]*activeRun
}

// activeRun is a run in progress on this gateway.
type activeRun struct {
	run          trace.Run
	ready        *prepared
	gate         *gate
	allowPartial bool
	byName       bool // a capability was asked for, not code

	ctx    context.Context // the run's own: it outlives the call that asked for it
	cancel context.CancelCauseFunc
	done   chan struct{}
	answer *Answer // set before done is closed

	changed   chan struct{} // has a value when questions may have grown
	mu        sync.Mutex
	questions []question // held calls
}

// errCancelled is the cause of a run's end when its client gave up.
var errCancelled = fault.New(fault.Cancelled, "the client cancelled the request")

// New makes an Engine over its three collaborators.
func New(store Store, upstream Upstream, box Sandbox, config Config) *Engine {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Rules == nil {
		config.Rules = permissive{}
	}
	if config.Approvals == nil {
		config.Approvals = func() ApprovalOptions { return ApprovalOptions{} }
	}
	if config.NewSeed == nil {
		config.NewSeed = rand.Uint32
	}
	if config.NewID == nil {
		config.NewID = func() uuid.UUID { return uuid.Must(uuid.NewV7()) }
	}
	config.Logger = config.Logger.With("system", "execute")
	unusable := func(id tool.ID, err error) {
		config.Logger.Warn("the tool's input schema cannot be used; its arguments are not checked", "tool", id, "error", err)
	}
	return &Engine{
		validator: tool.NewValidator(unusable), planner: newPlanner(store, upstream),
		store: store, upstream: upstream, sandbox: box, config: config,
		owner: config.NewID().String(), active: map[uuid.UUID]*activeRun{}, stopping: make(chan struct{}),
	}
}

// now is the time as the database keeps it: what is computed from a stored time and
// from this one is the same.
func (e *Engine) now() time.Time { return e.config.Now().Truncate(time.Microsecond) }

// Start takes up the runs that lost their gateway and begins to keep leases.
func (e *Engine) Start(ctx context.Context) error {
	e.ctx, e.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	e.started = e.now()
	if err := e.recoverLost(ctx, e.started); err != nil {
		return err
	}
	e.wg.Go(e.keepLeases)
	return nil
}

func (e *Engine) keepLeases() {
	tick := time.NewTicker(leaseEvery)
	defer tick.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-tick.C:
		}
		now := e.config.Now()
		err := errors.Join(
			e.store.ExtendLeases(e.ctx, e.owner, now.Add(leaseFor)),
			e.recoverLost(e.ctx, now),
			e.expire(e.ctx),
		)
		if err != nil && e.ctx.Err() == nil {
			e.config.Logger.WarnContext(e.ctx, "leases not kept", "error", err)
		}
	}
}

// lostBefore is the end of a lease from which on a run is lost. Where no other
// gateway shares the store, a run that is not ours has lost its own, whatever its
// lease says.
func (e *Engine) lostBefore(now time.Time) time.Time {
	if e.config.Exclusive && now.Before(e.started.Add(leaseFor)) {
		return e.started.Add(leaseFor)
	}
	return now
}

// running finds a run that is in progress here.
func (e *Engine) running(id uuid.UUID) (*activeRun, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r, ok := e.active[id]
	return r, ok
}

// abort ends a run in progress here for a reason.
func (e *Engine) abort(id uuid.UUID, reason error) {
	if r, ok := e.running(id); ok {
		r.cancel(reason)
	}
}

// Active returns the state of a run that is in progress here: its row and the
// calls made so far.
func (e *Engine) Active(id uuid.UUID) (trace.Run, []trace.Call, bool) {
	r, ok := e.running(id)
	if !ok {
		return trace.Run{}, nil, false
	}
	return r.run, r.gate.snapshot(), true
}

// Cancel ends a run in progress here; it reports whether there was one.
func (e *Engine) Cancel(id uuid.UUID) bool {
	r, ok := e.running(id)
	if ok {
		r.cancel(errCancelled)
	}
	return ok
}

func (e *Engine) register(r *activeRun) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isStopping() {
		return errNotRunning
	}
	e.active[r.run.ID] = r
	e.wg.Add(1) // pairs with Done in carryOut
	return nil
}

// enter keeps the engine from stopping until wg.Done; false where it is.
func (e *Engine) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isStopping() {
		return false
	}
	e.wg.Add(1)
	return true
}

func (e *Engine) unregister(id uuid.UUID) {
	e.mu.Lock()
	delete(e.active, id)
	e.mu.Unlock()
}
