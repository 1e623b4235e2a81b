package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// eventStream reads server-sent events and hands them on, with the results of
// expected responses taken out. When a stream that owes an answer ends without
// it, and cannot be resumed, the answer is made up: the call fails at once
// instead of at its deadline.
type eventStream struct {
	t     *rawTransport
	body  io.ReadCloser
	lines *lineReader
	owed  string // id of the call whose answer this stream has to bring; empty when paid
	ids   bool   // the server numbers its events: the SDK can resume
	out   bytes.Buffer
	err   error
}

func newEventStream(t *rawTransport, body io.ReadCloser, id string) *eventStream {
	return &eventStream{t: t, body: body, lines: newLineReader(body, t.limit), owed: id}
}

// Close implements io.Closer.
func (e *eventStream) Close() error { return e.body.Close() }

// Read implements io.Reader.
func (e *eventStream) Read(p []byte) (int, error) {
	for e.out.Len() == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.event()
	}
	return e.out.Read(p)
}

// event reads one event and writes what becomes of it to out.
func (e *eventStream) event() {
	var data []byte
	var other [][]byte
	has := false
	for {
		l, err := e.lines.next()
		if err != nil {
			e.end()
			return
		}
		name, value, _ := bytes.Cut(l.Data, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case l.Over > 0 || len(data)+len(value) > e.t.limit:
			e.tooLong(l)
			data, has = nil, false
		case len(l.Data) == 0:
			e.emit(other, data, has)
			return
		case string(name) == "data":
			if has {
				data = append(data, '\n')
			}
			data, has = append(data, value...), true
		default:
			e.ids = e.ids || string(name) == "id" && len(value) > 0
			other = append(other, bytes.Clone(l.Data))
		}
	}
}

func (e *eventStream) emit(other [][]byte, data []byte, has bool) {
	for _, o := range other {
		e.out.Write(o)
		e.out.WriteByte('\n')
	}
	if has {
		e.data(data)
	}
	e.out.WriteByte('\n')
}

// data writes one event's data. White space in JSON may be line ends: they go.
func (e *eventStream) data(data []byte) {
	id := e.owed
	data = e.t.rewrite(data)
	if id != "" && isAnswer(data, id) {
		e.owed = ""
	}
	for part := range bytes.Lines(data) {
		e.out.WriteString("data: ")
		e.out.Write(bytes.TrimRight(part, "\r\n"))
		e.out.WriteByte('\n')
	}
}

// tooLong answers for a server whose event was over the limit.
func (e *eventStream) tooLong(l line) {
	// The scanner starts in the middle of "data: {…": the prefix holds no quote
	// or bracket, so the id is found all the same.
	id := l.ID
	if id == "" {
		id = e.owed
	}
	if id == "" {
		e.t.skipped(fmt.Sprintf("an event of %d bytes, over the limit of %d", l.Over, e.t.limit))
		return
	}
	e.t.calls.claim(id)
	if id == e.owed {
		e.owed = ""
	}
	e.synthetic(errorMessage(id, codeTooLarge, fmt.Sprintf("the answer has more than %d bytes", e.t.limit)))
}

// end is reached when the stream is over, well or not.
func (e *eventStream) end() {
	e.err = io.EOF
	if e.owed == "" || e.ids {
		return
	}
	e.t.calls.claim(e.owed)
	e.synthetic(errorMessage(e.owed, codeTransport, "the event stream ended before the answer"))
	e.owed = ""
}

func (e *eventStream) synthetic(message []byte) {
	e.out.WriteString("data: ")
	e.out.Write(message)
	e.out.WriteString("\n\n")
}

// isAnswer reports whether a message is the response to the call id.
func isAnswer(data []byte, id string) bool {
	var m wireMessage
	return json.Unmarshal(data, &m) == nil && m.Method == "" && string(m.ID) == id
}
