package upstream

import (
	"sync"
	"time"
)

// Limits of a breaker.
const (
	breakerFailures = 5
	breakerRest     = 30 * time.Second
)

// breaker stops calls to a server that keeps failing: after some failures in a
// row it is open for a while, then it lets one call through to try.
type breaker struct {
	now func() time.Time

	mu       sync.Mutex
	failures int
	openedAt time.Time
	trying   bool
}

// allow reports whether a call may go on. Every true pairs with one of success,
// failure and neither.
func (b *breaker) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < breakerFailures {
		return true
	}
	if b.trying || b.now().Sub(b.openedAt) < breakerRest {
		return false
	}
	b.trying = true
	return true
}

func (b *breaker) success() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.trying = 0, false
}

func (b *breaker) failure() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	b.trying = false
	if b.failures >= breakerFailures {
		b.openedAt = b.now()
	}
}

// neither is for a call that says nothing about the server.
func (b *breaker) neither() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
}

// rest is how long the breaker will stay open; zero when it is closed.
func (b *breaker) rest() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < breakerFailures {
		return 0
	}
	return max(0, breakerRest-b.now().Sub(b.openedAt))
}
