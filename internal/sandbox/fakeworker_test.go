package sandbox

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox/wire"
)

// fakeWorkerArg is the first argument with which the test binary is a worker that
// says what its second argument tells it to.
const fakeWorkerArg = "__fake-worker"

// maybeFakeWorker speaks the protocol as a worker that was taken over would.
func maybeFakeWorker() {
	if len(os.Args) < 3 || os.Args[1] != fakeWorkerArg {
		return
	}
	var script []frameText
	if err := json.Unmarshal([]byte(os.Args[2]), &script); err != nil {
		panic(err)
	}
	// One write, so that what comes after a final frame is there when that is read.
	var out strings.Builder
	w := wire.NewWriter(&out)
	for _, f := range script {
		if f.Stderr > 0 {
			_, _ = os.Stderr.WriteString("first words\n" + strings.Repeat("x", f.Stderr))
		} else if f.Raw != nil {
			out.Write(f.Raw)
		} else if f.Kind == wire.Hello {
			_ = w.Write(f.Kind, wire.EncodeHello(f.Version), nil)
			_, _ = os.Stdout.WriteString(out.String())
			out.Reset()
			_, _ = io.ReadFull(os.Stdin, make([]byte, 15)) // the gateway's Boot and Hello, and the begin of Start
		} else {
			_ = w.Write(f.Kind, []byte(f.Head), []byte(f.Text))
		}
	}
	_, _ = os.Stdout.WriteString(out.String())
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// frameText is one step of a fake worker's script.
type frameText struct {
	Kind       wire.Kind
	Version    uint32
	Head, Text string
	Raw        []byte
	Stderr     int // bytes of it
}

// runFake runs a program in a fake worker.
func runFake(t *testing.T, prog Program, script ...frameText) (Outcome, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(append([]frameText{{Kind: wire.Hello, Version: wire.Version}}, script...))
	if err != nil {
		t.Fatal(err)
	}
	pool := sharedPool(t)
	var reaped sync.WaitGroup
	w, err := startWorker(&reaped, nil, self, []string{fakeWorkerArg, string(text)})
	if err != nil {
		t.Fatal(err)
	}
	defer reaped.Wait()
	defer w.kill()
	prog.Limits = prog.Limits.withDefaults()
	s := newSession(pool, w, prog, nil, &fakeHost{})
	err = s.run(t.Context(), []byte("{}"))
	return s.out, err
}

const (
	id1  = "\x01\x00\x00\x00"
	call = "2 0 0\n\"a\"\n\"b\"\n\"?a:b\"\n\n{}"
)

// TestForgedFrames shows what a worker that says anything can reach: nothing but
// the failure of its own run.
func TestForgedFrames(t *testing.T) {
	t.Parallel()
	done := frameText{Kind: wire.Done, Text: "1"}
	trace := func(text string) frameText { return frameText{Kind: wire.Trace, Text: text} }
	records := func(text string) []frameText { return []frameText{trace(`{"records":[` + text + `]}`), done} }
	tests := map[string]struct {
		script []frameText
		want   string // part of the message
	}{
		"unknown kind":          {[]frameText{{Kind: 'Z', Text: "x"}}, "unknown kind of frame"},
		"the gateway's kind":    {[]frameText{{Kind: wire.Answer, Text: "x"}}, "unknown kind of frame"},
		"second hello":          {[]frameText{{Kind: wire.Hello, Version: 1}}, "unknown kind of frame"},
		"stray text":            {[]frameText{{Raw: []byte("hello world\n")}}, "unknown kind of frame"},
		"too large":             {[]frameText{{Raw: []byte("\xff\xff\xff\xffL")}}, "over its limit"},
		"second final frame":    {[]frameText{done, done}, "went on after its final frame"},
		"fail after done":       {[]frameText{done, {Kind: wire.Fail, Text: "{}"}}, "went on after its final frame"},
		"result is not JSON":    {[]frameText{{Kind: wire.Done, Text: "{"}}, "result is not JSON"},
		"failure is not JSON":   {[]frameText{{Kind: wire.Fail, Text: "["}}, "failure: "},
		"failure of no kind":    {[]frameText{{Kind: wire.Fail, Text: `{"kind":"x","name":"","message":""}`}}, "unknown kind of failure"},
		"call without id":       {[]frameText{{Kind: wire.Call, Text: "x"}}, "without an id"},
		"call, not in lines":    {[]frameText{{Kind: wire.Call, Head: id1, Text: `{"x":1}`}}, "1 lines instead of 6"},
		"call without a tool":   {[]frameText{{Kind: wire.Call, Head: id1, Text: strings.Replace(call, `"b"`, `""`, 1)}}, "no server or no tool"},
		"call without a record": {[]frameText{{Kind: wire.Call, Head: id1, Text: strings.Replace(call, "2", "0", 1)}}, "has no record"},
		"call, other frame":     {[]frameText{{Kind: wire.Call, Head: id1, Text: strings.Replace(call, "2 0", "2 7", 1)}}, "frame 7, which was not opened"},
		"call twice":            {[]frameText{{Kind: wire.Call, Head: id1, Text: call}, {Kind: wire.Call, Head: id1, Text: call}}, "comes after"},
		"call, unknown node":    {[]frameText{{Kind: wire.Call, Head: id1, Text: strings.ReplaceAll(call, `?a:b`, `n9`)}}, `"n9", which the program does not have`},
		"record without a call": {records(`{"t":"call","q":0,"f":0,"id":"n1","tool":"a:b"}`), "a:b was called, but it was not"},
		"unknown node":          {records(`{"t":"dec","q":0,"f":0,"id":"d9","o":"true"}`), `"d9", which the program does not have`},
		"node of another kind":  {records(`{"t":"loop","q":0,"f":0,"id":"n1"}`), "which is a task"},
		"unknown type":          {records(`{"t":"zzz","q":0,"f":0,"id":"n1"}`), `type "zzz"`},
		"unknown frame":         {records(`{"t":"call","q":0,"f":7,"id":"n1","tool":"capability:x"}`), "frame 7, which was not opened"},
		"unknown parent":        {records(`{"t":"frame","q":0,"f":1,"p":7}`), "in frame 7, which was not"},
		"frame twice":           {records(`{"t":"frame","q":0,"f":1},{"t":"frame","q":1,"f":1}`), "opened twice"},
		"unknown capability":    {records(`{"t":"frame","q":0,"f":1,"cap":"gone"}`), `capability "gone"`},
		"order":                 {records(`{"t":"frame","q":1,"f":1},{"t":"frame","q":1,"f":2}`), "comes after"},
		"second trailer":        {[]frameText{trace(`{}`), trace(`{}`), done}, "told twice"},
		"truncated early":       {[]frameText{trace(`{"truncated":true}`), done}, "below the limit"},
		"count of unknown node": {[]frameText{trace(`{"counts":{"n9":1}}`), done}, `"n9", which the program does not have`},
		"report is not JSON":    {[]frameText{{Kind: wire.Report, Text: "x"}}, "report: "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prog := Program{Nodes: map[string]NodeKind{"n1": NodeTask}}
			_, err := runFake(t, prog, tt.script...)
			if f := wantFault(t, err, fault.WorkerLost); !strings.Contains(f.Message, tt.want) {
				t.Errorf("message %q, want %q in it", f.Message, tt.want)
			}
		})
	}
}

