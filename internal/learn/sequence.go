package learn

import (
	"cmp"
	"slices"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/trace"
)

// mostOrdered is how many calls of a run are looked at for their order.
const mostOrdered = 500

// bits is a set of calls by their index.
type bits [(mostOrdered + 63) / 64]uint64

func (b *bits) set(i int) { b[i/64] |= 1 << (i % 64) }

func (b *bits) meets(o *bits) bool {
	for i := range b {
		if b[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

// lane is where in the program's forks a call was made: the branch by the fork.
type lane map[string]int

// consecutive returns the pairs of calls of which the second came directly after
// the first: it began after the first had ended, no other call came between, and
// they were not made in different branches of one fork. Calls that overlap are
// parallel. So the first call after a join follows the last of every branch. All
// calls of a run are siblings: a capability's own calls are in its own trace.
func consecutive(s structure.Structure, calls []trace.Call) [][2]int {
	order := finishedCalls(calls)
	lanes := lanesOf(s, calls)
	n := len(order)
	after, before := make([]bits, n), make([]bits, n)
	for i, a := range order {
		for j, b := range order {
			if i != j && precedes(calls[a], calls[b]) && !parallel(lanes[a], lanes[b]) {
				after[i].set(j)
				before[j].set(i)
			}
		}
	}
	var pairs [][2]int
	for i := range n {
		for j := range n {
			direct := after[i][j/64]&(1<<(j%64)) != 0
			if direct && !after[i].meets(&before[j]) {
				pairs = append(pairs, [2]int{order[i], order[j]})
			}
		}
	}
	return pairs
}

// finishedCalls are the calls that reached their tool and whose end is known, by
// their start.
func finishedCalls(calls []trace.Call) []int {
	var order []int
	for i, c := range calls {
		if c.Status == trace.CallOK || c.Status == trace.CallError && c.Error != nil && c.Error.Code == fault.ToolFailed {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(calls[a].StartedAt.Compare(calls[b].StartedAt), cmp.Compare(calls[a].Seq, calls[b].Seq))
	})
	return order[:min(len(order), mostOrdered)]
}

// precedes reports whether a had ended when b began.
func precedes(a, b trace.Call) bool {
	return a.Seq < b.Seq && !a.StartedAt.Add(a.Duration).After(b.StartedAt)
}

// lanesOf finds the branches of forks that each call was made in.
func lanesOf(s structure.Structure, calls []trace.Call) []lane {
	region, branch := map[string]string{}, map[string]int{}
	fork := map[string]bool{}
	for _, n := range s.Nodes {
		fork[n.ID] = n.Type == structure.Fork
	}
	for _, e := range s.Edges {
		if e.Type == structure.Contains {
			region[e.To] = e.From
			if e.Branch != nil {
				branch[e.To] = *e.Branch
			}
		}
	}
	lanes := make([]lane, len(calls))
	for i, c := range calls {
		lanes[i] = lane{}
		at := c.NodeID
		for range region { // at most so many steps, even if the edges formed a circle
			r, ok := region[at]
			if !ok {
				break
			}
			if fork[r] {
				lanes[i][r] = branch[at]
			}
			at = r
		}
		// A pass of a map has a branch of its own.
		if fork[c.ParentNode] && c.Iteration != nil {
			lanes[i][c.ParentNode] = -1 - *c.Iteration
		}
	}
	return lanes
}

// parallel reports whether two calls were made in different branches of one fork.
func parallel(a, b lane) bool {
	for f, branch := range a {
		if other, both := b[f]; both && other != branch {
			return true
		}
	}
	return false
}
