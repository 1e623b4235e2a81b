package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// Program is the payload of Start: everything that a worker needs for its one run.
type Program struct {
	Source       string            `json:"source"` // JavaScript that evaluates to an async function
	Args         json.RawMessage   `json:"args"`
	Capabilities map[string]string `json:"capabilities"` // JavaScript, by name
	Limits       ProgramLimits     `json:"limits"`
	Seed         *Seed             `json:"seed,omitempty"`
}

// ProgramLimits are the limits that the worker keeps by itself, so that breaking
// one is an ordinary error with a place; the gateway checks them again.
type ProgramLimits struct {
	Argument int64 `json:"argument"`
	Result   int64 `json:"result"`
	LogLines int   `json:"logLines"`
	LogBytes int64 `json:"logBytes"`
	Records  int   `json:"records"`
	Depth    int   `json:"depth"`
}

// Seed fixes what a program sees of time and chance.
type Seed struct {
	Now    int64  `json:"now"` // Unix milliseconds of the first look at the clock
	Random uint32 `json:"random"`
}

// CallMessage is the payload of Call after the id. It has lines instead of being
// JSON, because a program may make many calls and a line takes no parsing.
type CallMessage struct {
	Server, Tool, Node string
	Raw                bool
	// Recorded says that this call is itself a record: a CallEvent in Frame.
	Recorded   bool
	Frame, Seq int
	Records    []Record // since the last call
	Args       json.RawMessage
}

// RecordType is what a Record tells.
type RecordType string

// The types of records. FrameOpened and Iteration open the frame Record.Frame.
const (
	FrameOpened RecordType = "frame"
	Iteration   RecordType = "iter"
	CallEvent   RecordType = "call"
	Decision    RecordType = "dec"
	Loop        RecordType = "loop"
	Fork        RecordType = "fork"
	Join        RecordType = "join"
	FrameEnded  RecordType = "end" // of a capability's body; Outcome is EndedOK or EndedError
)

// The outcomes of FrameEnded.
const (
	EndedOK    = "ok"
	EndedError = "error"
)

// Record is one thing that the instrumented program did. Frame 0 is the program's
// own and always there; every other frame is opened by a FrameOpened (function,
// capability) or an Iteration (one pass of a loop or one callback of a fork).
type Record struct {
	Type  RecordType `json:"t"`
	Seq   int        `json:"q"` // order over the whole run
	Frame int        `json:"f"` // where it happened, or the frame that it opens
	// ID is the node: of the event, or of the loop or fork that an Iteration is of.
	ID      string `json:"id,omitempty"`
	Outcome string `json:"o,omitempty"`    // Decision, FrameEnded
	Tool    string `json:"tool,omitempty"` // CallEvent: "server:tool" or "capability:name"

	// What follows is for records that open a frame.
	Parent     int    `json:"p,omitempty"`
	Name       string `json:"name,omitempty"` // the function's
	Capability string `json:"cap,omitempty"`  // the frame is the root of this capability's body
	Region     string `json:"r,omitempty"`    // the fork whose branch the frame runs in
	Branch     int    `json:"b,omitempty"`
	Index      int    `json:"k,omitempty"` // Iteration: counted per node and parent, from zero
}

// Progress is the payload of Report.
type Progress struct {
	Done    float64 `json:"done"`
	Total   float64 `json:"total"`
	Message string  `json:"message"`
}

// Trailer is the payload of Trace: the records after the last call, and what the
// worker had to leave out.
type Trailer struct {
	Records     []Record       `json:"records,omitempty"`
	Truncated   bool           `json:"truncated,omitempty"`
	Counts      map[string]int `json:"counts,omitempty"` // records left out, by node
	LogsDropped int            `json:"logsDropped,omitempty"`
}

// FailureKind says where a failure comes from.
type FailureKind string

// The kinds of failures.
const (
	FailSyntax      FailureKind = "syntax"      // the program does not load
	FailThrown      FailureKind = "thrown"      // an error of the program's own
	FailTool        FailureKind = "tool"        // an uncaught ToolError
	FailResult      FailureKind = "result"      // the result is not JSON
	FailOutput      FailureKind = "output"      // the result is too large
	FailUnsupported FailureKind = "unsupported" // something that the sandbox does not have
)

