package execute

import (
	"cmp"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/trace"
)

// ledger is the list of calls of one run. A program's calls and those of each
// capability that it calls are runs of their own, and have ledgers of their own.
type ledger struct {
	run uuid.UUID
	// root is the frame that the run's code began in: 0 for the program itself.
	root int
	// begin stores the run's row, once; nil where it is stored already.
	begin func() error

	mu      sync.Mutex
	calls   []trace.Call
	order   []int // of each call: the sequence number of its record
	pending []int // indices of calls whose end the journal does not have yet
	closed  bool
}

func newLedger(run uuid.UUID, root int) *ledger { return &ledger{run: run, root: root} }

// add notes a call and returns its index. seq orders the calls as the program made
// them, which concurrent calls need not be noted in.
func (l *ledger) add(c trace.Call, seq int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Seq = len(l.calls)
	l.calls = append(l.calls, c)
	l.order = append(l.order, seq)
	return len(l.calls) - 1
}

// opened returns call i and every ended call that the journal lacks, to be written
// before call i is made.
func (l *ledger) opened(i int) []trace.Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append(l.takePendingLocked(), l.calls[i])
}

// recall sets the end of call i to that which the journal has.
func (l *ledger) recall(i int, past trace.Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	past.Seq = l.calls[i].Seq
	l.calls[i] = past
}

// unwritten returns every ended call that the journal lacks.
func (l *ledger) unwritten() []trace.Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.takePendingLocked()
}

// finish sets the end of call i. It returns what must be written now, if anything:
// all that is pending, where the end must be durable.
func (l *ledger) finish(i int, durable bool, end func(*trace.Call)) []trace.Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil // the run was recorded without this call's end
	}
	end(&l.calls[i])
	l.pending = append(l.pending, i)
	if !durable && len(l.pending) < journalPending && len(l.calls[i].Result) < journalLarge {
		return nil
	}
	return l.takePendingLocked()
}

// forget drops large results that the journal now has; the trace refers to them.
func (l *ledger) forget(written []trace.Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range written {
		if len(c.Result) >= journalLarge {
			l.calls[c.Seq].Result = nil
		}
	}
}

func (l *ledger) takePendingLocked() []trace.Call {
	batch := make([]trace.Call, 0, len(l.pending)+1)
	for _, i := range l.pending {
		batch = append(batch, l.calls[i])
	}
	l.pending = l.pending[:0]
	return batch
}

// snapshot copies the calls made so far.
func (l *ledger) snapshot() []trace.Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls)
}

// before counts the calls that were made before a record.
func (l *ledger) before(seq int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, at := range l.order {
		if at < seq {
			n++
		}
	}
	return n
}

// close ends the recording and returns all calls in the order in which the program
// made them, with their places. One that is still open keeps the state CallStarted:
// its outcome is not known.
func (l *ledger) close(places []trace.Place) []trace.Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	at := make(map[int]trace.Place, len(places))
	for _, p := range places {
		at[p.Seq] = p
	}
	sorted := make([]int, len(l.calls))
	for i := range sorted {
		sorted[i] = i
		if p, ok := at[l.order[i]]; ok {
			l.calls[i].ParentNode, l.calls[i].Iteration = p.ParentNode, p.Iteration
		}
	}
	slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(l.order[a], l.order[b]) })
	out := make([]trace.Call, len(sorted))
	for i, from := range sorted {
		out[i] = l.calls[from]
		out[i].Seq = i
	}
	return out
}
