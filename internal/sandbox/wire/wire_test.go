package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var all = Limits{Boot: 1 << 20, Hello: 4, Start: 1 << 20, Answer: 1 << 20, Call: 1 << 20, Log: 1 << 10, Report: 1 << 10, Trace: 1 << 20, Done: 1 << 20, Fail: 1 << 10}

// frames decodes everything and writes one line for each frame and the error at the end.
func frames(r io.Reader, l Limits) string {
	var b strings.Builder
	reader := NewReader(r, l)
	for {
		f, err := reader.Next()
		if err != nil {
			fmt.Fprintf(&b, "error: %v\n", err)
			return b.String()
		}
		fmt.Fprintf(&b, "%c %q%s\n", f.Kind, f.Payload, message(f))
	}
}

// message decodes the payload and writes it again.
func message(f Frame) string {
	var v any
	switch f.Kind {
	case Call:
		id, m, err := DecodeCall(f.Payload)
		if err != nil {
			return " error: " + err.Error()
		}
		text, _ := json.Marshal(m)
		return fmt.Sprintf(" call %d %s", id, text)
	case Trace:
		v = &Trailer{}
	case Fail:
		v = &Failure{}
	case Report:
		v = &Progress{}
	default:
		return ""
	}
	if err := Decode(f.Payload, v); err != nil {
		return " error: " + err.Error()
	}
	text, _ := json.Marshal(v)
	return " " + string(text)
}

// TestGolden decodes the Go-quoted bytes of each case. A case is a file with the
// parts "bytes" (one quoted string a line) and "frames".
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var input bytes.Buffer
			for line := range strings.Lines(string(a.Files[0].Data)) {
				var s string
				if _, err := fmt.Sscanf(line, "%q", &s); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				input.WriteString(s)
			}
			got := frames(&input, all)
			if *update {
				a.Files = append(a.Files[:1], txtar.File{Name: "frames", Data: []byte(got)})
				if err := os.WriteFile(file, txtar.Format(a), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(a.Files[1].Data), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 5, copyLimit, copyLimit + 1, 1 << 19} {
		var b bytes.Buffer
		body := bytes.Repeat([]byte("x"), size)
		if err := NewWriter(&b).Write(Answer, EncodeAnswer(7, true, time.UnixMilli(12)), body); err != nil {
			t.Fatal(err)
		}
		f, err := NewReader(&b, all).Next()
		if err != nil || f.Kind != Answer || !bytes.Equal(f.Payload, append([]byte{7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x28, 0x40}, body...)) {
			t.Errorf("size %d: %c of %d bytes, %v", size, f.Kind, len(f.Payload), err)
		}
	}
}

func TestTruncated(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := NewWriter(&b).Write(Log, nil, []byte("text")); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	for n := range whole {
		_, err := NewReader(bytes.NewReader(whole[:n]), all).Next()
		want := io.ErrUnexpectedEOF
		if n == 0 {
			want = io.EOF
		}
		if !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", n, err, want)
		}
	}
}

// TestOversized shows that nothing is read or allocated for a payload over its limit.
func TestOversized(t *testing.T) {
	t.Parallel()
	header := binary.LittleEndian.AppendUint32(nil, 1<<32-1)
	_, err := NewReader(bytes.NewReader(append(header, byte(Log))), all).Next()
	large, ok := errors.AsType[*TooLargeError](err)
	if !ok || large.Kind != Log || large.Size != 1<<32-1 || large.Limit != 1<<10 {
		t.Errorf("error %v", err)
	}
}

// TestConcurrentWrites reads whole frames from many writers.
func TestConcurrentWrites(t *testing.T) {
	t.Parallel()
	r, out := io.Pipe()
	w := NewWriter(out)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			body := bytes.Repeat([]byte{byte('a' + i)}, copyLimit+i*1000)
			for range 20 {
				if err := w.Write(Done, nil, body); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() {
		wg.Wait()
		_ = out.Close()
	}()
	reader := NewReader(r, all)
	n := 0
	for ; ; n++ {
		f, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || len(bytes.Trim(f.Payload, string(f.Payload[:1]))) != 0 {
			t.Fatalf("frame %d is mixed: %v", n, err)
		}
	}
	if n != 160 {
		t.Errorf("%d frames, want 160", n)
	}
}

// TestBothSidesAgree compares the protocol's description and version in Go and
// TypeScript, which are to be changed together.
func TestBothSidesAgree(t *testing.T) {
	t.Parallel()
	description := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, ok := strings.Cut(string(b), "// The protocol, both sides.")
		text, _, end := strings.Cut(rest, "\n\n")
		if !ok || !end {
			t.Fatalf("%s has no description", file)
		}
		return text
	}
	typescript := "../../../sandbox-runtime/protocol.ts"
	if diff := cmp.Diff(description("frame.go"), description(typescript)); diff != "" {
		t.Error(diff)
	}
	b, err := os.ReadFile(typescript)
	if err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]Kind{
		"Boot": Boot, "Hello": Hello, "Start": Start, "Answer": Answer, "Call": Call, "Log": Log, "Report": Report, "Trace": Trace, "Done": Done, "Fail": Fail,
	} {
		if want := fmt.Sprintf("export const %s = 0x%02x;", name, byte(kind)); !strings.Contains(string(b), want) {
			t.Errorf("protocol.ts does not say %q", want)
		}
	}
	if want := fmt.Sprintf("export const Version = %d;", Version); !strings.Contains(string(b), want) {
		t.Errorf("protocol.ts does not say %q", want)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00Lhi\x01\x00\x00\x00D1"))
	f.Add([]byte("\xff\xff\xff\xffC"))
	f.Add([]byte("\x04\x00\x00\x00H\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, input []byte) {
		r := NewReader(bytes.NewReader(input), all)
		var again bytes.Buffer
		w := NewWriter(&again)
		for {
			frame, err := r.Next()
			if err != nil {
				break
			}
			if err := w.Write(frame.Kind, nil, frame.Payload); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.HasPrefix(input, again.Bytes()) {
			t.Errorf("%q was read as %q", input, again.Bytes())
		}
	})
}

func FuzzMessages(f *testing.F) {
	f.Add(byte(Call), []byte("\x01\x00\x00\x00{\"server\":\"a\",\"tool\":\"b\",\"args\":{}}"))
	f.Add(byte(Trace), []byte(`{"records":[{"t":"dec","q":1,"f":0,"id":"d1","o":"true"}],"logsDropped":3}`))
	f.Add(byte(Fail), []byte(`{"kind":"thrown","name":"Error","message":"x"}`))
	f.Add(byte(Report), []byte(`{"done":1,"total":2,"message":"x"}`))
	f.Fuzz(func(t *testing.T, kind byte, payload []byte) {
		_ = message(Frame{Kind: Kind(kind), Payload: payload}) // no input may panic
	})
}
