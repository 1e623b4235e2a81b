package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox/wire"
	"github.com/pml-run/pml/internal/tool"
)

// failure is the error that the program itself ended with.
func (s *session) failure(f wire.Failure) error {
	switch f.Kind {
	case wire.FailSyntax:
		return s.located(fault.SyntaxError, f).WithHint("fix the syntax and send the program again; nothing has run")
	case wire.FailThrown:
		return s.thrown(f)
	case wire.FailTool:
		return s.toolFailed(f)
	case wire.FailResult:
		e := fault.New(fault.ResultNotSerializable, "%s", f.Message)
		return e.WithHint("return plain data: %s", resultHint(f.Message))
	case wire.FailOutput:
		return outputFault(f.Size, s.prog.Limits.Result)
	case wire.FailUnsupported:
		return s.located(fault.UnsupportedCode, f).
			WithHint("programs reach the outside only through mcp.<server>.<tool>(args); modules and the network are not available")
	}
	return protocolFault(fmt.Errorf("unknown kind of failure %q", f.Kind))
}

// located is an error with its place in the user's program.
func (s *session) located(code fault.Code, f wire.Failure) *fault.Error {
	e := fault.New(code, "%s", f.Message)
	s.locate(e, f)
	return e
}

// globals are names that programs for other runtimes use.
var globals = regexp.MustCompile(`^(Deno|process|require|Buffer|global|window|document|navigator|localStorage|module|exports|__dirname|__filename|WebAssembly|Worker|WebSocket|XMLHttpRequest|setImmediate|Bun) is not defined`)

func (s *session) thrown(f wire.Failure) error {
	if f.Name == "RangeError" && strings.Contains(f.Message, "Array buffer allocation failed") {
		e := memoryFault("the program used more than its %d MB of memory: %s", s.prog.Limits.MemoryMB, f.Message)
		s.locate(e, f)
		return e
	}
	e := s.located(fault.RuntimeError, f)
	if f.Name != "" && f.Name != "Error" {
		e.Message = f.Name + ": " + e.Message
	}
	switch {
	case globals.MatchString(f.Message):
		return e.WithHint("the sandbox has JavaScript's own objects only: use a tool of mcp for everything outside")
	case strings.HasPrefix(f.Message, "Cannot read properties of"), strings.HasSuffix(f.Message, "is not iterable"), strings.HasSuffix(f.Message, "is not a function"):
		return e.WithHint("a value does not have the expected shape: print it with console.log and look at the logs")
	}
	return e.WithHint("the program threw this itself: fix it at this place, or catch the error")
}

// toolFailed is an uncaught ToolError. What the host said counts, not what the
// worker says that it said.
func (s *session) toolFailed(f wire.Failure) error {
	s.mu.Lock()
	call, ok := s.failed[f.CallID]
	s.mu.Unlock()
	if !ok { // a call that the worker refused by itself, such as one with arguments that are too large
		e := s.located(fault.ToolFailed, f)
		e.Tool = f.Server + ":" + f.Tool
		return e.WithHint("catch the error with try/catch if the program can go on without this call")
	}
	var e *fault.Error
	if known, isFault := errors.AsType[*fault.Error](call.err); isFault {
		c := *known
		e = &c
	} else {
		e = fault.New(fault.ToolFailed, "%s", f.Message)
		if refused, isRefused := errors.AsType[*tool.CallError](call.err); isRefused {
			e.Message = refused.Message
		}
		e.Hint = "read the tool's message and change the arguments, or catch the error with try/catch"
	}
	e.Tool = call.tool
	if !strings.HasPrefix(call.node, "?") {
		e.NodeID = call.node
	}
	s.locate(e, f)
	if _, own := s.prog.Nodes[e.NodeID]; own && e.Line == 0 && s.prog.Site != nil {
		if line, column, ok := s.prog.Site(e.NodeID); ok {
			e.Line, e.Column, e.Source = line, column, sourceLine(s.prog.Original, line)
		}
	}
	return e
}

