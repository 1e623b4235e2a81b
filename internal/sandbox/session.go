package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox/wire"
)

// session is one program in one worker. Its reader is the goroutine that called Run;
// calls are answered by goroutines of their own.
type session struct {
	pool  *Pool
	w     *worker
	prog  Program
	units map[string]unit
	host  Host
	out   Outcome
	tape  *tape
	clock *clock

	cancel   context.CancelCauseFunc
	calls    sync.WaitGroup
	slots    chan struct{} // one for each call in flight
	reports  chan wire.Progress
	logBytes int64
	waiting  atomic.Int64 // bytes of answers that the worker has not read
	order    sync.Mutex   // seals and sends one answer after the other

	mu     sync.Mutex
	failed map[uint32]failedCall
}

// failedCall is a call whose failure the program was told.
type failedCall struct {
	err  error
	node string
	tool string
}

// protocolError says how a worker broke the protocol.
type protocolError struct{ err error }

// Error implements error.
func (e *protocolError) Error() string { return e.err.Error() }

func newSession(p *Pool, w *worker, prog Program, units map[string]unit, host Host) *session {
	return &session{
		pool: p, w: w, prog: prog, units: units, host: host, tape: newTape(prog, prog.Limits.Records),
		out: Outcome{Level: p.Level()}, slots: make(chan struct{}, prog.Limits.InFlight),
		reports: make(chan wire.Progress, 1), failed: map[uint32]failedCall{},
	}
}

// run starts the program and returns when it has ended and nothing of it is left
// but its process, which is dead or about to be.
func (s *session) run(parent context.Context, start []byte) error {
	ctx, cancel := context.WithCancelCause(parent)
	s.cancel = cancel
	l := s.prog.Limits
	base, _ := cpuTime(s.w.pid())
	if err := s.pool.limitWorker(s.w, l, base); err != nil {
		s.pool.log.DebugContext(ctx, "a worker keeps the limits of its start", "error", err)
	}
	s.clock = newClock(l.Wall, func() { cancel(errWall) })
	kill := context.AfterFunc(ctx, s.w.kill)
	var helpers sync.WaitGroup
	helpers.Go(func() { watchCPU(ctx, s.w.pid(), base, l.CPU, func() { cancel(errCPU) }) })
	helpers.Go(func() { s.passReports(ctx) })

	s.w.reader.SetLimits(s.frameLimits())
	err := s.w.writer.Write(wire.Start, nil, start)
	if err == nil {
		err = s.read(context.WithValue(ctx, clockKey{}, s.clock))
	}
	s.out.Wall = s.clock.stop()
	if used, ok := cpuTime(s.w.pid()); ok {
		s.out.CPU = used - base
	}
	if err != nil {
		err = s.explain(ctx, err)
	}
	cancel(errEnded)
	kill()
	helpers.Wait()
	s.calls.Wait()
	s.out.Records = s.tape.records
	s.out.RecordsTruncated = s.out.RecordsTruncated || err != nil && s.tape.full()
	return err
}

// frameLimits are the largest payloads of what a running worker may send.
func (s *session) frameLimits() wire.Limits {
	const records = 8 << 20 // 20,000 records with long names
	l := s.prog.Limits
	return wire.Limits{
		wire.Call: l.Argument + records, wire.Log: l.LogBytes + 1<<10, wire.Report: 16 << 10,
		wire.Trace: records, wire.Done: l.Result, wire.Fail: 512 << 10,
	}
}

// read handles frames until the final one.
func (s *session) read(ctx context.Context) error {
	for {
		f, err := s.w.reader.Next()
		if err != nil {
			return err
		}
		switch f.Kind {
		case wire.Call:
			err = s.call(ctx, f.Payload)
		case wire.Log:
			s.log(f.Payload)
		case wire.Report:
			err = s.report(f.Payload)
		case wire.Trace:
			err = s.end(f.Payload)
		case wire.Done:
			return s.finish(s.succeed(f.Payload))
		case wire.Fail:
			return s.finish(s.fail(f.Payload))
		default:
			err = &protocolError{fmt.Errorf("%w: %q", wire.ErrKind, rune(f.Kind))}
		}
		if err != nil {
			return err
		}
	}
}

// finish makes sure that nothing came after the final frame.
func (s *session) finish(err error) error {
	if s.w.reader.Buffered() > 0 || readable(s.w.out) {
		return &protocolError{errors.New("it went on after its final frame")}
	}
	return err
}

func (s *session) succeed(payload []byte) error {
	if !json.Valid(payload) {
		return &protocolError{errors.New("the result is not JSON")}
	}
	s.out.Result = payload
	return nil
}

func (s *session) fail(payload []byte) error {
	var f wire.Failure
	if err := wire.Decode(payload, &f); err != nil {
		return &protocolError{fmt.Errorf("failure: %w", err)}
	}
	return s.failure(f)
}

// log keeps one entry. The worker keeps the limits by itself; more than that is a
// program that speaks for the worker, and is counted.
func (s *session) log(payload []byte) {
	l := s.prog.Limits
	s.logBytes += int64(len(payload))
	// The worker marks a cut entry with some bytes of its own.
	if len(s.out.Logs) >= l.LogLines || s.logBytes > l.LogBytes+64 || !utf8.Valid(payload) {
		s.out.LogsDropped++
		return
	}
	s.out.Logs = append(s.out.Logs, string(payload))
	s.host.Log(string(payload))
}

func (s *session) end(payload []byte) error {
	var t wire.Trailer
	if err := wire.Decode(payload, &t); err != nil {
		return &protocolError{fmt.Errorf("trailer: %w", err)}
	}
	if err := s.tape.end(t); err != nil {
		return &protocolError{err}
	}
	s.out.RecordsTruncated, s.out.RecordCounts = t.Truncated, t.Counts
	s.out.LogsDropped += max(0, t.LogsDropped)
	return nil
}

// report leaves a report for passReports; one that was not passed on yet gives way.
func (s *session) report(payload []byte) error {
	var r wire.Progress
	if err := wire.Decode(payload, &r); err != nil {
		return &protocolError{fmt.Errorf("report: %w", err)}
	}
	select {
	case <-s.reports:
	default:
	}
	s.reports <- r // never waits: the reader is the only sender
	return nil
}

// passReports gives the host the newest report whenever it has taken the one before.
func (s *session) passReports(ctx context.Context) {
	for {
		select {
		case r := <-s.reports:
			s.tell(ctx, r)
			continue
		case <-ctx.Done():
		}
		select {
		case r := <-s.reports: // the last one is not lost
			s.tell(ctx, r)
		default:
		}
		return
	}
}

// tell passes one report on. A panic there loses the report, not the gateway.
func (s *session) tell(ctx context.Context, r wire.Progress) {
	defer func() {
		if p := recover(); p != nil {
			s.pool.log.ErrorContext(ctx, "a progress report panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	s.host.Progress(r.Done, r.Total, r.Message)
}

// explain turns the error with which reading ended into what people read.
func (s *session) explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return s.stopped(cause)
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	if large, ok := errors.AsType[*wire.TooLargeError](err); ok && large.Kind == wire.Done {
		return outputFault(large.Size, large.Limit)
	}
	s.w.kill()
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !isClosedPipe(err) {
		return protocolFault(err)
	}
	select {
	case <-s.w.done:
		return s.crashed()
	case <-time.After(reapDelay + time.Second):
		return fault.New(fault.WorkerLost, "the worker ended without a word")
	}
}
