// Package fault owns the closed list of error codes that people and models
// read, and the one error type that carries such a code together with a message,
// a hint and the place it is about. It never logs and never decides: every layer
// makes faults, the faces print them.
package fault

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Code names one kind of failure. The list below is closed: clients switch on it.
type Code string

// The codes, in the order in which a request can meet them.
const (
	InvalidInput          Code = "invalid_input"
	SyntaxError           Code = "syntax_error"
	UnknownTool           Code = "unknown_tool"
	UnknownCapability     Code = "unknown_capability"
	UnsupportedCode       Code = "unsupported_code"
	Denied                Code = "denied"
	ApprovalRejected      Code = "approval_rejected"
	ApprovalExpired       Code = "approval_expired"
	ToolFailed            Code = "tool_failed"
	RuntimeError          Code = "runtime_error" // the program threw an error of its own
	InvalidToolArguments  Code = "invalid_tool_arguments"
	UpstreamUnavailable   Code = "upstream_unavailable"
	UpstreamTimeout       Code = "upstream_timeout"
	Timeout               Code = "timeout"
	CPULimit              Code = "cpu_limit"
	MemoryLimit           Code = "memory_limit"
	OutputLimit           Code = "output_limit"
	TooManyCalls          Code = "too_many_calls"
	WorkerLost            Code = "worker_lost"
	Unavailable           Code = "unavailable" // the queue in front of the sandbox is full, or the gateway is stopping
	Cancelled             Code = "cancelled"
	Interrupted           Code = "interrupted"
	InterruptedCall       Code = "interrupted_call"
	ResultNotSerializable Code = "result_not_serializable"
	NotFound              Code = "not_found"
	Expired               Code = "expired"
	StorageUnavailable    Code = "storage_unavailable"
	Internal              Code = "internal"
)

// Error is a failure that a person or a model reads.
// Line and Column are one-based positions in the user's own source; zero means unknown.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	NodeID  string `json:"node_id,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	// Source is the line of the user's program that the position points into.
	Source string `json:"source,omitempty"`
	// Stack is the user's own part of a stack trace, one frame a line.
	Stack string `json:"stack,omitempty"`
	// Detail is what a tool said beside its message; only the journal keeps it.
	Detail *Detail `json:"detail,omitempty"`
	// ID joins an internal error with the log entry that has the detail.
	ID string `json:"id,omitempty"`
}

// Detail is what a failed call of a tool came with.
type Detail struct {
	Code    string          `json:"code,omitempty"`
	Content json.RawMessage `json:"content,omitempty"`
}

// New makes an Error with a formatted message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithHint returns a copy of e that tells the reader what to do next.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// Error implements error: the code and the message, without the hint.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Is reports whether target is an *Error with the same code and no message of
// its own, so that errors.Is(err, &fault.Error{Code: fault.Timeout}) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == ""
}

// CodeOf returns the code that err carries, Internal when it carries none, and
// the empty code for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}
