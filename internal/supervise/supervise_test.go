package supervise

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// modeVar turns the test binary into a child.
const modeVar = "PML_TEST_CHILD"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == WatchdogArg {
		RunWatchdog(os.Stdin)
		return
	}
	if mode, ok := os.LookupEnv(modeVar); ok {
		os.Exit(child(mode))
	}
	goleak.VerifyTestMain(m)
}

// child is a process that behaves by its mode. "ready" on stdout is the signal
// that its handlers are in place.
func child(mode string) int {
	switch mode {
	case "polite": // ends with stdin
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	case "term": // ends with SIGTERM only
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("ready")
		<-c
		fmt.Fprintln(os.Stderr, "terminated")
		return 5
	case "stubborn": // ends with SIGKILL only
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		forever()
	case "parent": // leaves a grandchild with all pipes and ends
		g := exec.Command(os.Args[0])
		g.Env = []string{modeVar + "=stubborn"}
		g.Stdout, g.Stderr, g.ExtraFiles = os.Stdout, os.Stderr, inherited()
		if g.Start() != nil {
			return 1
		}
		return 0
	case "words":
		fmt.Fprint(os.Stderr, strings.Repeat("x", 100)+"\none\ntwo\nhalf")
		return 3
	case "gateway": // starts children under a watchdog, and waits to be killed
		return gateway()
	}
	return 99
}

// inherited is descriptor 3, if there is one: a test knows by it who is alive.
func inherited() []*os.File {
	syscall.CloseOnExec(3)
	f := os.NewFile(3, "alive")
	if _, err := f.Stat(); err != nil {
		return nil
	}
	return []*os.File{f}
}

func gateway() int {
	w, err := StartWatchdog(os.Args[0])
	if err != nil {
		return 1
	}
	for _, mode := range []string{"stubborn", "parent", "polite"} {
		p, err := Start(Options{Command: os.Args[0], Env: []string{modeVar + "=" + mode}, Watchdog: w, ExtraFiles: inherited()})
		if err != nil {
			return 1
		}
		if _, err := bufio.NewReader(p.Stdout).ReadString('\n'); err != nil {
			return 1
		}
	}
	fmt.Println("ready")
	forever()
	return 0
}

// forever waits for a signal that nobody sends (an empty select would be seen as
// a deadlock, and end the process).
func forever() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	<-c
}

// begin starts a child with a pipe that ends when nothing of it is alive.
func begin(t *testing.T, mode string, more ...func(*Options)) (p *Process, alive *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	o := Options{Command: os.Args[0], Env: []string{modeVar + "=" + mode, "GOCOVERDIR=" + t.TempDir()}, ExtraFiles: []*os.File{w}}
	for _, f := range more {
		f(&o)
	}
	p, err = Start(o)
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p, r
}

func ready(t *testing.T, r io.Reader) {
	t.Helper()
	if line, err := bufio.NewReader(r).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
}

// gone waits until everything that holds the other end has ended.
func gone(t *testing.T, alive *os.File) {
	t.Helper()
	if err := alive.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := alive.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("something is alive: %v", err)
	}
}

func TestLadder(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ mode, end string }{
		{"polite", "<nil>"},
		{"term", "exit status 5"},
		{"stubborn", "signal: killed"},
	} {
		t.Run(tc.mode, func(t *testing.T) {
			t.Parallel()
			p, alive := begin(t, tc.mode, func(o *Options) {
				// Each step is long enough to be seen to have been taken.
				o.EOFGrace, o.TermGrace = 300*time.Millisecond, 300*time.Millisecond
				if tc.mode == "polite" {
					o.EOFGrace = time.Minute
				}
				if tc.mode == "term" {
					o.TermGrace = time.Minute
				}
			})
			ready(t, p.Stdout)
			done := make(chan struct{})
			go func() { p.Stop(context.Background()); close(done) }()
			p.Stop(t.Context()) // twice, at the same time
			<-done
			gone(t, alive)
			if got := fmt.Sprint(p.Err()); got != tc.end {
				t.Errorf("ended with %s, want %s", got, tc.end)
			}
		})
	}
}

func TestStopAtOnce(t *testing.T) {
	t.Parallel()
	p, alive := begin(t, "stubborn", func(o *Options) { o.EOFGrace, o.TermGrace = time.Hour, time.Hour })
	ready(t, p.Stdout)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.Stop(ctx)
	gone(t, alive)
}

// A child that ends and leaves a grandchild with the pipes: Done is not held up,
// and Stop ends the grandchild.
func TestGrandchildHoldsPipes(t *testing.T) {
	t.Parallel()
	p, alive := begin(t, "parent")
	ready(t, p.Stdout) // says the grandchild
	<-p.Done()
	if p.Err() != nil {
		t.Error(p.Err())
	}
	p.Stop(t.Context())
	gone(t, alive)
}

func TestStderr(t *testing.T) {
	t.Parallel()
	var lines []string
	p, _ := begin(t, "words", func(o *Options) {
		o.StderrLimit = 12
		o.OnStderr = func(l string) { lines = append(lines, l) }
	})
	<-p.Done()
	if got := p.Stderr(); got != "one\ntwo\nhalf" {
		t.Errorf("last words %q", got)
	}
	if fmt.Sprint(p.Err()) != "exit status 3" || len(lines) != 3 || lines[2] != "two" {
		t.Errorf("%v, lines %q", p.Err(), lines)
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	if _, err := Start(Options{Command: "/no/such/program"}); err == nil {
		t.Error("no error")
	}
}

// A gateway that is killed cannot clean up: the watchdog ends its children, and
// theirs, and itself.
func TestWatchdogAfterKill(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	g := exec.CommandContext(t.Context(), os.Args[0])
	g.Env, g.ExtraFiles = []string{modeVar + "=gateway"}, []*os.File{w}
	out, err := g.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	ready(t, out)
	if err := g.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = g.Wait()
	gone(t, r)
}

// What was stopped is not the watchdog's any more, and an orderly end kills nobody.
func TestWatchdogOrderlyEnd(t *testing.T) {
	t.Parallel()
	dog, err := StartWatchdog(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	p, alive := begin(t, "polite", func(o *Options) { o.Watchdog = dog })
	ready(t, p.Stdout)
	dog.Stop()
	select {
	case <-p.Done():
		t.Error("the child was ended")
	default:
	}
	p.Stop(t.Context())
	gone(t, alive)
	var none *Watchdog
	none.Stop()
}
