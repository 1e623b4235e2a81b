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
	run      uuid.UUID
	progress func(done, total float64, message string)

	mu      sync.Mutex
	calls   []trace.Call
	pending []int // indices of calls whose end the journal does not have yet
	counts  map[string]int
	closed  bool
}

var _ sandbox.Host = (*gate)(nil)

func newGate(e *Engine, run uuid.UUID, progress func(done, total float64, message string)) *gate {
	return &gate{engine: e, run: run, progress: progress, counts: map[string]int{}}
}

// Call carries one inner call out. Its error reaches the program as a ToolError.
func (g *gate) Call(ctx context.Context, c sandbox.Call) (json.RawMessage, error) {
	target, err := g.engine.upstream.Resolve(ctx, c.Server, c.Tool)
	if err != nil {
		return nil, g.refuse(c, err)
	}
	if err := g.engine.validator.Validate(target, c.Args); err != nil {
		return nil, g.refuse(c, err)
	}
	i, err := g.open(ctx, c, target)
	if err != nil {
		return nil, err
	}
	raw, err := g.engine.upstream.Call(ctx, target.ID, c.Args, g.Progress)
	if err == nil {
		raw, err = unwrap(target.ID, raw, c.Raw)
	}
	if err := g.end(ctx, i, raw, err); err != nil {
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

// open notes the start of a call; what may have a side effect is in the journal
// before it is sent, together with every end that the journal lacks.
func (g *gate) open(ctx context.Context, c sandbox.Call, target tool.Tool) (int, error) {
	i := g.add(c, target.ID, trace.CallStarted)
	if target.ReadOnly() {
		return i, nil
	}
	g.mu.Lock()
	batch := append(g.takePendingLocked(), g.calls[i])
	g.mu.Unlock()
	if err := g.engine.store.RecordCalls(ctx, g.run, batch); err != nil {
		f := fault.New(fault.StorageUnavailable, "%s was not called: its journal entry could not be written: %v", target.ID, err)
		g.finish(i, nil, f)
		return i, f
	}
	return i, nil
}

// refuse records a call that never reached its tool.
func (g *gate) refuse(c sandbox.Call, err error) error {
	i := g.add(c, tool.MakeID(c.Server, c.Tool), trace.CallError)
	g.finish(i, nil, err)
	return err
}

func (g *gate) add(c sandbox.Call, id tool.ID, status trace.CallStatus) int {
	node := c.NodeID
	if node == "" {
		node = "?" + string(id)
	}
	sum := sha256.Sum256(c.Args)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts[node]++
	g.calls = append(g.calls, trace.Call{
		NodeID: node, Occurrence: g.counts[node], Seq: len(g.calls), Tool: id, Args: c.Args,
		ArgsHash: hex.EncodeToString(sum[:16]), Status: status, StartedAt: g.engine.config.Now(),
	})
	return len(g.calls) - 1
}

// end records the outcome of call i and writes the journal where it must not wait.
func (g *gate) end(ctx context.Context, i int, result json.RawMessage, callErr error) error {
	g.finish(i, result, callErr)
	g.mu.Lock()
	if len(g.pending) < journalPending && len(result) < journalLarge {
		g.mu.Unlock()
		return nil
	}
	batch := g.takePendingLocked()
	g.mu.Unlock()
	// The outcome is kept also when the run is being cancelled at this moment.
	if err := g.engine.store.RecordCalls(context.WithoutCancel(ctx), g.run, batch); err != nil {
		return fault.New(fault.StorageUnavailable, "the result of %s could not be kept: %v", batch[len(batch)-1].Tool, err)
	}
	g.forget(batch)
	return nil
}

func (g *gate) finish(i int, result json.RawMessage, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return // the run was recorded without this call's end
	}
	c := &g.calls[i]
	c.Duration = max(g.engine.config.Now().Sub(c.StartedAt), time.Microsecond)
	c.Status, c.Result, c.Bytes, c.ContentType = trace.CallOK, result, int64(len(result)), "application/json"
	if err != nil {
		c.Status, c.Result, c.Bytes, c.ContentType, c.Error = trace.CallError, nil, 0, "", callFault(*c, err)
	}
	g.pending = append(g.pending, i)
}

// forget drops large results that the journal now has; the trace refers to them.
func (g *gate) forget(batch []trace.Call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range batch {
		if len(c.Result) >= journalLarge {
			g.calls[c.Seq].Result = nil
		}
	}
}

func (g *gate) takePendingLocked() []trace.Call {
	batch := make([]trace.Call, 0, len(g.pending)+1)
	for _, i := range g.pending {
		batch = append(batch, g.calls[i])
	}
	g.pending = g.pending[:0]
	return batch
}

// snapshot copies the calls made so far.
func (g *gate) snapshot() []trace.Call {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]trace.Call(nil), g.calls...)
}

// close ends the recording and returns all calls. One that is still open then
// keeps the state CallStarted: its outcome is not known.
func (g *gate) close() []trace.Call {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	return g.calls
}

// callFault describes the failure of a call for the record.
func callFault(c trace.Call, err error) *fault.Error {
	if refused, ok := errors.AsType[*tool.CallError](err); ok {
		f := fault.New(fault.ToolFailed, "%s", refused.Message)
		f.Tool, f.NodeID = string(c.Tool), c.NodeID
		return f
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = fault.New(fault.ToolFailed, "%v", err)
	}
	mine := *f
	mine.Tool, mine.NodeID = string(c.Tool), c.NodeID
	return &mine
}
