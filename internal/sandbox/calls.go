package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox/wire"
	"github.com/pml-run/pml/internal/tool"
)

// call checks one call and has it answered. While the limit of calls is in flight
// it waits, and with it the reader and soon the worker.
func (s *session) call(ctx context.Context, payload []byte) error {
	id, m, err := wire.DecodeCall(payload)
	if err != nil {
		return &protocolError{err}
	}
	l := s.prog.Limits
	if int64(len(m.Args)) > l.Argument {
		return &protocolError{fmt.Errorf("arguments of %d bytes are over the limit of %d", len(m.Args), l.Argument)}
	}
	if err := s.tape.call(m); err != nil {
		return &protocolError{err}
	}
	if s.out.Calls >= l.Calls {
		return fault.New(fault.TooManyCalls, "the program made more than %d calls", l.Calls).
			WithHint("look for a loop that does not end, or use a tool that does more per call; the limit is in the gateway's configuration")
	}
	s.out.Calls++
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c := Call{
		ID: id, Server: m.Server, Tool: m.Tool, Args: m.Args, Raw: m.Raw, NodeID: m.Node, Frame: m.Frame, Seq: m.Seq,
		Root: s.tape.root[m.Frame], Capability: s.tape.owner[m.Frame], Occurrence: s.tape.occurrence(m.Frame, m.Node),
	}
	s.calls.Go(func() {
		reply, err := s.ask(ctx, c)
		// Before the answer is written: a worker that waits in its own write reads
		// nothing, and goes on only if the reader does.
		<-s.slots
		s.answer(ctx, c, reply, err)
	})
	return nil
}

// ask calls the host. A panic there ends this call, not the gateway.
func (s *session) ask(ctx context.Context, c Call) (reply Reply, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.pool.log.ErrorContext(ctx, "a tool call panicked", "server", c.Server, "tool", c.Tool, "panic", r, "stack", string(debug.Stack()))
			reply.Value, err = nil, fault.New(fault.Internal, "the gateway failed while it called %s:%s", c.Server, c.Tool)
		}
	}()
	reply, err = s.host.Call(ctx, c)
	if err != nil {
		return reply, err
	}
	if len(reply.Value) == 0 {
		reply.Value = json.RawMessage("null")
	}
	if n, limit := int64(len(reply.Value)), s.prog.Limits.ToolResult; n > limit {
		return reply, fault.New(fault.OutputLimit, "%s:%s answered with %d bytes; the limit is %d", c.Server, c.Tool, n, limit).
			WithHint("ask the tool for less: a filter, a page, fewer fields")
	}
	return reply, nil
}

// answer writes the answer of one call.
func (s *session) answer(ctx context.Context, c Call, reply Reply, err error) {
	// A program that never reads its answers would have them pile up here. What it
	// could not hold in its own memory it cannot be waiting for.
	n := int64(len(reply.Value))
	limit := 2 * int64(s.prog.Limits.MemoryMB) << 20
	if s.waiting.Add(n) > limit {
		s.cancel(memoryFault("answers of more than %d MB wait for the program", limit>>20))
	}
	s.order.Lock()
	defer s.order.Unlock()
	var at time.Time
	if reply.Seal != nil {
		var sealErr error
		if at, sealErr = reply.Seal(); sealErr != nil {
			err = sealErr
		}
	}
	value := reply.Value
	if err != nil {
		value = s.failCall(ctx, c, err)
	}
	// An error means that the worker is gone, which its reader finds out.
	_ = s.w.writer.Write(wire.Answer, wire.EncodeAnswer(c.ID, err == nil, at), value)
	s.waiting.Add(-n)
}

// failCall makes the answer of a call that failed and remembers the failure, in case
// the program does not catch it.
func (s *session) failCall(ctx context.Context, c Call, err error) json.RawMessage {
	var f wire.CallFailure
	refused, isRefused := errors.AsType[*tool.CallError](err)
	known, isKnown := errors.AsType[*fault.Error](err)
	switch {
	case isRefused:
		f = wire.CallFailure{Message: refused.Message, Code: refused.Code, Content: refused.Content}
	case isKnown:
		f = wire.CallFailure{Message: known.Message, Code: string(known.Code), Hint: known.Hint}
	default:
		if ctx.Err() == nil {
			s.pool.log.ErrorContext(ctx, "a tool call failed inside the gateway", "server", c.Server, "tool", c.Tool, "error", err)
		}
		err = fault.New(fault.Internal, "the gateway failed while it called %s:%s", c.Server, c.Tool)
		f = wire.CallFailure{Message: "the gateway failed while it made this call", Code: string(fault.Internal)}
	}
	s.mu.Lock()
	s.failed[c.ID] = failedCall{err: err, node: c.NodeID, tool: c.Server + ":" + c.Tool}
	s.mu.Unlock()
	b, err := json.Marshal(f)
	if err != nil { // content that is not JSON
		f.Content = nil
		b, _ = json.Marshal(f) // strings only: cannot fail
	}
	return b
}