func TestForgedButHarmless(t *testing.T) {
	t.Parallel()
	flood := make([]frameText, 0, 302)
	for range 300 {
		flood = append(flood, frameText{Kind: wire.Log, Text: "line"})
	}
	out, err := runFake(t, Program{}, append(flood, frameText{Kind: wire.Done, Text: "1"})...)
	wantResult(t, out, err, "1")
	if len(out.Logs) != 200 || out.LogsDropped != 100 {
		t.Errorf("%d lines and %d dropped, want 200 and 100", len(out.Logs), out.LogsDropped)
	}
	_, err = runFake(t, Program{Limits: Limits{Result: 10}}, frameText{Kind: wire.Done, Text: `"more than ten bytes"`})
	wantFault(t, err, fault.OutputLimit)
	// A failure that no call had is the program's own word.
	_, err = runFake(t, Program{}, frameText{Kind: wire.Fail, Text: `{"kind":"tool","name":"ToolError","message":"m","callId":7,"server":"a","tool":"b"}`})
	wantFault(t, err, fault.ToolFailed)
}

// TestStderrFlood shows that a worker may write to stderr without end: it is read, and
// its first part is kept.
func TestStderrFlood(t *testing.T) {
	t.Parallel()
	out, err := runFake(t, Program{}, frameText{Stderr: 32 << 20}, frameText{Kind: wire.Done, Text: "1"})
	wantResult(t, out, err, "1")
	h := &head{limit: 10}
	for range 3 {
		if n, err := h.Write([]byte("abcdef")); n != 6 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
	if h.String() != "abcdefabcd" {
		t.Errorf("%q was kept", h)
	}
}

func TestWorkerVersion(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ script, want string }{
		"other version": {`[{"Kind":72,"Version":9}]`, "speaks version 9 of the protocol, this binary speaks version 2"},
		"other program": {`[{"Raw":"VXNhZ2U6IHNvbWV0aGluZwo="}]`, "does not begin with its version"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var reaped sync.WaitGroup
			_, err := startWorker(&reaped, nil, self, []string{fakeWorkerArg, tt.script})
			reaped.Wait()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestDeadWorker(t *testing.T) {
	t.Parallel()
	pool := sharedPool(t)
	host := &fakeHost{}
	w, err := pool.take(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.release(w)
	if err := syscall.Kill(w.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-w.done
	s := newSession(pool, w, Program{Limits: Limits{}.withDefaults()}, nil, host)
	if f := wantFault(t, s.run(t.Context(), []byte("{}")), fault.WorkerLost); !strings.Contains(f.Message, "signal: killed") {
		t.Errorf("message %q does not say how it ended", f.Message)
	}
}
