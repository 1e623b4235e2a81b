package pglite

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxAnswer is how much of an answer is kept until the turn was given up. A
	// client that reads slowly, or asks on a second connection while it walks the
	// rows of the first, must not hold the backend.
	maxAnswer = 64 << 20
	// slowClient bounds each write of what is beyond maxAnswer, under the turn.
	slowClient = 10 * time.Second
	// maxNotes is how many notifications wait for a slow listener.
	maxNotes = 64

	codeAdminShutdown = "57P01"
	codeCancelled     = "57014"
)

// setSQL finds statements that may change a setting of the one session. A false
// hit costs one RESET ALL when the connection closes.
var setSQL = regexp.MustCompile(`(?i)\bset_config\b|^\s*set\s+(?:session\s+)?[a-z]`)

// session is one front-end connection's share of the backend. All but the notes
// belongs to the goroutine that runs serve.
type session struct {
	child *child
	id    uint32
	conn  net.Conn
	in    *bufio.Reader
	names names

	answer   []byte // of the unit in hand
	holds    bool   // the turn
	changed  bool   // may have changed a setting of the session
	idle     *time.Timer
	cut      atomic.Bool   // was too long idle inside a transaction
	revoked  chan struct{} // closed by a cancel request
	revoke   sync.Once
	relisten []string // SQL that undoes what an UNLISTEN takes from others

	notes     chan message
	notesDone chan struct{} // nil until the first LISTEN

	writing sync.Mutex // pairs an answer's parts, keeps notifications out of them

	out *bufio.Writer
}

func newSession(c *child, conn net.Conn, id uint32) *session {
	return &session{
		child: c, id: id, conn: conn,
		in: bufio.NewReaderSize(conn, 32<<10), out: bufio.NewWriterSize(conn, 64<<10),
		names: names{prefix: fmt.Sprintf("c%d_", id), statements: map[string]struct{}{}},
		notes: make(chan message, maxNotes), revoked: make(chan struct{}),
	}
}

// serve runs until the client leaves, breaks the protocol, or the child is gone.
func (s *session) serve() {
	defer s.close()
	if err := s.startup(); err != nil {
		return
	}
	u := newUnit()
	for {
		m, err := readMessage(s.in, maxUnit)
		if err != nil || m.kind() == kindTerminate {
			return
		}
		if len(u)+len(m) > maxUnit {
			_ = s.fail("54000", fmt.Sprintf("a batch is over %d bytes", maxUnit))
			return
		}
		if u, err = s.take(u, m); err != nil {
			return
		}
	}
}

// take adds m to the unit, and runs the unit when m is its last message.
func (s *session) take(u unit, m message) (unit, error) {
	switch m.kind() {
	case kindQuery:
		sql := string(bytes.TrimRight(m.body(), "\x00"))
		if copyInSQL.MatchString(sql) {
			return u, s.copyIn(m)
		}
		s.sniff(sql)
		return s.run(append(u, m...))
	case kindSync, kindFunction:
		return s.run(append(u, m...))
	case kindFlush: // the backend flushes at the end of a unit anyway
		return u, nil
	case kindParse:
		if _, rest, err := cutCString(m.body()); err == nil {
			sql, _, _ := cutCString(rest)
			s.sniff(sql)
		}
	}
	renamed, err := s.names.rename(m)
	return append(u, renamed...), err
}

func (s *session) sniff(sql string) {
	s.changed = s.changed || setSQL.MatchString(sql)
	s.relisten = append(s.relisten, s.child.listeners.sniff(s, sql)...)
}

// run runs a unit in its turn and returns it emptied, for the next one.
func (s *session) run(u unit) (unit, error) {
	if err := s.turn(); err != nil {
		return nil, err
	}
	err := s.child.roundTrip(u, s.reply)
	if errors.Is(err, errGone) {
		return nil, s.fail(codeAdminShutdown, s.child.reason())
	}
	if err != nil {
		return nil, err // the client is gone; close rolls back and gives the turn up
	}
	s.turnOver()
	if cap(u) > 1<<20 {
		u = newUnit()
	}
	return u[:headerSize], s.flush()
}

