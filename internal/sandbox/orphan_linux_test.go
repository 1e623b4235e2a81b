package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pml-run/pml/internal/deno/denotest"
)

// orphanArg is the first argument with which the test binary is a gateway that will
// be killed; the second is the path of Deno.
const orphanArg = "__orphan-gateway"

// maybeOrphanGateway runs a program that never ends and says which processes there are.
func maybeOrphanGateway() {
	if len(os.Args) != 3 || os.Args[1] != orphanArg {
		return
	}
	p, err := New(Options{Deno: os.Args[2], Size: 2})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if err := p.Start(ctx); err != nil {
		panic(err)
	}
	w, err := p.take(ctx, "")
	if err != nil {
		panic(err)
	}
	host := &fakeHost{call: func(context.Context, Call) (json.RawMessage, error) {
		idle, err := p.take(ctx, "")
		if err != nil {
			panic(err)
		}
		fmt.Println(w.pid())
		fmt.Println(idle.pid())
		return nil, nil
	}}
	limits := Limits{}.withDefaults()
	start, units, err := p.prepare(Program{Source: "await mcp.a.b({}); while (true) {}", Recorder: "__t", Frame: "__s0", Limits: limits})
	if err != nil {
		panic(err)
	}
	_ = newSession(p, w, Program{Limits: limits}, units, host).run(ctx, start)
}

// TestWorkersDieWithTheGateway kills a gateway with a busy and an idle worker.
func TestWorkersDieWithTheGateway(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, orphanArg, denotest.Path(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var handles []unix.PollFd
	lines := bufio.NewScanner(out)
	for len(handles) < 2 && lines.Scan() {
		var pid int
		if _, err := fmt.Sscan(lines.Text(), &pid); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(fd) }()
		handles = append(handles, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if len(handles) != 2 {
		t.Fatal("the gateway did not say which workers it has")
	}
	for _, h := range handles {
		// A handle becomes readable when its process has ended.
		n, err := unix.Poll([]unix.PollFd{h}, 10_000)
		for err == unix.EINTR {
			n, err = unix.Poll([]unix.PollFd{h}, 10_000)
		}
		if n != 1 {
			t.Errorf("a worker outlives its gateway: %v", err)
		}
	}
}
