package execute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// The journal writes results of this many bytes through at once, so that they do
// not gather in memory, and keeps at most this many finished calls unwritten.
const (
	journalLarge   = 64 << 10
	journalPending = 64
)

// gate is the one place that every inner call of a run passes: the name is
// resolved, the policy is asked, the arguments are checked, the journal is written
// before what may have a side effect, the tool is called, its result unwrapped and
// recorded. A run that is resumed gets the results of its earlier calls here.
type gate struct {
	engine   *Engine
	run      trace.Run
	inner    map[string]inner
	progress func(done, total float64, message string)
	log      func(text string)
	past     *journal
	consent  *consent
	// began are the runs of capabilities that an earlier attempt has begun, by the
	// frame that each began in.
	began  map[int]uuid.UUID
	held   atomic.Bool // a person was asked meanwhile
	layers bool        // the program stops after layers

	trusted bool // a person vouches for tools that claim nothing
	written written

	mu      sync.Mutex
	ledgers map[int]*ledger // by the frame that a program or capability began in
	calling int             // calls that tools are working on
	kept    int             // calls that were kept back, because the gateway stops
	last    time.Time       // when the last reply came

	rest chan struct{} // closed when calls were kept back and no tool works on one
}

var _ sandbox.Host = (*gate)(nil)

func newGate(e *Engine, run trace.Run, ready *prepared, req Request) *gate {
	return &gate{
		engine: e, run: run, inner: ready.inner, progress: req.Progress, log: req.Log, layers: req.Options.PerLayer, consent: &consent{}, last: run.StartedAt, trusted: ready.cache.trusted(),
		ledgers: map[int]*ledger{0: newLedger(run.ID, 0)}, rest: make(chan struct{}),
	}
}

// Call carries one inner call out. Its error reaches the program as a ToolError.
func (g *gate) Call(ctx context.Context, c sandbox.Call) (sandbox.Reply, error) {
	if g.isCheckpoint(c) {
		return g.checkpoint(ctx, c)
	}
	l, err := g.ledger(ctx, c)
	if err != nil {
		return sandbox.Reply{}, err
	}
	at := place{c.Root, c.NodeID, c.Occurrence}
	target, err := g.engine.upstream.Resolve(ctx, c.Server, c.Tool)
	if err == nil {
		err = g.engine.validator.Validate(target, c.Args)
	}
	if err != nil {
		return g.refuse(ctx, l, at, c, tool.MakeID(c.Server, c.Tool), err)
	}
	past, ended, err := g.past.find(at, g.entry(c, target.ID, trace.CallStarted), target)
	if err != nil {
		g.engine.abort(g.run.ID, err)
		return sandbox.Reply{}, err
	}
	if ended {
		return g.repeat(ctx, l, at, c, past)
	}
	if err := g.permit(ctx, at, c, target); err != nil {
		return g.refuse(ctx, l, at, c, target.ID, err)
	}
	return g.make(ctx, l, at, c, target)
}

// make sends the call.
func (g *gate) make(ctx context.Context, l *ledger, at place, c sandbox.Call, target tool.Tool) (sandbox.Reply, error) {
	if err := g.admit(ctx); err != nil {
		return sandbox.Reply{}, err
	}
	defer g.dismiss()
	i := l.add(g.entry(c, target.ID, trace.CallStarted), c.Seq)
	if err := g.open(ctx, l, i, target); err != nil {
		return g.reply(ctx, l, at, i, !target.ReadOnly(), nil, err)
	}
	if !target.ReadOnly() && (!g.trusted || claimsToWrite(target)) {
		g.written.note(ctx, g.engine.config.Cache, target.ID)
	}
	raw, err := g.engine.upstream.Call(ctx, target.ID, c.Args, g.Progress)
	var value tool.Value
	if err == nil {
		value, err = unwrap(target.ID, raw, c.Raw)
	}
	if err == nil {
		err = g.keepPayloads(ctx, l.run, c, value.Blobs)
	}
	return g.reply(ctx, l, at, i, !target.ReadOnly(), value.JSON, err)
}

// Progress passes on what the program or a tool says of its progress.
func (g *gate) Progress(done, total float64, message string) {
	if g.progress != nil {
		g.progress(done, total, message)
	}
}

// Log passes on what the program says. What a resumed run says again was told before.
func (g *gate) Log(text string) {
	if g.log != nil && g.past == nil {
		g.log(text)
	}
}

// unwrap turns a tool's raw result into the value that the program sees.
func unwrap(id tool.ID, raw json.RawMessage, untouched bool) (tool.Value, error) {
	if untouched {
		return tool.Value{JSON: raw}, nil
	}
	return tool.Unwrap(id, raw)
}

