package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pml-run/pml/internal/supervise"
)

// codeTooLarge and codeTransport are JSON-RPC error codes of our own: the
// transport puts them into answers that it makes up in the server's place.
const (
	codeTooLarge  = -32090
	codeTransport = -32091
)

// drainTime is given to what a dead child has left in its pipe, when something
// outside its group holds the pipe open.
const drainTime = time.Second

// discoverMethod is the first request of protocol 2026-07-28. Some older servers
// neither answer nor refuse it.
const discoverMethod = "server/discover"

// stdioTransport starts a child and talks to it in lines of JSON. Unlike the
// SDK's own it skips what is no JSON-RPC, survives a line over the limit, owns
// the child's whole process group, and keeps raw results.
type stdioTransport struct {
	process supervise.Options
	limit   int           // bytes of one line
	patient time.Duration // how long server/discover may stay unanswered
	skipped func(sample string)
	calls   *captures
	heard   *atomic.Bool // set with the server's first word in JSON-RPC

	conn *stdioConn // set by Connect
}

var _ mcp.Transport = (*stdioTransport)(nil)

// Connect implements mcp.Transport. The end of ctx does not end the child; Close does.
func (t *stdioTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	p, err := supervise.Start(t.process)
	if err != nil {
		return nil, err
	}
	c := &stdioConn{
		process: p,
		opts:    t,
		stopCtx: context.WithoutCancel(ctx),
		in:      make(chan jsonrpc.Message, 16),
		eof:     make(chan struct{}),
		closed:  make(chan struct{}),
		writing: make(chan struct{}, 1),
	}
	t.conn = c
	c.workers.Go(c.readLines)
	c.workers.Go(c.watch)
	return c, nil
}

// stdioConn is one child's connection. readLines is the only reader of its
// stdout; writing is a semaphore that may be waited for with a context.
type stdioConn struct {
	process *supervise.Process
	opts    *stdioTransport
	stopCtx context.Context //nolint:containedctx // Close has no context of its own

	in      chan jsonrpc.Message
	eof     chan struct{} // closed by readLines after its last message
	closed  chan struct{} // closed by Close
	once    sync.Once
	writing chan struct{}
	workers sync.WaitGroup

	discovery atomic.Pointer[time.Timer]
}

// Read implements mcp.Connection.
func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-c.in:
		return msg, nil
	default:
	}
	select {
	case msg := <-c.in:
		return msg, nil
	case <-c.eof:
		select {
		case msg := <-c.in:
			return msg, nil
		default:
			return nil, io.EOF
		}
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// readLines decodes the child's stdout until its end. Pairs with workers.Wait in Close.
func (c *stdioConn) readLines() {
	defer close(c.eof)
	lines := newLineReader(c.process.Stdout, c.opts.limit)
	for {
		l, err := lines.next()
		if err != nil {
			return
		}
		for _, msg := range c.decode(l) {
			select {
			case c.in <- msg:
			case <-c.closed:
				return
			}
		}
	}
}

// decode turns a line into messages; noise yields none.
func (c *stdioConn) decode(l line) []jsonrpc.Message {
	if l.Over > 0 {
		return c.tooLong(l)
	}
	data := bytes.TrimSpace(l.Data)
	if len(data) == 0 {
		return nil
	}
	parts := []json.RawMessage{data}
	if data[0] == '[' { // a batch, which the revision of 2025-03-26 allowed
		if err := json.Unmarshal(data, &parts); err != nil {
			parts = []json.RawMessage{data}
		}
	}
	var out []jsonrpc.Message
	for _, part := range parts {
		msg, err := jsonrpc.DecodeMessage(part)
		if err != nil {
			c.opts.skipped(sample(part))
			continue
		}
		c.opts.heard.Store(true)
		if r, ok := msg.(*jsonrpc.Response); ok {
			c.opts.calls.intercept(r)
		}
		out = append(out, msg)
	}
	return out
}

// tooLong answers in place of a server whose answer was over the limit.
func (c *stdioConn) tooLong(l line) []jsonrpc.Message {
	id, ok := parseID(l.ID)
	if !ok {
		c.opts.skipped(fmt.Sprintf("a line of %d bytes, over the limit of %d", l.Over, c.opts.limit))
		return nil
	}
	c.opts.calls.claim(l.ID)
	return []jsonrpc.Message{&jsonrpc.Response{ID: id, Error: &jsonrpc.Error{
		Code:    codeTooLarge,
		Message: fmt.Sprintf("the answer has %d bytes, more than the limit of %d", l.Over, c.opts.limit),
	}}}
}

func parseID(raw string) (jsonrpc.ID, bool) {
	var v any
	if n, err := strconv.ParseInt(raw, 10, 64); err == nil {
		v = float64(n)
	} else if s, err := strconv.Unquote(raw); err == nil {
		v = s
	} else {
		return jsonrpc.ID{}, false
	}
	id, err := jsonrpc.MakeID(v)
	return id, err == nil
}

// sample is the beginning of a line, for the log.
func sample(b []byte) string { return string(b[:min(len(b), 200)]) }

// Write implements mcp.Connection. A child that does not read cannot hold the
// caller longer than ctx.
func (c *stdioConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
		c.opts.calls.expect(ctx, idKey(req.ID))
		if req.Method == discoverMethod {
			c.watchDiscovery(req.ID)
		}
	}
	select {
	case c.writing <- struct{}{}:
		defer func() { <-c.writing }()
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closed:
		return io.ErrClosedPipe
	}
	return c.writeLine(ctx, append(data, '\n'))
}

