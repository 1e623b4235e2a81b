package pglite

// The framed conversation with the child. Its other side, with the same names, is
// sandbox-runtime/pglite/pglite.ts:
//
//	child → parent  after start-up one answer: the JSON of hello
//	parent → child  u32be n | n bytes    one unit of front-end messages, up to Sync or Query
//	                u32be 0              ask for statistics
//	child → parent  (u32be n | n bytes)* | u32be 0    the answer to a unit, or the JSON of Stats
//	stdin EOF       shutdown checkpoint, exit 0

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

const (
	protocolVersion = 1
	headerSize      = 4
	// maxUnit bounds what one connection may gather before it is run.
	maxUnit = 256 << 20
	// maxFrame is far above what the child sends at once (256 KiB): a larger
	// length means that something other than the protocol was written to stdout.
	maxFrame = 1 << 20
)

type hello struct {
	Protocol int `json:"protocol"`
}

// Stats is what the child says about itself.
type Stats struct {
	RSS    int64   `json:"rss"`     // bytes of memory of the whole process
	WASM   int64   `json:"wasm"`    // bytes of PostgreSQL's memory; it never shrinks
	Syncs  int64   `json:"syncs"`   // how often fsync reached the disk
	SyncMS float64 `json:"sync_ms"` // time spent in it
	Units  int64   `json:"units"`
}

// frames reads and writes frames. One caller at a time: the holder of the turn.
type frames struct {
	w io.Writer
	r *bufio.Reader
}

func newFrames(w io.Writer, r io.Reader) *frames {
	return &frames{w: w, r: bufio.NewReaderSize(r, 256<<10)}
}

// unit is a request under construction. Its first bytes are kept for the header,
// so that it is sent by a single write.
type unit []byte

func newUnit(msgs ...message) unit {
	u := make(unit, headerSize, 512)
	for _, m := range msgs {
		u = append(u, m...)
	}
	return u
}

func (u unit) empty() bool { return len(u) <= headerSize }

// send writes a unit; an empty one asks for statistics.
func (f *frames) send(u unit) error {
	binary.BigEndian.PutUint32(u, uint32(len(u)-headerSize))
	_, err := f.w.Write(u)
	return err
}

// answer reads frames up to the end mark and hands each to part, which must not
// keep it. It reads to the end even when part has failed, so that the next answer
// is not mistaken for this one.
func (f *frames) answer(part func([]byte) error) error {
	var header [headerSize]byte
	var buf []byte
	var failed error
	for {
		if _, err := io.ReadFull(f.r, header[:]); err != nil {
			return fmt.Errorf("read frame: %w", err)
		}
		n := int(binary.BigEndian.Uint32(header[:]))
		if n == 0 {
			return failed
		}
		if n > maxFrame {
			return fmt.Errorf("frame of %d bytes: not the protocol of this gateway", n)
		}
		if cap(buf) < n {
			buf = make([]byte, max(n, 64<<10))
		}
		if _, err := io.ReadFull(f.r, buf[:n]); err != nil {
			return fmt.Errorf("read frame: %w", err)
		}
		if failed == nil {
			failed = part(buf[:n])
		}
	}
}

// readJSON reads an answer that is one JSON value.
func (f *frames) readJSON(v any) error {
	var b []byte
	err := f.answer(func(p []byte) error {
		b = append(b, p...)
		return nil
	})
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