// keepPayloads writes the payloads of a result beside its call, before the program
// learns of them. No tool is named in their entries: they are no calls.
func (g *gate) keepPayloads(ctx context.Context, run uuid.UUID, c sandbox.Call, blobs []tool.Blob) error {
	if len(blobs) == 0 {
		return nil
	}
	entries := make([]trace.Call, len(blobs))
	for i, b := range blobs {
		entries[i] = trace.Call{
			NodeID: payloadNode(c.NodeID, b.Ref), Occurrence: c.Occurrence, Status: trace.CallOK, ContentType: b.MIMEType,
			Result: mustJSON(b.Data), Bytes: int64(len(b.Data)), StartedAt: g.engine.now(),
		}
	}
	if err := g.engine.store.RecordCalls(context.WithoutCancel(ctx), run, entries); err != nil {
		return fault.New(fault.StorageUnavailable, "the payloads of %s:%s could not be kept: %v", c.Server, c.Tool, err)
	}
	return nil
}

// ledger finds the run that a call belongs to. The first call of a capability
// makes the row of its run: a child of ours.
func (g *gate) ledger(ctx context.Context, c sandbox.Call) (*ledger, error) {
	g.mu.Lock()
	l, ok := g.ledgers[c.Root]
	if !ok {
		id, begun := g.began[c.Root]
		if !begun {
			id = g.engine.config.NewID()
		}
		l = newLedger(id, c.Root)
		if !begun {
			l.begin = sync.OnceValue(func() error { return g.engine.store.BeginRun(ctx, g.child(l.run, c.Capability, c.Root)) })
		}
		g.ledgers[c.Root] = l
	}
	g.mu.Unlock()
	if l.begin == nil {
		return l, nil
	}
	return l, l.begin()
}

// innerImplementation is how the run of a capability inside another says what it is.
type innerImplementation struct {
	Implementation

	// Frame is where its code began, which is the same whenever the program runs.
	Frame int `json:"frame"`
}

// child is the run of a capability inside ours.
func (g *gate) child(id uuid.UUID, name string, root int) trace.Run {
	in := g.inner[name]
	r := g.run
	r.ID, r.Parent, r.Capability = id, g.run.ID, in.capability.ID
	r.Intent, r.Args, r.Result = in.capability.Intent, nil, nil
	r.Implementation = mustJSON(innerImplementation{Implementation{Type: CapabilityType, Name: name, Version: in.capability.Version}, root})
	r.StartedAt = g.engine.now()
	return r
}

// open makes sure that a call which may have a side effect is in the journal before
// it is sent, together with every end that the journal lacks.
func (g *gate) open(ctx context.Context, l *ledger, i int, target tool.Tool) error {
	if target.ReadOnly() {
		return nil
	}
	if err := g.engine.store.RecordCalls(ctx, l.run, l.opened(i)); err != nil {
		return fault.New(fault.StorageUnavailable, "%s was not called: its journal entry could not be written: %v", target.ID, err)
	}
	return nil
}

// refuse records a call that never reached its tool.
func (g *gate) refuse(ctx context.Context, l *ledger, at place, c sandbox.Call, id tool.ID, err error) (sandbox.Reply, error) {
	past, ended, findErr := g.past.find(at, g.entry(c, id, trace.CallStarted), tool.Tool{ID: id})
	switch {
	case findErr != nil:
		g.engine.abort(g.run.ID, findErr)
		return sandbox.Reply{}, findErr
	case ended:
		return g.repeat(ctx, l, at, c, past)
	}
	return g.reply(ctx, l, at, l.add(g.entry(c, id, trace.CallError), c.Seq), false, nil, err)
}

// entry is a call as the journal has it.
func (g *gate) entry(c sandbox.Call, id tool.ID, status trace.CallStatus) trace.Call {
	sum := sha256.Sum256(c.Args)
	return trace.Call{
		NodeID: c.NodeID, Occurrence: c.Occurrence, Tool: id, Args: c.Args, ArgsHash: hex.EncodeToString(sum[:16]),
		Status: status, StartedAt: g.engine.now(),
	}
}

// busy reports whether any tool works on a call.
func (g *gate) busy() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calling > 0
}

// snapshot copies the calls that the program itself has made so far.
func (g *gate) snapshot() []trace.Call {
	g.mu.Lock()
	own := g.ledgers[0]
	g.mu.Unlock()
	return own.snapshot()
}

// flush writes every end that the journal lacks.
func (g *gate) flush(ctx context.Context) error {
	g.mu.Lock()
	ledgers := make([]*ledger, 0, len(g.ledgers))
	for _, l := range g.ledgers {
		ledgers = append(ledgers, l)
	}
	g.mu.Unlock()
	var errs []error
	for _, l := range ledgers {
		if calls := l.unwritten(); len(calls) > 0 {
			errs = append(errs, g.engine.store.RecordCalls(ctx, l.run, calls))
		}
	}
	return errors.Join(errs...)
}

func asFault(err error) (*fault.Error, bool) { return errors.AsType[*fault.Error](err) }
