// Package wire owns the protocol between the gateway and one sandbox worker: the
// framing, the kinds of frames, their messages and their limits. It is the Go side
// of sandbox-runtime/protocol.ts; only package sandbox uses it. It validates form
// (lengths, JSON, field types), never meaning, and it starts nothing.
package wire

// The protocol, both sides. Keep this text and the names equal in
// internal/sandbox/wire/frame.go and sandbox-runtime/protocol.ts.
//
//	frame   = u32le length of payload, u8 kind, payload
//	Boot    B  gateway → worker  JavaScript: the runtime, read by boot.ts
//	Hello   H  both ways         u32le version
//	Start   P  gateway → worker  JSON Program
//	Answer  A  gateway → worker  u32le call id, u8 ok (1 or 0), f64le milliseconds of the
//	                             program's clock (0: not told), JSON value or CallFailure
//	Call    C  worker → gateway  u32le call id, then lines: flags (1 raw, 2 recorded),
//	                             frame and order; server, tool and node, each a JSON
//	                             string; records as a JSON array, or nothing; JSON args
//	Log     L  worker → gateway  UTF-8 text of one entry
//	Report  G  worker → gateway  JSON Progress
//	Trace   T  worker → gateway  JSON Trailer, once, right before the final frame
//	Done    D  worker → gateway  JSON value: the result; final
//	Fail    E  worker → gateway  JSON Failure; final
//
// The gateway sends Boot, Hello and later Start; the worker answers Hello when it is
// warm. After its final frame a worker is silent and the gateway kills it.

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
)

// Version is the protocol's version, sent in both Hello frames.
const Version = 2

// Kind is the type byte of a frame.
type Kind byte

// The kinds of frames.
const (
	Boot   Kind = 'B'
	Hello  Kind = 'H'
	Start  Kind = 'P'
	Answer Kind = 'A'
	Call   Kind = 'C'
	Log    Kind = 'L'
	Report Kind = 'G'
	Trace  Kind = 'T'
	Done   Kind = 'D'
	Fail   Kind = 'E'
)

const headerSize = 5

// ErrKind reports a frame whose kind may not arrive here.
var ErrKind = errors.New("unknown kind of frame")

// TooLargeError reports a frame that announces more than its kind allows. It is
// found before any of the payload is read.
type TooLargeError struct {
	Kind        Kind
	Size, Limit int64
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("frame %q of %d bytes is over its limit of %d", rune(e.Kind), e.Size, e.Limit)
}

// Frame is one decoded frame.
type Frame struct {
	Kind    Kind
	Payload []byte
}

// Limits holds the largest payload of each kind that may arrive; a kind that is
// not listed may not arrive at all.
type Limits map[Kind]int64

// Reader decodes frames. It is used by one goroutine.
type Reader struct {
	br     *bufio.Reader
	limits Limits
}

// NewReader reads frames from r.
func NewReader(r io.Reader, limits Limits) *Reader {
	return &Reader{br: bufio.NewReaderSize(r, 64<<10), limits: limits}
}

// SetLimits replaces the limits for the frames to come.
func (r *Reader) SetLimits(l Limits) { r.limits = l }

// Buffered reports how many bytes have arrived that no frame has used yet.
func (r *Reader) Buffered() int { return r.br.Buffered() }

// Next returns the next frame: io.EOF at the end between two frames,
// io.ErrUnexpectedEOF inside one, ErrKind or *TooLargeError for one that may not be.
func (r *Reader) Next() (Frame, error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(r.br, h[:]); err != nil {
		return Frame{}, err
	}
	kind, size := Kind(h[4]), int64(binary.LittleEndian.Uint32(h[:4]))
	limit, ok := r.limits[kind]
	if !ok {
		return Frame{}, fmt.Errorf("%w: 0x%02x", ErrKind, byte(kind))
	}
	if size > limit {
		return Frame{}, &TooLargeError{Kind: kind, Size: size, Limit: limit}
	}
	payload := make([]byte, size)
	if _, err := io.ReadFull(r.br, payload); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // the header promised a payload
		}
		return Frame{}, err
	}
	return Frame{Kind: kind, Payload: payload}, nil
}

// Writer encodes frames. Its methods may be called concurrently; a frame is never
// interleaved with another. Frames that are ready at the same time share one write:
// each write wakes the worker, which costs more than anything else here.
type Writer struct {
	w io.Writer

	mu      sync.Mutex
	quiet   sync.Cond // signalled when there is room in waiting, or nobody writes
	writing bool
	waiting []byte // frames for whoever is writing
	spare   []byte
	err     error // the first one: nothing is written after it
}

// NewWriter writes frames to w.
func NewWriter(w io.Writer) *Writer {
	out := &Writer{w: w}
	out.quiet.L = &out.mu
	return out
}

// copyLimit is the size up to which frames are joined into one write.
const copyLimit = 64 << 10

// Write sends one frame whose payload is head followed by body. It may return before
// the frame is written when others are being written; an error is then returned to
// whoever comes next.
func (w *Writer) Write(kind Kind, head, body []byte) error {
	size := len(head) + len(body)
	if int64(size) > int64(^uint32(0)) {
		return &TooLargeError{Kind: kind, Size: int64(size), Limit: int64(^uint32(0))}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	large := len(body) > copyLimit
	for w.err == nil && w.writing && (large || len(w.waiting) > copyLimit) {
		w.quiet.Wait()
	}
	if w.err != nil {
		return w.err
	}
	w.waiting = binary.LittleEndian.AppendUint32(w.waiting, uint32(size))
	w.waiting = append(append(w.waiting, byte(kind)), head...)
	if !large {
		w.waiting = append(w.waiting, body...)
		if w.writing {
			return nil
		}
	}
	w.writing = true
	if large {
		w.flushLocked(body)
	} else {
		w.mu.Unlock()
		runtime.Gosched() // what else is ready now joins
		w.mu.Lock()
	}
	for len(w.waiting) > 0 && w.err == nil {
		w.flushLocked(nil)
	}
	w.writing = false
	w.quiet.Broadcast()
	return w.err
}

// flushLocked writes what waits, and body after it. It unlocks meanwhile.
func (w *Writer) flushLocked(body []byte) {
	out := w.waiting
	w.waiting = w.spare[:0]
	w.mu.Unlock()
	_, err := w.w.Write(out)
	if err == nil && body != nil {
		_, err = w.w.Write(body)
	}
	w.mu.Lock()
	w.spare = out
	if w.err == nil {
		w.err = err
	}
	w.quiet.Broadcast()
}
