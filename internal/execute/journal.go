package execute

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// stallAfter is how long a reply is held for one before it that the program has not
// asked for. Only a program that goes another way than before gets there.
const stallAfter = 10 * time.Second

// place names a call within a run and the capabilities inside it.
type place struct {
	root       int // the frame that the calling code began in
	node       string
	occurrence int
}

// journal is what an earlier attempt at a run has left: its calls, which are
// answered from here in the order in which they were, and not made again. The zero
// value and nil are those of a first attempt.
type journal struct {
	entries map[place]trace.Call
	rank    map[place]int // of those that have an end: their order

	mu     sync.Mutex
	sealed int           // how many of them were given to the program again
	moved  chan struct{} // closed and replaced when sealed grows
}

// newJournal orders the calls of a run, by the frame that each ledger began in.
func newJournal(calls map[int][]trace.Call) *journal {
	j := &journal{entries: map[place]trace.Call{}, rank: map[place]int{}, moved: make(chan struct{})}
	var ended []place
	for root, list := range calls {
		for _, c := range list {
			at := place{root, c.NodeID, c.Occurrence}
			j.entries[at] = c
			if c.Status != trace.CallStarted {
				ended = append(ended, at)
			}
		}
	}
	slices.SortFunc(ended, func(a, b place) int {
		return cmp.Or(endOf(j.entries[a]).Compare(endOf(j.entries[b])), cmp.Compare(a.root, b.root), cmp.Compare(a.node, b.node), cmp.Compare(a.occurrence, b.occurrence))
	})
	for i, at := range ended {
		j.rank[at] = i
	}
	return j
}

func endOf(c trace.Call) time.Time { return c.StartedAt.Add(c.Duration) }

// find returns what the journal has of a call. A call in the same place with other
// arguments, and one whose outcome nobody knows, end the run: it cannot go on
// without doing something twice or something else.
func (j *journal) find(at place, call trace.Call, target tool.Tool) (trace.Call, bool, error) {
	if j == nil {
		return trace.Call{}, false, nil
	}
	have, ok := j.entries[at]
	switch {
	case !ok:
		return have, false, nil
	case have.ArgsHash != call.ArgsHash || have.Tool != call.Tool:
		f := fault.New(fault.InterruptedCall, "the program cannot be resumed: at %s it now calls %s with other arguments than before it was interrupted", at.node, call.Tool).
			WithHint("send it again; what it did before is in its trace")
		f.Tool, f.NodeID = string(call.Tool), at.node
		return have, false, f
	case have.Status == trace.CallStarted && !target.Idempotent():
		f := fault.New(fault.InterruptedCall, "the call of %s was sent, and whether it took effect is not known", call.Tool).
			WithHint("look at what it may have changed before you send the program again: it is not repeated by itself")
		f.Tool, f.NodeID = string(call.Tool), at.node
		return have, false, f
	}
	return have, have.Status != trace.CallStarted, nil
}

// await waits until a reply may be given: every one that came before it has been.
// A call that is made now comes after all of the journal's.
func (j *journal) await(ctx context.Context, at place) error {
	if j == nil {
		return nil
	}
	stall := time.NewTimer(stallAfter)
	defer stall.Stop()
	for {
		j.mu.Lock()
		rank, known := j.rank[at]
		if !known {
			rank = len(j.rank)
		}
		ready, moved := j.sealed >= rank, j.moved
		j.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-moved:
			stall.Reset(stallAfter)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-stall.C:
			return fault.New(fault.InterruptedCall, "the program cannot be resumed: it goes another way than before it was interrupted").
				WithHint("send it again; what it did before is in its trace")
		}
	}
}

// seal notes that a reply of the journal was given.
func (j *journal) seal() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sealed++
	close(j.moved)
	j.moved = make(chan struct{})
}
