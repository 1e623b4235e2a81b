package mcpserver

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stream is the transport and the connection of one session over a pair of streams.
// It knows which requests have no answer yet, so that it can be closed after the last
// one: closing a session of the SDK drops the answers that are not written.
type stream struct {
	mcp.Connection

	transport mcp.Transport
	ended     chan struct{} // closed when nothing is left of the session

	mu    sync.Mutex
	open  map[jsonrpc.ID]bool
	moved chan struct{} // closed and replaced when an answer was written
}

// Connect implements mcp.Transport.
func (s *stream) Connect(ctx context.Context) (mcp.Connection, error) {
	var err error
	s.Connection, err = s.transport.Connect(ctx)
	return s, err
}

// Read implements mcp.Connection.
func (s *stream) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := s.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		s.mu.Lock()
		s.open[r.ID] = true
		s.mu.Unlock()
	}
	return m, err
}

// Write implements mcp.Connection.
func (s *stream) Write(ctx context.Context, m jsonrpc.Message) error {
	err := s.Connection.Write(ctx, m)
	if r, ok := m.(*jsonrpc.Response); ok {
		s.mu.Lock()
		delete(s.open, r.ID)
		close(s.moved)
		s.moved = make(chan struct{})
		s.mu.Unlock()
	}
	return err
}

// settle waits until every request is answered, the session has ended, or ctx has.
func (s *stream) settle(ctx context.Context) {
	for {
		s.mu.Lock()
		open, moved := len(s.open), s.moved
		s.mu.Unlock()
		if open == 0 {
			return
		}
		select {
		case <-moved:
		case <-s.ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

// ServeStream serves one session over a pair of streams (stdio, or a connection
// that stands for it) until the client closes its side, Close is called or ctx ends.
func (s *Server) ServeStream(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	st := &stream{
		transport: &mcp.IOTransport{Reader: in, Writer: out, MaxLineLength: maxMessage},
		ended:     make(chan struct{}), open: map[jsonrpc.ID]bool{}, moved: make(chan struct{}),
	}
	defer close(st.ended)
	session, err := s.mcp.Connect(ctx, st, nil)
	if err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = session.Close() })
	defer stop()
	if s.join(st) {
		defer s.part(st)
	} else {
		_ = st.Close()
	}
	return session.Wait()
}

// Close ends the sessions over streams, each when its requests are answered, at the
// latest at the end of ctx, and any that is opened later at once. It returns when
// they have ended or ctx has.
func (s *Server) Close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	open := slices.Collect(maps.Keys(s.streams))
	s.mu.Unlock()
	for _, st := range open {
		st.settle(ctx)
		_ = st.Close() // what keeps it from being closed has ended it
	}
	for _, st := range open {
		select {
		case <-st.ended:
		case <-ctx.Done():
		}
	}
}

// join notes a session that Close is to end; false after Close.
func (s *Server) join(st *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.streams[st] = true
	}
	return !s.closed
}

func (s *Server) part(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st)
}
