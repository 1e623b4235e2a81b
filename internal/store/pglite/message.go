package pglite

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// message is one message of PostgreSQL's protocol as it stands on the wire: a
// byte that says its kind, the length of the rest, the body.
type message []byte

const messageHead = 5

// The kinds of messages that the bridge looks at.
const (
	kindQuery     = 'Q'
	kindParse     = 'P'
	kindBind      = 'B'
	kindDescribe  = 'D'
	kindClose     = 'C'
	kindExecute   = 'E'
	kindSync      = 'S'
	kindFlush     = 'H'
	kindFunction  = 'F'
	kindTerminate = 'X'
	kindCopyData  = 'd'
	kindCopyDone  = 'c'
	kindCopyFail  = 'f'

	kindError        = 'E' // from here on: sent by the backend
	kindDataRow      = 'D'
	kindReady        = 'Z'
	kindParameter    = 'S'
	kindNotification = 'A'
	kindCopyIn       = 'G'
)

var errMessage = errors.New("malformed protocol message")

func newMessage(kind byte, body ...[]byte) message {
	m := message{kind, 0, 0, 0, 0}
	for _, b := range body {
		m = append(m, b...)
	}
	return m.sized()
}

func query(sql string) message { return newMessage(kindQuery, cstring(sql)) }

func (m message) kind() byte   { return m[0] }
func (m message) body() []byte { return m[messageHead:] }

// sized writes the length that the message has into its head.
func (m message) sized() message {
	binary.BigEndian.PutUint32(m[1:], uint32(len(m)-1))
	return m
}

func cstring(s string) []byte { return append([]byte(s), 0) }

// cutCString takes a NUL-terminated string off the front of b.
func cutCString(b []byte) (s string, rest []byte, err error) {
	before, after, ok := bytes.Cut(b, []byte{0})
	if !ok {
		return "", nil, errMessage
	}
	return string(before), after, nil
}

// readMessage reads a front-end message of at most limit bytes.
func readMessage(r *bufio.Reader, limit int) (message, error) {
	var head [messageHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(head[1:])) + 1
	if n < messageHead {
		return nil, errMessage
	}
	if n > int64(limit) {
		return nil, fmt.Errorf("message of %d bytes is over the limit of %d", n, limit)
	}
	// The body is read in growing pieces: a length alone must not cost its memory.
	var m bytes.Buffer
	m.Write(head[:])
	_, err := io.CopyN(&m, r, n-messageHead)
	return message(m.Bytes()), err
}

// splitter cuts the backend's stream into messages, however it is cut into frames.
type splitter struct {
	rest []byte
}

// feed hands every message that part completes to emit, which must not keep it.
func (s *splitter) feed(part []byte, emit func(message) error) error {
	data := part
	if len(s.rest) > 0 {
		s.rest = append(s.rest, part...)
		data = s.rest
	}
	for len(data) >= messageHead {
		n := int64(binary.BigEndian.Uint32(data[1:])) + 1
		if n < messageHead {
			return errMessage
		}
		if int64(len(data)) < n {
			break
		}
		if err := emit(message(data[:n])); err != nil {
			return err
		}
		data = data[n:]
	}
	s.rest = append(s.rest[:0], data...)
	return nil
}

// field returns a field of an ErrorResponse: 'V' severity, 'C' SQLSTATE, 'M' message.
func (m message) field(name byte) string {
	for b := m.body(); len(b) > 1; {
		value, rest, err := cutCString(b[1:])
		if err != nil {
			return ""
		}
		if b[0] == name {
			return value
		}
		b = rest
	}
	return ""
}

// columns returns a DataRow's values as text; NULL is "".
func (m message) columns() ([]string, error) {
	b := m.body()
	if len(b) < 2 {
		return nil, errMessage
	}
	cols := make([]string, 0, binary.BigEndian.Uint16(b))
	b = b[2:]
	for range cap(cols) {
		if len(b) < 4 {
			return nil, errMessage
		}
		n := int32(binary.BigEndian.Uint32(b))
		b = b[4:]
		if n < 0 {
			cols = append(cols, "")
			continue
		}
		if int64(len(b)) < int64(n) {
			return nil, errMessage
		}
		cols = append(cols, string(b[:n]))
		b = b[n:]
	}
	return cols, nil
}

// fatalMessage is the ErrorResponse that ends a connection.
func fatalMessage(sqlstate, text string) message {
	return newMessage(kindError, cstring("SFATAL"), cstring("VFATAL"), cstring("C"+sqlstate), cstring("M"+text), []byte{0})
}
