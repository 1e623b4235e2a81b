package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lineReader reads lines of bounded length. A longer line is read to its end and
// thrown away, but for the JSON-RPC id in it: the call it answers can then fail
// alone.
type lineReader struct {
	r     *bufio.Reader
	limit int
	buf   []byte
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// line is one line without its end. A line over the limit has Over set, its
// length, and its id when it had one.
type line struct {
	Data []byte // valid until the next call
	Over int
	ID   string
}

// next returns the next line; what stands before EOF without a line end counts.
func (l *lineReader) next() (line, error) {
	l.buf = l.buf[:0]
	var over int
	var scan *idScanner
	for {
		part, err := l.r.ReadSlice('\n')
		switch {
		case scan != nil:
			scan.write(part)
			over += len(part)
		case len(l.buf)+len(part) > l.limit+1:
			scan = &idScanner{}
			scan.write(l.buf)
			scan.write(part)
			over = len(l.buf) + len(part)
			l.buf = nil // gives the large buffer back
		default:
			l.buf = append(l.buf, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && len(l.buf) == 0 && over == 0 {
			return line{}, err
		}
		if scan != nil {
			return line{Over: over, ID: scan.id}, nil
		}
		return line{Data: bytes.TrimRight(l.buf, "\r\n")}, nil
	}
}

// idScanner finds the value of the top-level key "id" in a JSON object that is
// too large to keep. It reads byte by byte and keeps at most one short string.
type idScanner struct {
	id string

	depth    int
	inString bool
	escaped  bool
	tooLong  bool
	token    []byte
	key      string // the last string at depth 1 before a colon
	value    bool   // between a colon and the next comma at depth 1
}

// maxToken bounds the strings that are kept; ids of our own are short.
const maxToken = 64

func (s *idScanner) write(b []byte) {
	for _, c := range b {
		switch {
		case s.inString:
			s.stringByte(c)
		case c == '"':
			s.inString, s.tooLong = true, false
			s.token = append(s.token[:0], c)
		case c == '{' || c == '[':
			s.depth++
			s.token = s.token[:0]
		case c == '}' || c == ']':
			s.endValue()
			s.depth--
		case s.depth != 1:
		case c == ':':
			s.key, s.value, s.token = string(bytes.Trim(s.token, `"`)), true, s.token[:0]
		case c == ',':
			s.endValue()
		case c > ' ' && s.value && len(s.token) < maxToken:
			s.token = append(s.token, c)
		}
	}
}

func (s *idScanner) stringByte(c byte) {
	if s.depth == 1 && !s.tooLong {
		s.token = append(s.token, c)
		s.tooLong = len(s.token) > maxToken
	}
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.inString = false
		if s.tooLong {
			s.token = s.token[:0]
		}
	}
}

// endValue takes the value of id at the end of a member of the outer object.
func (s *idScanner) endValue() {
	if s.depth == 1 && s.value {
		if s.key == "id" && s.id == "" {
			s.id = string(s.token)
		}
		s.value, s.token = false, s.token[:0]
	}
}