// Failure is the payload of Fail.
type Failure struct {
	Kind    FailureKind `json:"kind"`
	Name    string      `json:"name"`
	Message string      `json:"message"`
	Stack   string      `json:"stack,omitempty"`
	Unit    string      `json:"unit,omitempty"`   // FailSyntax: the capability that does not load
	CallID  uint32      `json:"callId,omitempty"` // FailTool: the call whose failure it is
	Server  string      `json:"server,omitempty"`
	Tool    string      `json:"tool,omitempty"`
	Size    int64       `json:"size,omitempty"` // FailOutput
}

// CallFailure is the payload of Answer when a call failed; the program sees it as
// a ToolError.
type CallFailure struct {
	Message string          `json:"message"`
	Code    string          `json:"code,omitempty"`
	Hint    string          `json:"hint,omitempty"`
	Content json.RawMessage `json:"content,omitempty"`
}

// EncodeHello is the payload of Hello for a version.
func EncodeHello(version uint32) []byte { return binary.LittleEndian.AppendUint32(nil, version) }

// DecodeHello returns the version in a Hello's payload.
func DecodeHello(p []byte) (uint32, error) {
	if len(p) != 4 {
		return 0, fmt.Errorf("hello of %d bytes", len(p))
	}
	return binary.LittleEndian.Uint32(p), nil
}

// EncodeAnswer is the head of an Answer's payload; the value follows it. at is when
// the answer came by the program's clock; zero does not move that.
func EncodeAnswer(id uint32, ok bool, at time.Time) []byte {
	h := binary.LittleEndian.AppendUint32(make([]byte, 0, 13), id)
	if ok {
		h = append(h, 1)
	} else {
		h = append(h, 0)
	}
	var ms float64
	if !at.IsZero() {
		ms = float64(at.UnixMilli())
	}
	return binary.LittleEndian.AppendUint64(h, math.Float64bits(ms))
}

// The flags of a Call.
const (
	flagRaw = 1 << iota
	flagRecorded
)

// DecodeCall splits a Call's payload. Its Args are a part of the payload.
func DecodeCall(p []byte) (uint32, CallMessage, error) {
	if len(p) < 4 {
		return 0, CallMessage{}, errors.New("call without an id")
	}
	m, err := decodeCall(p[4:])
	if err != nil {
		return 0, m, fmt.Errorf("call: %w", err)
	}
	return binary.LittleEndian.Uint32(p), m, nil
}

func decodeCall(p []byte) (m CallMessage, err error) {
	var lines [5][]byte
	for i := range lines {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			return m, fmt.Errorf("%d lines instead of %d", i+1, len(lines)+1)
		}
		lines[i], p = p[:end], p[end+1:]
	}
	var numbers [3]int
	if err := decodeNumbers(lines[0], numbers[:]); err != nil {
		return m, err
	}
	if numbers[0] > flagRaw|flagRecorded {
		return m, fmt.Errorf("unknown flags %d", numbers[0])
	}
	m.Raw, m.Recorded = numbers[0]&flagRaw != 0, numbers[0]&flagRecorded != 0
	m.Frame, m.Seq = numbers[1], numbers[2]
	for i, into := range []*string{&m.Server, &m.Tool, &m.Node} {
		if *into, err = decodeString(lines[1+i]); err != nil {
			return m, err
		}
	}
	if m.Server == "" || m.Tool == "" {
		return m, errors.New("no server or no tool")
	}
	if len(lines[4]) > 0 {
		if err := Decode(lines[4], &m.Records); err != nil {
			return m, fmt.Errorf("records: %w", err)
		}
	}
	if !json.Valid(p) {
		return m, errors.New("the arguments are not JSON")
	}
	m.Args = p
	return m, nil
}

// decodeNumbers reads numbers with one space between them.
func decodeNumbers(p []byte, into []int) error {
	for i := range into {
		text, rest, more := bytes.Cut(p, []byte{' '})
		n, err := strconv.ParseUint(string(text), 10, 32)
		if err != nil || more != (i < len(into)-1) {
			return fmt.Errorf("%q instead of %d numbers", p, len(into)-i)
		}
		into[i], p = int(n), rest
	}
	return nil
}

// decodeString reads a JSON string; one without an escape is what it says.
func decodeString(p []byte) (string, error) {
	if n := len(p); n >= 2 && p[0] == '"' && p[n-1] == '"' && plain(p[1:n-1]) {
		return string(p[1 : n-1]), nil
	}
	var s string
	if err := Decode(p, &s); err != nil {
		return "", err
	}
	return s, nil
}

func plain(p []byte) bool {
	for _, c := range p {
		if c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
			return false
		}
	}
	return true
}

// Decode reads one JSON message strictly: no unknown field, nothing after it.
func Decode(p []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(p))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the message")
	}
	return nil
}
