package pglite

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
	"time"
)

// FuzzFrontEnd reads whatever a client may send and renames it: no panic, and a
// message that is accepted has its true length.
func FuzzFrontEnd(f *testing.F) {
	f.Add([]byte(newMessage(kindParse, cstring("s"), cstring("select 1"), []byte{0, 0})))
	f.Add([]byte(newMessage(kindBind, cstring("p"), cstring("s"), []byte{0, 0})))
	f.Add([]byte(newMessage(kindClose, []byte{'S'}, cstring("s"))))
	f.Add([]byte{kindQuery, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		n := names{prefix: "c1_", statements: map[string]struct{}{}}
		for {
			m, err := readMessage(r, 1<<16)
			if err != nil {
				return
			}
			out, err := n.rename(m)
			if err != nil {
				return
			}
			if int(binary.BigEndian.Uint32(out[1:]))+1 != len(out) {
				t.Fatalf("length of %q", out)
			}
			_ = out.field('M')
			_, _ = out.columns()
		}
	})
}

// FuzzFrames cuts an answer into frames of any size: the messages come out the same.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x53\x00\x00\x00\x04hello"), 3)
	f.Add([]byte(fatalMessage("57P01", "gone")), 1)
	f.Fuzz(func(t *testing.T, body []byte, size int) {
		size = min(max(size, 1), maxFrame)
		want := newMessage(kindDataRow, body)
		stream := slices.Concat(want, newMessage(kindReady, []byte{'I'}))
		var wire []byte
		for part := range slices.Chunk([]byte(stream), size) {
			wire = append(binary.BigEndian.AppendUint32(wire, uint32(len(part))), part...)
		}
		wire = binary.BigEndian.AppendUint32(wire, 0)
		var split splitter
		var got []message
		err := newFrames(io.Discard, bytes.NewReader(wire)).answer(func(part []byte) error {
			return split.feed(part, func(m message) error {
				got = append(got, slices.Clone(m))
				return nil
			})
		})
		if err != nil || len(got) != 2 || !bytes.Equal(got[0], want) {
			t.Fatalf("%d messages, %v", len(got), err)
		}
		// Anything else must end in an error or in messages, never in a panic.
		_ = newFrames(io.Discard, bytes.NewReader(body)).answer(func(part []byte) error {
			return split.feed(part, func(message) error { return nil })
		})
	})
}

func TestAnswerIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	wire := []byte{0, 0, 0, 1, 'a', 0, 0, 0, 1, 'b', 0, 0, 0, 0, 0, 0, 0, 1, 'c', 0, 0, 0, 0}
	f := newFrames(io.Discard, bytes.NewReader(wire))
	broken := errors.New("broken")
	calls := 0
	if err := f.answer(func([]byte) error { calls++; return broken }); !errors.Is(err, broken) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
	var next string
	if err := f.answer(func(p []byte) error { next += string(p); return nil }); err != nil || next != "c" {
		t.Errorf("the next answer is %q, %v", next, err)
	}
}

func TestCheckpointDue(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_000_000, 0)
	var u upkeep
	for _, step := range []struct {
		name  string
		lsn   int64
		after time.Duration
		want  bool
	}{
		{"first look", 10, 0, false},
		{"little was written", 1000, time.Minute, false},
		{"not yet quiet", 1000, 5 * time.Minute, false},
		{"quiet", 1000, 6 * time.Minute, true},
		{"much was written", walPerCheckpoint + 2000, 6 * time.Minute, true},
	} {
		if got := u.checkpointDue(step.lsn, begin.Add(step.after)); got != step.want {
			t.Errorf("%s: %v, want %v", step.name, got, step.want)
		}
	}
}

func TestBackOff(t *testing.T) {
	t.Parallel()
	if a, b := backOff(1), backOff(2); a >= b {
		t.Errorf("%v, then %v", a, b)
	}
	if got := backOff(1000); got != backOffMax {
		t.Errorf("%v, want %v", got, backOffMax)
	}
}
