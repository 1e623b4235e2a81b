package supervise

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// WatchdogArg is the first argument with which the binary runs as a watchdog.
const WatchdogArg = "__watchdog"

// watchdogGrace is how long children may take to end by themselves (they all see
// EOF on stdin) after the death of the gateway.
const watchdogGrace = 1500 * time.Millisecond

// Watchdog is a small process of our own that ends our children's groups when
// this process dies without being able to. A parent-death signal would not do: it
// reaches the child alone, never a grandchild, and follows a thread.
// A nil Watchdog is valid and watches nothing.
type Watchdog struct {
	cmd *exec.Cmd

	mu sync.Mutex
	in *os.File
}

// StartWatchdog starts the watchdog process: binary run with WatchdogArg.
func StartWatchdog(binary string) (*Watchdog, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("watchdog pipe: %w", err)
	}
	cmd := exec.Command(binary, WatchdogArg) //nolint:gosec,noctx // our own binary; it ends when we close its stdin
	cmd.Stdin, cmd.Env, cmd.Dir = childIn, []string{}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	_ = childIn.Close()
	if err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("start watchdog: %w", err)
	}
	return &Watchdog{cmd: cmd, in: in}, nil
}

// Stop ends the watchdog. The children must have been stopped before.
func (w *Watchdog) Stop() {
	if w == nil {
		return
	}
	w.send("q 0\n")
	w.mu.Lock()
	_ = w.in.Close()
	w.mu.Unlock()
	_ = w.cmd.Wait()
}

func (w *Watchdog) add(pgid int) {
	if w != nil {
		w.send("+ " + strconv.Itoa(pgid) + "\n")
	}
}

func (w *Watchdog) remove(pgid int) {
	if w != nil {
		w.send("- " + strconv.Itoa(pgid) + "\n")
	}
}

func (w *Watchdog) send(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.in.WriteString(line) // a dead watchdog costs the safety net, not the service
}

// RunWatchdog is the watchdog's main: it reads groups from r until EOF, then
// kills what is left of them.
func RunWatchdog(r io.Reader) {
	groups := map[int]struct{}{}
	in := bufio.NewScanner(r)
	for in.Scan() {
		var op string
		var pgid int
		if _, err := fmt.Sscan(in.Text(), &op, &pgid); err != nil {
			continue
		}
		switch op {
		case "+":
			groups[pgid] = struct{}{}
		case "-":
			delete(groups, pgid)
		case "q":
			return
		}
	}
	deadline := time.Now().Add(watchdogGrace)
	for time.Now().Before(deadline) && anyAlive(groups) {
		<-time.After(20 * time.Millisecond)
	}
	for pgid := range groups {
		_ = syscall.Kill(-pgid, syscall.SIGKILL)
	}
}

func anyAlive(groups map[int]struct{}) bool {
	for pgid := range groups {
		if syscall.Kill(-pgid, 0) == nil {
			return true
		}
	}
	return false
}