// turn waits for the backend, unless this session holds it already.
func (s *session) turn() error {
	if s.idle != nil {
		s.idle.Stop()
	}
	if s.cut.Load() {
		return errors.New("idle inside a transaction for too long")
	}
	if s.holds {
		return nil
	}
	err := s.child.turn.acquire(s.revoked)
	if errors.Is(err, errAborted) {
		return s.fail(codeCancelled, err.Error())
	}
	if err != nil {
		return s.fail(codeAdminShutdown, s.child.reason())
	}
	s.holds = true
	if hungUp(s.conn) {
		return net.ErrClosed // nobody waits for this unit: do not run it
	}
	return nil
}

// turnOver gives the turn up, or, inside a transaction, sees to it that a client
// that has forgotten the transaction does not stop everybody for ever.
func (s *session) turnOver() {
	for _, sql := range s.relisten {
		s.do(newUnit(query(sql)))
	}
	s.relisten = nil
	if !s.child.inTx {
		s.holds = false
		s.child.turn.release()
		return
	}
	s.idle = time.AfterFunc(s.child.limits.idleInTx, func() {
		s.cut.Store(true)
		s.hangUp()
	})
}

// reply takes one message of the backend's answer. It must not keep m.
func (s *session) reply(m message) error {
	if m.kind() == kindNotification {
		s.child.listeners.deliver(m)
		return nil
	}
	if len(s.answer)+len(m) <= maxAnswer {
		s.answer = append(s.answer, m...)
		return nil
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(slowClient)); err != nil {
		return err
	}
	return s.write(m)
}

// write sends what was gathered and m.
func (s *session) write(m []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	_, err := s.out.Write(s.answer)
	if cap(s.answer) > 1<<20 {
		s.answer = nil
	}
	s.answer = s.answer[:0]
	if err != nil {
		return err
	}
	_, err = s.out.Write(m)
	return err
}

func (s *session) flush() error {
	if err := s.conn.SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	if err := s.write(nil); err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.out.Flush()
}

// fail tells the client why its connection ends.
func (s *session) fail(sqlstate, text string) error {
	s.answer = s.answer[:0]
	_ = s.conn.SetWriteDeadline(time.Now().Add(slowClient))
	if err := s.write(fatalMessage(sqlstate, text)); err == nil {
		s.writing.Lock()
		_ = s.out.Flush()
		s.writing.Unlock()
	}
	return errors.New(text)
}

// hangUp makes serve return; safe from any goroutine.
func (s *session) hangUp() { _ = s.conn.SetReadDeadline(time.Unix(1, 0)) }

const (
	codeSSL    = 80877103
	codeGSSENC = 80877104
	codeCancel = 80877102
)

// startup answers the first packets. The parameters in them are ignored: there is
// one session, and its settings were made when the child was started.
func (s *session) startup() error {
	for {
		var head [8]byte
		if _, err := io.ReadFull(s.in, head[:]); err != nil {
			return err
		}
		n, code := int64(binary.BigEndian.Uint32(head[:4])), binary.BigEndian.Uint32(head[4:])
		switch code {
		case codeSSL, codeGSSENC:
			if _, err := s.conn.Write([]byte{'N'}); err != nil {
				return err
			}
			continue
		case codeCancel:
			var key [8]byte // process id and secret, as startup has given them
			if _, err := io.ReadFull(s.in, key[:]); err == nil {
				s.child.cancel(binary.BigEndian.Uint32(key[:]))
			}
			return errMessage // such a connection is for this only
		}
		if n < 8 || n > 10_000 {
			return errMessage
		}
		if _, err := io.CopyN(io.Discard, s.in, n-8); err != nil {
			return err
		}
		s.answer = append(s.answer, newMessage('R', []byte{0, 0, 0, 0})...) // authentication: none
		s.answer = append(s.answer, s.child.parameters...)
		s.answer = append(s.answer, newMessage('K', binary.BigEndian.AppendUint32(nil, s.id), make([]byte, 4))...)
		s.answer = append(s.answer, newMessage(kindReady, []byte{'I'})...)
		return s.flush()
	}
}
