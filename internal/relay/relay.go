// Package relay keeps one MCP stdio session alive while the gateway behind it
// changes. Several clients share a data folder, and the process that owns the
// folder is one of theirs: it may end at any time, and another takes over. The
// relay then connects anew, repeats the handshake and what is safe to repeat, and
// answers for what is not. It understands no more of the protocol than that.
package relay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
)

// maxLine is the longest message in bytes that is passed on in either direction.
const maxLine = 64 << 20

// Connect makes a connection to whichever gateway serves the data folder now.
type Connect func(ctx context.Context) (io.ReadWriteCloser, error)

// session is the state of one client's session. One goroutine, the one in Run,
// uses it; the readers only send to it.
type session struct {
	out     io.Writer
	logger  *slog.Logger
	connect Connect

	handshake [][]byte          // initialize and notifications/initialized, as the client sent them
	initID    string            // id of the client's initialize request
	pending   map[string][]byte // requests that have no answer yet, by id
	order     []string          // their ids, oldest first
}

// envelope is what the relay reads of a message.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name string `json:"name"`
	} `json:"params"`
}

// Run relays between a client's streams and gateways until the client leaves or
// ctx ends. It returns an error when no gateway can be reached.
func Run(ctx context.Context, in io.Reader, out io.Writer, connect Connect, logger *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &session{out: out, logger: logger.With("system", "relay"), connect: connect, pending: map[string][]byte{}}
	fromClient := make(chan []byte)
	go readLines(ctx, in, fromClient) // ends with in, at the latest with the process: a read of stdin cannot be cancelled
	for {
		conn, err := connect(ctx)
		if err != nil && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		left, err := s.serve(ctx, conn, fromClient)
		if left || ctx.Err() != nil {
			return err
		}
		s.logger.InfoContext(ctx, "the gateway has ended, connecting to the next", "unanswered", len(s.pending))
	}
}

// serve relays over one connection. It reports whether the client has left, which
// ends the session, or else the connection broke.
func (s *session) serve(ctx context.Context, conn io.ReadWriteCloser, fromClient <-chan []byte) (clientLeft bool, err error) {
	fromGateway := make(chan []byte)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer wg.Wait()
	defer func() { _ = conn.Close() }()
	defer cancel()
	wg.Go(func() { readLines(ctx, conn, fromGateway) })
	if s.resume(conn, fromGateway) != nil {
		return false, nil // the next connection tries again
	}
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case line, ok := <-fromClient:
			if !ok {
				return true, s.finish(ctx, conn, fromGateway)
			}
			s.noteRequest(line)
			if write(conn, line) != nil {
				return false, nil
			}
		case line, ok := <-fromGateway:
			if !ok {
				return false, nil
			}
			if err := s.forward(line); err != nil {
				return true, err
			}
		}
	}
}

// finish tells the gateway that the client has left and passes on what it still says.
func (s *session) finish(ctx context.Context, conn io.ReadWriteCloser, fromGateway <-chan []byte) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	} else {
		_ = conn.Close()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case line, ok := <-fromGateway:
			if !ok {
				return nil
			}
			if err := s.forward(line); err != nil {
				return err
			}
		}
	}
}

// noteRequest remembers what must be repeated or answered if the gateway ends.
func (s *session) noteRequest(line []byte) {
	var e envelope
	if json.Unmarshal(line, &e) != nil || e.Method == "" {
		return // the gateway says what is wrong with it
	}
	switch e.Method {
	case "initialize":
		s.handshake, s.initID = [][]byte{line}, string(e.ID)
	case "notifications/initialized":
		s.handshake = append(s.handshake, line)
	}
	if len(e.ID) > 0 {
		s.pending[string(e.ID)] = line
		s.order = append(s.order, string(e.ID))
	}
}

// forward passes a message of the gateway on to the client.
func (s *session) forward(line []byte) error {
	var e envelope
	if json.Unmarshal(line, &e) == nil && e.Method == "" && len(e.ID) > 0 {
		s.answered(string(e.ID))
	}
	if err := write(s.out, line); err != nil {
		return fmt.Errorf("write to the client: %w", err)
	}
	return nil
}

func (s *session) answered(id string) {
	if _, ok := s.pending[id]; !ok {
		return
	}
	delete(s.pending, id)
	for i, other := range s.order {
		if other == id {
			s.order = append(s.order[:i], s.order[i+1:]...)
			break
		}
	}
}

// resume brings a fresh connection to where the last one was: the handshake is
// repeated unseen by the client, and open requests are sent again or answered.
func (s *session) resume(conn io.Writer, fromGateway <-chan []byte) error {
	_, handshakeOpen := s.pending[s.initID]
	if len(s.handshake) > 0 && !handshakeOpen {
		if err := s.repeatHandshake(conn, fromGateway); err != nil {
			return err
		}
	}
	for _, id := range append([]string(nil), s.order...) {
		line := s.pending[id]
		if mayRepeat(line) {
			if err := write(conn, line); err != nil {
				return err
			}
			continue
		}
		if err := s.forward(interrupted(id)); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) repeatHandshake(conn io.Writer, fromGateway <-chan []byte) error {
	if err := write(conn, s.handshake[0]); err != nil {
		return err
	}
	for line := range fromGateway {
		var e envelope
		if json.Unmarshal(line, &e) == nil && e.Method == "" && string(e.ID) == s.initID {
			for _, l := range s.handshake[1:] {
				if err := write(conn, l); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return io.ErrUnexpectedEOF
}

// mayRepeat reports whether sending a request twice changes nothing: all but the
// execution of a program.
func mayRepeat(line []byte) bool {
	var e envelope
	return json.Unmarshal(line, &e) == nil && (e.Method != "tools/call" || e.Params.Name != "pml_execute")
}

// interrupted answers a pml_execute whose gateway ended.
func interrupted(id string) []byte {
	const text = "interrupted: the gateway ended without a word while the program ran\n" +
		"hint: the next gateway goes on with the run where no call's outcome is unknown; see what became of it (pml trace ls) before you send the program again"
	b, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": json.RawMessage(id),
		"result": map[string]any{
			"isError": true, "content": []any{map[string]string{"type": "text", "text": text}},
			"structuredContent": map[string]any{"status": "failed", "error": map[string]string{"code": "interrupted", "message": text}},
		},
	})
	if err != nil {
		panic("encode a constant: " + err.Error())
	}
	return append(b, '\n')
}

func write(w io.Writer, line []byte) error {
	_, err := w.Write(line)
	return err
}

// readLines sends each line of r, with its line end, until r or ctx ends.
func readLines(ctx context.Context, r io.Reader, to chan<- []byte) {
	defer close(to)
	b := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(b)
		if len(bytes.TrimSpace(line)) > 0 {
			select {
			case to <- line:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

var errLineTooLong = errors.New("message too long")

func readLine(b *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := b.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > maxLine {
			return nil, errLineTooLong
		}
	}
}
