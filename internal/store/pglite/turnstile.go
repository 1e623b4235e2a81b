package pglite

import (
	"errors"
	"slices"
	"sync"
)

// errGone is what everybody gets who waits for, or talks to, a child that ended.
var errGone = errors.New("the embedded database's process has ended")

// errAborted is what a wait for the turn ends in that was called off.
var errAborted = errors.New("cancelled while it waited for the embedded database")

// turnstile hands the backend to one holder at a time, in the order of arrival.
// A holder keeps it for as long as it is inside a transaction.
type turnstile struct {
	mu    sync.Mutex
	held  bool
	dead  bool
	queue []chan struct{}
}

// acquire waits for the turn, until abort is closed. It fails at once when the
// child is gone.
func (t *turnstile) acquire(abort <-chan struct{}) error {
	t.mu.Lock()
	if t.dead {
		t.mu.Unlock()
		return errGone
	}
	if !t.held {
		t.held = true
		t.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	t.queue = append(t.queue, turn)
	t.mu.Unlock()
	select {
	case <-turn:
	case <-abort:
		return t.leave(turn)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dead {
		return errGone
	}
	return nil
}

// leave takes a wait out of the queue.
func (t *turnstile) leave(turn chan struct{}) error {
	t.mu.Lock()
	at := slices.Index(t.queue, turn)
	if at >= 0 {
		t.queue = slices.Delete(t.queue, at, at+1)
	}
	mine := at < 0 && !t.dead // the turn came at the same time
	t.mu.Unlock()
	if mine {
		t.release()
	}
	return errAborted
}

// release passes the turn on. Pairs with every acquire that succeeded.
func (t *turnstile) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		t.held = false
		return
	}
	close(t.queue[0]) // held stays true: the turn goes from hand to hand
	t.queue = t.queue[1:]
}

// kill ends every wait, now and later.
func (t *turnstile) kill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dead = true
	for _, turn := range t.queue {
		close(turn)
	}
	t.queue = nil
}
