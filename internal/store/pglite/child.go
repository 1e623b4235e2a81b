package pglite

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pml-run/pml/internal/supervise"
)

// limits are what the bridge allows a connection.
type limits struct {
	hard      time.Duration // for one unit; after it the child is killed
	idleInTx  time.Duration
	unlimited *atomic.Int32 // above zero: no hard limit
}

// child is one running PGlite process with its one backend session.
type child struct {
	proc      *supervise.Process
	frames    *frames // for the holder of the turn
	turn      turnstile
	listeners listeners
	limits    limits
	gone      *atomic.Bool
	// spoilt is closed when the backend should be replaced at the next chance.
	spoilt    chan struct{}
	spoilOnce sync.Once

	inTx       bool      // the backend's state; for the holder of the turn
	parameters []byte    // ParameterStatus messages, as the backend sent them
	started    time.Time // when it was ready

	mu       sync.Mutex
	sessions map[*session]struct{}
	lastID   uint32
	ending   bool
	why      string // the first reason to end it

	serving sync.WaitGroup // one for each session
}

// newChild waits until proc is up and has begun its session.
func newChild(ctx context.Context, proc *supervise.Process, l limits) (*child, error) {
	c := &child{
		proc: proc, frames: newFrames(proc.Stdin, proc.Stdout), limits: l,
		gone: new(atomic.Bool), spoilt: make(chan struct{}), sessions: map[*session]struct{}{},
	}
	// The end of ctx ends the child, and so the reads below.
	release := context.AfterFunc(ctx, proc.Kill)
	defer release()
	if err := c.begin(); err != nil {
		proc.Kill()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("start the embedded database: %w%s", err, lastWords(proc))
	}
	c.started = time.Now()
	return c, nil
}

func (c *child) begin() error {
	var h hello
	if err := c.frames.readJSON(&h); err != nil {
		return err
	}
	if h.Protocol != protocolVersion {
		return fmt.Errorf("its program speaks protocol %d, this binary %d: run 'pml setup'", h.Protocol, protocolVersion)
	}
	packet := newUnit(startupPacket())
	return c.roundTrip(packet, func(m message) error {
		if m.kind() == kindParameter {
			c.parameters = append(c.parameters, m...)
		}
		return nil
	})
}

func startupPacket() []byte {
	body := []byte("\x00\x03\x00\x00user\x00postgres\x00database\x00postgres\x00\x00")
	return append([]byte{0, 0, 0, byte(len(body) + 4)}, body...)
}

// lastWords is the end of the child's stderr, for an error's text.
func lastWords(proc *supervise.Process) string {
	const few = 5
	lines := strings.Split(strings.TrimSpace(proc.Stderr()), "\n")
	if text := strings.Join(lines[max(0, len(lines)-few):], "\n"); text != "" {
		return "\n" + text
	}
	return ""
}

// roundTrip runs one unit; the caller holds the turn. reply gets each message of
// the answer; after its first error no more, but the answer is read to its end.
// An error that is errGone means that the child has ended.
func (c *child) roundTrip(u unit, reply func(message) error) error {
	if c.limits.hard > 0 && c.limits.unlimited.Load() == 0 {
		timer := time.AfterFunc(c.limits.hard, func() {
			c.kill(fmt.Sprintf("a statement ran longer than %s; the embedded database was restarted", c.limits.hard))
		})
		defer timer.Stop()
	}
	if err := c.frames.send(u); err != nil {
		return c.lost(err)
	}
	var split splitter
	var failed error
	err := c.frames.answer(func(part []byte) error {
		return split.feed(part, func(m message) error {
			c.observe(m)
			if failed == nil {
				failed = reply(m)
			}
			return nil
		})
	})
	if err != nil {
		return c.lost(err)
	}
	return failed
}

// lost notes that the conversation has broken off; there is no way back into it.
func (c *child) lost(err error) error {
	c.kill(fmt.Sprintf("the embedded database's process has ended (%v)", err))
	return errGone
}

// observe draws from an answer what it says about the backend.
func (c *child) observe(m message) {
	switch m.kind() {
	case kindReady:
		c.inTx = len(m) > messageHead && m[messageHead] != 'I'
	case kindError:
		severity, code := m.field('V'), m.field('C')
		switch {
		case severity == "PANIC" || severity == "FATAL":
			// PGlite's loop would go on after this, and never answer.
			c.kill("the embedded database failed: " + m.field('M'))
		case code == "53200" || code == "XX000":
			// Out of memory, or inconsistent: it answers, but WASM never gives
			// memory back and its state is in doubt.
			c.spoilOnce.Do(func() { close(c.spoilt) })
		}
	}
}

// dial makes a connection with a session of its own.
func (c *child) dial() (net.Conn, error) {
	client, server, err := connPair()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending || c.gone.Load() {
		_, _ = client.Close(), server.Close()
		return nil, errGone
	}
	c.lastID++
	s := newSession(c, server, c.lastID)
	c.sessions[s] = struct{}{}
	c.serving.Go(s.serve)
	return &Conn{Conn: client, gone: c.gone}, nil
}

func (c *child) forget(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions, s)
}

// cancel ends a session that is waiting for its turn, now or the next time. What is
// running cannot be interrupted; a client that has asked for it leaves anyway.
func (c *child) cancel(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.sessions {
		if s.id == id {
			s.revoke.Do(func() { close(s.revoked) })
		}
	}
}

func (c *child) closing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending
}

// kill ends the process at once; what was committed is safe. It does not wait.
func (c *child) kill(why string) {
	c.mu.Lock()
	if c.why == "" {
		c.why = why
	}
	c.mu.Unlock()
	c.gone.Store(true)
	c.proc.Signal(syscall.SIGKILL)
}

// reason is what a client is told that was cut off.
func (c *child) reason() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == "" {
		return errGone.Error()
	}
	return c.why
}

// end closes every session and the process, by closing its input (PostgreSQL makes
// a shutdown checkpoint), and returns when nothing of it is left. A unit that is
// being run may finish, one that waits for its turn is refused.
func (c *child) end(ctx context.Context) {
	c.gone.Store(true)
	c.mu.Lock()
	c.ending = true
	for s := range c.sessions {
		s.hangUp()
	}
	c.mu.Unlock()
	c.turn.kill()
	release := context.AfterFunc(ctx, func() { c.proc.Signal(syscall.SIGKILL) })
	defer release()
	c.serving.Wait()
	c.proc.Stop(ctx)
}

// exec runs SQL of the server's own, in turn, and returns the last result's rows.
func (c *child) exec(ctx context.Context, sql string) ([][]string, error) {
	if err := c.turn.acquire(ctx.Done()); err != nil {
		return nil, err
	}
	defer c.turn.release()
	var rows [][]string
	err := c.roundTrip(newUnit(query(sql)), func(m message) error {
		switch m.kind() {
		case kindDataRow:
			cols, err := m.columns()
			rows = append(rows, cols)
			return err
		case kindError:
			return fmt.Errorf("%s: %s", m.field('C'), m.field('M'))
		case kindNotification:
			c.listeners.deliver(m)
		}
		return nil
	})
	return rows, err
}

// stats asks the child about itself, in turn.
func (c *child) stats(ctx context.Context) (Stats, error) {
	var s Stats
	if err := c.turn.acquire(ctx.Done()); err != nil {
		return s, err
	}
	defer c.turn.release()
	if err := c.frames.send(newUnit()); err != nil {
		return s, c.lost(err)
	}
	if err := c.frames.readJSON(&s); err != nil {
		return s, c.lost(err)
	}
	return s, nil
}