// writeLine writes while holding the writing semaphore. A line that was written
// in part cannot be taken back: the connection ends.
func (c *stdioConn) writeLine(ctx context.Context, data []byte) error {
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = c.process.Stdin.SetWriteDeadline(time.Unix(1, 0))
		close(interrupted)
	})
	n, err := c.process.Stdin.Write(data)
	if !stop() {
		<-interrupted
		_ = c.process.Stdin.SetWriteDeadline(time.Time{})
	}
	if err == nil {
		return nil
	}
	if n > 0 {
		c.process.Kill()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("write to the server: %w", err)
}

// watchDiscovery refuses server/discover in the place of a server that stays
// silent, so that the SDK goes on with initialize.
func (c *stdioConn) watchDiscovery(id jsonrpc.ID) {
	refusal := &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no answer to " + discoverMethod}}
	c.discovery.Store(time.AfterFunc(c.opts.patient, func() {
		if c.opts.heard.Load() {
			return
		}
		select {
		case c.in <- refusal:
		case <-c.closed:
		}
	}))
}

// watch ends what the child left behind when it dies by itself, so that a
// grandchild with the pipe in its hand cannot keep a dead session open.
func (c *stdioConn) watch() {
	select {
	case <-c.closed:
		return
	case <-c.process.Done():
	}
	c.process.Signal(syscall.SIGKILL)
	// The pipe now ends by itself; what the child said last is still read.
	t := time.NewTimer(drainTime)
	defer t.Stop()
	select {
	case <-c.eof:
	case <-c.closed:
	case <-t.C:
	}
	c.process.Kill()
}

// Close implements mcp.Connection: it ends the child by the ladder. When it
// returns, nothing of the connection is left.
func (c *stdioConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		if t := c.discovery.Load(); t != nil {
			t.Stop()
		}
		c.process.Stop(c.stopCtx)
	})
	c.workers.Wait()
	return nil
}

// SessionID implements mcp.Connection; stdio has none.
func (*stdioConn) SessionID() string { return "" }

// exit describes the end of the child, once it has ended.
func (c *stdioConn) exit() (how string, ended bool) {
	select {
	case <-c.process.Done():
	default:
		return "", false
	}
	if err := c.process.Err(); err != nil {
		return err.Error(), true
	}
	return "exit status 0", true
}