// resultHint says what to write instead of a value that JSON cannot carry.
func resultHint(message string) string {
	switch {
	case strings.Contains(message, "BigInt"):
		return "turn a BigInt into a number or a string, for example with String(value)"
	case strings.Contains(message, "cycle"):
		return "leave out the property that points back"
	case strings.Contains(message, "function"):
		return "leave the function out, or call it and await its result (tools too: await mcp.server.tool(args))"
	case strings.Contains(message, "instance of Promise"):
		return "await the promise first"
	case strings.Contains(message, "instance of Map"), strings.Contains(message, "instance of Set"):
		return "turn it into an object or an array, for example with Object.fromEntries(map) or [...set]"
	}
	return "objects, arrays, strings, numbers, booleans and null"
}

func outputFault(size, limit int64) *fault.Error {
	return fault.New(fault.OutputLimit, "the result has %d bytes; the limit is %d", size, limit).
		WithHint("return less: only the fields that are needed, the first items, or a count")
}

func memoryFault(format string, args ...any) *fault.Error {
	return fault.New(fault.MemoryLimit, format, args...).
		WithHint("work on less data at a time: ask tools for pages or filtered results, and keep only the fields that are needed")
}

func protocolFault(err error) *fault.Error {
	return fault.New(fault.WorkerLost, "the worker broke the protocol and was killed: %v", err).
		WithHint("a program must not tamper with the sandbox's own objects; if it does not, report this with the program")
}

func cancelled(ctx context.Context) error {
	cause := context.Cause(ctx)
	if f, ok := errors.AsType[*fault.Error](cause); ok {
		return f
	}
	if errors.Is(cause, ErrStopped) {
		return fault.New(fault.Cancelled, "the gateway is stopping").WithHint("run the program again once the gateway is back")
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		return fault.New(fault.Timeout, "the request's deadline passed").WithHint("allow more time, or do less in one program")
	}
	return fault.New(fault.Cancelled, "the run was cancelled").WithHint("nothing to fix: run it again if it is still wanted")
}

// stopped is the error of a run whose context ended for a cause.
func (s *session) stopped(cause error) error {
	l := s.prog.Limits
	switch {
	case errors.Is(cause, errWall):
		return fault.New(fault.Timeout, "the program ran longer than %s", l.Wall).
			WithHint("await independent calls together with Promise.all, do less in one program, or look for a loop or a promise that never ends")
	case errors.Is(cause, errCPU):
		return s.overCPU()
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(s.pool.ctx))
	cancel(cause)
	return cancelled(ctx)
}

func (s *session) overCPU() error {
	return fault.New(fault.CPULimit, "the program computed for more than %s", s.prog.Limits.CPU).
		WithHint("look for a loop that does not end, or let a tool do the heavy part")
}

// outOfMemory are what V8 and Rust say on stderr before they give up.
var outOfMemory = []string{"heap out of memory", "memory allocation of", "Array buffer allocation failed", "out of memory", "Out of memory"}

// crashed says why a worker ended without a final frame.
func (s *session) crashed() error {
	text := s.w.stderr.String()
	for _, sign := range outOfMemory {
		if strings.Contains(text, sign) {
			return memoryFault("the program used more than its %d MB of memory", s.prog.Limits.MemoryMB)
		}
	}
	state := s.w.cmd.ProcessState
	status, ok := state.Sys().(syscall.WaitStatus)
	signal := ok && status.Signaled()
	used := state.UserTime() + state.SystemTime()
	if signal && (status.Signal() == syscall.SIGXCPU || status.Signal() == syscall.SIGKILL && used >= s.prog.Limits.CPU) {
		return s.overCPU()
	}
	e := fault.New(fault.WorkerLost, "the worker ended by itself (%s)", state)
	if signal && status.Signal() == syscall.SIGKILL {
		return e.WithHint("it was killed from outside, usually because the machine is out of memory: run it again")
	}
	if line := lastLine(text); line != "" {
		e.Message += ": " + line
	}
	return e.WithHint("run the program again; if it happens again, report it with the program")
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	line := text[strings.LastIndexByte(text, '\n')+1:]
	return line[:min(len(line), 300)]
}

// readable reports whether there is something to read right now.
func readable(f interface {
	SyscallConn() (syscall.RawConn, error)
},
) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	var n int
	// The descriptor does not block, and "true" says that one try is enough.
	_ = conn.Read(func(fd uintptr) bool {
		n, _ = syscall.Read(int(fd), make([]byte, 1))
		return true
	})
	return n > 0
}

// isClosedPipe reports whether the error only says that the other side is gone.
func isClosedPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed)
}
