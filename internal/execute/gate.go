package execute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"
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
// resolved, the arguments are checked, the journal is written before what may
// have a side effect, the tool is called, its result unwrapped and recorded.
type gate struct {
	engine   *Engine
	run      trace.Run
	inner    map[string]inner
	progress func(done, total float64, message string)

	mu      sync.Mutex
	ledgers map[int]*ledger // by the frame that a program or capability began in
}

var _ sandbox.Host = (*gate)(nil)

func newGate(e *Engine, run trace.Run, ready *prepared, progress func(done, total float64, message string)) *gate {
	return &gate{
		engine: e, run: run, inner: ready.inner, progress: progress,
		ledgers: map[int]*ledger{0: newLedger(run.ID, 0)},
	}
}

// Call carries one inner call out. Its error reaches the program as a ToolError.
func (g *gate) Call(ctx context.Context, c sandbox.Call) (json.RawMessage, error) {
	l, err := g.ledger(ctx, c)
	if err != nil {
		return nil, err
	}
	target, err := g.engine.upstream.Resolve(ctx, c.Server, c.Tool)
	if err != nil {
		return nil, g.refuse(l, c, err)
	}
	if err := g.engine.validator.Validate(target, c.Args); err != nil {
		return nil, g.refuse(l, c, err)
	}
	i, err := g.open(ctx, l, c, target)
	if err != nil {
		return nil, err
	}
	raw, err := g.engine.upstream.Call(ctx, target.ID, c.Args, g.Progress)
	if err == nil {
		raw, err = unwrap(target.ID, raw, c.Raw)
	}
	if err := g.end(ctx, l, i, raw, err); err != nil {
		return nil, err
	}
	return raw, err
}

// Progress passes on what the program or a tool says of its progress.
func (g *gate) Progress(done, total float64, message string) {
	if g.progress != nil {
		g.progress(done, total, message)
	}
}

// unwrap turns a tool's raw result into the value that the program sees.
func unwrap(id tool.ID, raw json.RawMessage, untouched bool) (json.RawMessage, error) {
	v, err := tool.Unwrap(id, raw)
	if untouched {
		return raw, nil
	}
	return v.JSON, err
}

// ledger finds the run that a call belongs to. The first call of a capability
// makes the row of its run: a child of ours.
func (g *gate) ledger(ctx context.Context, c sandbox.Call) (*ledger, error) {
	g.mu.Lock()
	l, ok := g.ledgers[c.Root]
	if !ok {
		l = newLedger(g.engine.config.NewID(), c.Root)
		l.begin = sync.OnceValue(func() error { return g.engine.store.BeginRun(ctx, g.child(l.run, c.Capability)) })
		g.ledgers[c.Root] = l
	}
	g.mu.Unlock()
	if l.begin == nil {
		return l, nil
	}
	return l, l.begin()
}

// child is the run of a capability inside ours.
func (g *gate) child(id uuid.UUID, name string) trace.Run {
	in := g.inner[name]
	r := g.run
	r.ID, r.Parent, r.Capability = id, g.run.ID, in.capability.ID
	r.Intent, r.Args, r.Result = in.capability.Intent, nil, nil
	r.Implementation = mustJSON(Implementation{Type: "capability", Name: name, Version: in.capability.Version})
	r.StartedAt = g.engine.config.Now()
	return r
}

// open notes the start of a call; what may have a side effect is in the journal
// before it is sent, together with every end that the journal lacks.
func (g *gate) open(ctx context.Context, l *ledger, c sandbox.Call, target tool.Tool) (int, error) {
	i := g.add(l, c, target.ID, trace.CallStarted)
	if target.ReadOnly() {
		return i, nil
	}
	if err := g.engine.store.RecordCalls(ctx, l.run, l.opened(i)); err != nil {
		f := fault.New(fault.StorageUnavailable, "%s was not called: its journal entry could not be written: %v", target.ID, err)
		return i, errors.Join(f, g.end(ctx, l, i, nil, f))
	}
	return i, nil
}

// refuse records a call that never reached its tool.
func (g *gate) refuse(l *ledger, c sandbox.Call, err error) error {
	i := g.add(l, c, tool.MakeID(c.Server, c.Tool), trace.CallError)
	l.finish(i, func(call *trace.Call) { g.conclude(call, nil, err) })
	return err
}

func (g *gate) add(l *ledger, c sandbox.Call, id tool.ID, status trace.CallStatus) int {
	sum := sha256.Sum256(c.Args)
	return l.add(trace.Call{
		NodeID: c.NodeID, Occurrence: c.Occurrence, Tool: id, Args: c.Args, ArgsHash: hex.EncodeToString(sum[:16]),
		Status: status, StartedAt: g.engine.config.Now(),
	}, c.Seq)
}

// end records the outcome of call i and writes the journal where it must not wait.
func (g *gate) end(ctx context.Context, l *ledger, i int, result json.RawMessage, callErr error) error {
	write := l.finish(i, func(call *trace.Call) { g.conclude(call, result, callErr) })
	if len(write) == 0 {
		return nil
	}
	// The outcome is kept also when the run is being cancelled at this moment.
	if err := g.engine.store.RecordCalls(context.WithoutCancel(ctx), l.run, write); err != nil {
		return fault.New(fault.StorageUnavailable, "the result of %s could not be kept: %v", write[len(write)-1].Tool, err)
	}
	l.forget(write)
	return nil
}

func (g *gate) conclude(c *trace.Call, result json.RawMessage, err error) {
	c.Duration = max(g.engine.config.Now().Sub(c.StartedAt), time.Microsecond)
	if err != nil {
		c.Status, c.Error = trace.CallError, callFault(*c, err)
		return
	}
	c.Status, c.Result, c.Bytes, c.ContentType = trace.CallOK, result, int64(len(result)), "application/json"
}

// snapshot copies the calls that the program itself has made so far.
func (g *gate) snapshot() []trace.Call {
	g.mu.Lock()
	own := g.ledgers[0]
	g.mu.Unlock()
	return own.snapshot()
}

// callFault describes the failure of a call for the record.
func callFault(c trace.Call, err error) *fault.Error {
	if refused, ok := errors.AsType[*tool.CallError](err); ok {
		f := fault.New(fault.ToolFailed, "%s", refused.Message)
		f.Tool, f.NodeID = string(c.Tool), c.NodeID
		return f
	}
	f, ok := asFault(err)
	if !ok {
		f = fault.New(fault.ToolFailed, "%v", err)
	}
	mine := *f
	mine.Tool, mine.NodeID = string(c.Tool), c.NodeID
	return &mine
}

func asFault(err error) (*fault.Error, bool) { return errors.AsType[*fault.Error](err) }
