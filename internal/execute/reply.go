package execute

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// repeat answers a call as the journal says.
func (g *gate) repeat(ctx context.Context, l *ledger, at place, c sandbox.Call, past trace.Call) (sandbox.Reply, error) {
	if err := g.past.await(ctx, at); err != nil {
		g.engine.abort(g.run.ID, err)
		return sandbox.Reply{}, err
	}
	i := l.add(g.entry(c, past.Tool, trace.CallStarted), c.Seq)
	reply := sandbox.Reply{Value: past.Result, Seal: func() (time.Time, error) {
		l.recall(i, past)
		g.mu.Lock()
		g.last = endOf(past)
		g.mu.Unlock()
		g.past.seal()
		return endOf(past), nil
	}}
	return reply, callError(past)
}

// callError is the error that a journal's entry stands for, as the program saw it.
func callError(c trace.Call) error {
	switch {
	case c.Error == nil:
		return nil
	case c.Error.Code == fault.ToolFailed:
		refused := &tool.CallError{Server: c.Tool.Server(), Tool: c.Tool.Name(), Code: string(fault.ToolFailed), Message: c.Error.Message}
		if c.Error.Detail != nil {
			refused.Code, refused.Content = c.Error.Detail.Code, c.Error.Detail.Content
		}
		return refused
	}
	return c.Error
}

// reply ends call i and makes what the program gets. The end of a call that may have
// had a side effect is in the journal before the program learns of it.
func (g *gate) reply(ctx context.Context, l *ledger, at place, i int, durable bool, value json.RawMessage, callErr error) (sandbox.Reply, error) {
	if err := g.past.await(ctx, at); err != nil && ctx.Err() == nil {
		g.engine.abort(g.run.ID, err)
		return sandbox.Reply{}, err
	}
	return sandbox.Reply{Value: value, Seal: func() (time.Time, error) {
		if goesOn(context.Cause(ctx)) && !answered(callErr) {
			return time.Time{}, nil // it was cut off: the call is made again, or its outcome is unknown
		}
		end := g.tick()
		write := l.finish(i, durable, func(c *trace.Call) { conclude(c, end, value, callErr) })
		if len(write) == 0 {
			return end, nil
		}
		// The outcome is kept also when the run is being cancelled at this moment.
		if err := g.engine.store.RecordCalls(context.WithoutCancel(ctx), l.run, write); err != nil {
			return end, fault.New(fault.StorageUnavailable, "the result of %s could not be kept: %v", write[len(write)-1].Tool, err)
		}
		l.forget(write)
		return end, nil
	}}, callErr
}

// answered reports whether a call has ended with its tool's own word.
func answered(callErr error) bool {
	_, refused := errors.AsType[*tool.CallError](callErr)
	return callErr == nil || refused
}

// tick is the time of a reply: later than that of the one before.
func (g *gate) tick() time.Time {
	return g.tickTo(g.engine.now())
}

// tickTo is tick for a reply whose time was kept.
func (g *gate) tickTo(at time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !at.After(g.last) {
		at = g.last.Add(time.Microsecond)
	}
	g.last = at
	return at
}

func conclude(c *trace.Call, end time.Time, result json.RawMessage, err error) {
	c.Duration = max(end.Sub(c.StartedAt), time.Microsecond)
	if err != nil {
		c.Status, c.Error = trace.CallError, callFault(*c, err)
		return
	}
	c.Status, c.Result, c.Bytes, c.ContentType = trace.CallOK, result, int64(len(result)), "application/json"
}

// maxDetail bounds what is kept of a failed call's content, in bytes.
const maxDetail = 64 << 10

// callFault describes the failure of a call for the record.
func callFault(c trace.Call, err error) *fault.Error {
	if refused, ok := errors.AsType[*tool.CallError](err); ok {
		f := fault.New(fault.ToolFailed, "%s", refused.Message)
		f.Tool, f.NodeID = string(c.Tool), c.NodeID
		f.Detail = &fault.Detail{Code: refused.Code}
		if len(refused.Content) <= maxDetail && json.Valid(refused.Content) {
			f.Detail.Content = refused.Content
		}
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
