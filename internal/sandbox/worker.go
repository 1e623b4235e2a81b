package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/pml-run/pml/internal/sandbox/wire"
)

const (
	// helloTimeout bounds the start of a worker, on a machine that has other work.
	helloTimeout = 30 * time.Second
	// stderrLimit is how much of a worker's stderr is kept: a crash report of V8.
	stderrLimit = 8 << 10
	// reapDelay bounds the wait for stderr after the death of a worker.
	reapDelay = time.Second
)

// workerEnv is a worker's whole environment. DENO_DIR is no directory, so that
// nothing is cached, stored or found by a later run.
var workerEnv = []string{
	"HOME=/nonexistent", "DENO_DIR=/dev/null", "DENO_NO_UPDATE_CHECK=1", "NO_COLOR=1", "TZ=UTC",
}

// worker is one process that will run, or runs, one program.
//
// It is not a supervise.Process: that ends a child by a ladder and is followed by a
// watchdog, where a worker is killed at once, through its own process handle, and
// follows the thread that started it.
type worker struct {
	cmd    *exec.Cmd
	in     *os.File
	out    *os.File
	reader *wire.Reader
	writer *wire.Writer
	stderr *head
	once   sync.Once
	done   chan struct{} // closed when the process was reaped
	took   time.Duration // from the start to Hello
}

// startWorker starts a process and waits for its Hello. The calling goroutine must
// be locked to a thread that outlives the worker. reaped is done when the process
// has been reaped.
func startWorker(reaped *sync.WaitGroup, runtime []byte, name string, args []string) (*worker, error) {
	began := time.Now()
	w := &worker{done: make(chan struct{}), stderr: &head{limit: stderrLimit}}
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("stdin pipe: %w", err)
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("stdout pipe: %w", err), childIn.Close(), in.Close())
	}
	w.in, w.out = in, out
	w.cmd = exec.Command(name, args...) //nolint:gosec,noctx // our own binary or Deno; kill ends it
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = childIn, childOut, w.stderr
	w.cmd.Env, w.cmd.Dir, w.cmd.WaitDelay = workerEnv, "/", reapDelay
	w.cmd.SysProcAttr = workerAttr()
	err = w.cmd.Start()
	_, _ = childIn.Close(), childOut.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), in.Close(), out.Close())
	}
	reaped.Go(w.reap)
	if err := w.hello(runtime); err != nil {
		w.kill()
		<-w.done
		return nil, err
	}
	w.took = time.Since(began)
	return w, nil
}

// reap waits for the end of the process; pairs with every receive on done.
func (w *worker) reap() {
	_ = w.cmd.Wait() // how it ended is in ProcessState
	close(w.done)
}

// hello sends the runtime and exchanges versions. A worker that says Hello is warm.
func (w *worker) hello(runtime []byte) error {
	w.writer = wire.NewWriter(w.in)
	w.reader = wire.NewReader(w.out, wire.Limits{wire.Hello: 4})
	if err := w.writer.Write(wire.Boot, nil, runtime); err != nil {
		return w.startError(err)
	}
	if err := w.writer.Write(wire.Hello, wire.EncodeHello(wire.Version), nil); err != nil {
		return w.startError(err)
	}
	if err := w.out.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return fmt.Errorf("bound the start: %w", err)
	}
	f, err := w.reader.Next()
	if err != nil {
		return w.startError(err)
	}
	version, err := wire.DecodeHello(f.Payload)
	if err != nil {
		return err
	}
	if version != wire.Version {
		return fmt.Errorf("the worker speaks version %d of the protocol, this binary speaks version %d", version, wire.Version)
	}
	return w.out.SetReadDeadline(time.Time{})
}

// startError says why a worker did not say Hello.
func (w *worker) startError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the worker said nothing for %s", helloTimeout)
	}
	if errors.Is(err, wire.ErrKind) {
		return fmt.Errorf("the worker does not begin with its version: %w", err)
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("worker: %w", err)
	}
	w.kill()
	<-w.done
	return fmt.Errorf("the worker ended at its start (%s): %s", w.cmd.ProcessState, w.stderr)
}

// kill ends the process and unblocks whoever reads from it or writes to it. It does
// not wait; done is closed soon after. os.Process holds a handle of the process, so
// that the signal cannot hit another one with the same id.
func (w *worker) kill() {
	w.once.Do(func() {
		_ = w.cmd.Process.Kill()
		_ = w.in.Close()
		_ = w.out.Close()
	})
}

func (w *worker) pid() int { return w.cmd.Process.Pid }

// gone reports whether the process has ended.
func (w *worker) gone() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// head keeps the first bytes written to it and drops the rest: the reason of a
// crash comes first, and a flood costs nothing.
type head struct {
	limit int

	mu  sync.Mutex
	buf []byte
}

// Write implements io.Writer.
func (h *head) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if room := h.limit - len(h.buf); room > 0 {
		h.buf = append(h.buf, b[:min(room, len(b))]...)
	}
	return len(b), nil
}

// String implements fmt.Stringer.
func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.buf)
}
