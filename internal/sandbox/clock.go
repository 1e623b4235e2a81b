package sandbox

import (
	"context"
	"sync"
	"time"
)

// clock is the wall clock of one run. It stands still while somebody holds it.
type clock struct {
	expired func()

	mu      sync.Mutex
	timer   *time.Timer
	left    time.Duration
	since   time.Time // when it last began to run
	holds   int
	used    time.Duration
	stopped bool
}

func newClock(limit time.Duration, expired func()) *clock {
	c := &clock{left: limit, since: time.Now(), expired: expired}
	c.timer = time.AfterFunc(limit, expired)
	return c
}

// hold stops the clock until every hold has been released.
func (c *clock) hold() (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds++; c.holds == 1 && !c.stopped {
		c.timer.Stop()
		c.accountLocked()
	}
	return sync.OnceFunc(c.release)
}

func (c *clock) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds--; c.holds == 0 && !c.stopped {
		c.since = time.Now()
		c.timer = time.AfterFunc(max(0, c.left), c.expired)
	}
}

func (c *clock) accountLocked() {
	d := time.Since(c.since)
	c.used += d
	c.left -= d
}

// stop ends the clock and returns the time that it counted.
func (c *clock) stop() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.timer.Stop()
		if c.holds == 0 {
			c.accountLocked()
		}
		c.stopped = true
	}
	return c.used
}

type clockKey struct{}

// Hold stops the wall clock of the run that ctx, given to Host.Call, belongs to, for
// example while a person is asked. The clock runs again when every hold is released;
// releasing twice is harmless. The limit on CPU time is not affected.
func Hold(ctx context.Context) (release func()) {
	c, ok := ctx.Value(clockKey{}).(*clock)
	if !ok {
		return func() {}
	}
	return c.hold()
}

const (
	minCPUCheck = 2 * time.Millisecond
	// cpuThreads is how many threads of a worker can use a CPU at the same time:
	// the program's, and V8's for garbage and compilation.
	cpuThreads = 4
)

// watchCPU calls exceeded once the process has used limit since it had used base. It
// looks when the limit could be reached at the earliest.
func watchCPU(ctx context.Context, pid int, base, limit time.Duration, exceeded func()) {
	for {
		used, ok := cpuTime(pid)
		if !ok {
			return // the process has ended, or the system cannot say
		}
		left := limit - (used - base)
		if left <= 0 {
			exceeded()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(minCPUCheck, left/cpuThreads)):
		}
	}
}
