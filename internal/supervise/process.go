// Package supervise owns child processes: starting them in a group of their own,
// keeping the last words of their stderr, ending them by a ladder with a bound on
// each step, and making sure that none outlives a killed gateway. It knows
// nothing of what the children say on stdin and stdout.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Options says how to start a child. Command is required.
type Options struct {
	Command string
	Args    []string
	Env     []string // the whole environment; nothing is inherited
	Dir     string
	// ExtraFiles are passed as descriptors 3 and up.
	ExtraFiles []*os.File
	// StderrLimit is how many of the last bytes of stderr are kept; default 8 KiB.
	StderrLimit int
	// OnStderr is called with each line of stderr (cut at 4 KiB), from one goroutine.
	OnStderr func(line string)
	// EOFGrace is the time given after stdin was closed, TermGrace the time after
	// SIGTERM to the group. Defaults 500 ms and 2 s.
	EOFGrace, TermGrace time.Duration
	// Watchdog, when set, ends the child's group after a death of this process.
	Watchdog *Watchdog
}

// Process is a running child that leads a process group of its own.
// Stdin and Stdout are the caller's; Stop closes Stdin.
type Process struct {
	Stdin  *os.File
	Stdout *os.File

	opts   Options
	cmd    *exec.Cmd
	stderr *tail
	done   chan struct{}
	state  error // set before done is closed
	stop   sync.Once
}

// Start starts the child. It returns once the child exists, not when it is of use.
func Start(opts Options) (*Process, error) {
	if opts.StderrLimit == 0 {
		opts.StderrLimit = 8 << 10
	}
	if opts.EOFGrace == 0 {
		opts.EOFGrace = 500 * time.Millisecond
	}
	if opts.TermGrace == 0 {
		opts.TermGrace = 2 * time.Second
	}
	childIn, stdin, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("stdin pipe: %w", err)
	}
	stdout, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("stdout pipe: %w", err), childIn.Close(), stdin.Close())
	}
	p := &Process{
		Stdin: stdin, Stdout: stdout, opts: opts, done: make(chan struct{}),
		stderr: &tail{limit: opts.StderrLimit, line: opts.OnStderr},
	}
	p.cmd = exec.Command(opts.Command, opts.Args...) //nolint:gosec,noctx // running configured programs is this package's purpose; Stop ends them
	p.cmd.Env, p.cmd.Dir, p.cmd.ExtraFiles = opts.Env, opts.Dir, opts.ExtraFiles
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = childIn, childOut, p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// A grandchild may hold stderr open for ever: Wait gives up on the pipe after this.
	p.cmd.WaitDelay = time.Second
	if p.cmd.Env == nil {
		p.cmd.Env = []string{}
	}
	err = p.cmd.Start()
	_ = childIn.Close()
	_ = childOut.Close()
	if err != nil {
		return nil, errors.Join(err, stdin.Close(), stdout.Close())
	}
	opts.Watchdog.add(p.PID())
	go p.wait()
	return p, nil
}

// wait reaps the child; pairs with every receive on done.
func (p *Process) wait() {
	err := p.cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	p.state = err
	close(p.done)
}

// PID is the child's process id and its group's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended and was reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the child ended (nil for exit code 0). Call it after Done is closed.
func (p *Process) Err() error { return p.state }

// Stderr returns the last bytes that the child wrote to stderr.
func (p *Process) Stderr() string { return p.stderr.String() }

// Signal sends sig to the child's whole group. A group that is gone is no error.
func (p *Process) Signal(sig syscall.Signal) {
	_ = syscall.Kill(-p.PID(), sig)
}

// Kill ends the whole group at once and waits until the child is reaped.
func (p *Process) Kill() {
	p.stop.Do(func() {
		p.Signal(syscall.SIGKILL)
		p.finish()
	})
	<-p.done
}

// Stop ends the child: stdin is closed, then SIGTERM goes to the group, then
// SIGKILL. What the child left running in its group is killed as well. It returns
// when the child is reaped, and may be called more than once and concurrently.
// The end of ctx shortens every step to nothing.
func (p *Process) Stop(ctx context.Context) {
	p.stop.Do(func() {
		_ = p.Stdin.Close()
		if !p.within(ctx, p.opts.EOFGrace) {
			p.Signal(syscall.SIGTERM)
			_ = p.within(ctx, p.opts.TermGrace)
		}
		p.Signal(syscall.SIGKILL)
		p.finish()
	})
	<-p.done
}

// within waits for the end of the child, at most d.
func (p *Process) within(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.done:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

func (p *Process) finish() {
	<-p.done
	_ = p.Stdin.Close()
	_ = p.Stdout.Close()
	p.opts.Watchdog.remove(p.PID())
}

// tail keeps the last bytes written to it and hands out whole lines.
type tail struct {
	limit int
	line  func(string)

	mu      sync.Mutex
	buf     []byte
	partial []byte
}

var _ io.Writer = (*tail)(nil)

const maxLine = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - t.limit; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	if t.line != nil {
		t.lines(b)
	}
	return len(b), nil
}

func (t *tail) lines(b []byte) {
	for _, c := range b {
		if c != '\n' {
			if len(t.partial) < maxLine {
				t.partial = append(t.partial, c)
			}
			continue
		}
		t.line(string(t.partial))
		t.partial = t.partial[:0]
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
