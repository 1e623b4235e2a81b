package graph

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// Path is a way from one node to another.
type Path struct {
	IDs  []string // from start to end
	Cost float64  // the sum of 1/weight over the edges
}

// ShortestPath returns the way along edges with the least cost, where an edge costs
// 1/weight (Dijkstra, 1959). Of equal ways the one with fewer edges wins, then the
// one that comes from the first node in order. Ways that cost more than limit (which
// may be infinite) are not looked for. Without a way, or with an unknown node, ok is
// false.
func (g *Graph) ShortestPath(from, to string, limit float64) (path Path, ok bool) {
	start, known := g.Index(from)
	end, also := g.Index(to)
	if !known || !also {
		return Path{}, false
	}
	s := newJourney(len(g.ids), start)
	for len(s.open) > 0 {
		at, _ := heap.Pop(&s.open).(stop)
		if at != s.best[at.node] {
			continue // a better way was found meanwhile
		}
		if at.node == end {
			return Path{g.trail(s.before, end), at.cost}, true
		}
		next, weights := g.out.row(at.node)
		for i, n := range next {
			if cost := at.cost + 1/weights[i]; cost <= limit {
				s.reach(at, stop{cost, at.edges + 1, n})
			}
		}
	}
	return Path{}, false
}

// stop is a node with the cost to come there.
type stop struct {
	cost  float64
	edges int
	node  int
}

func (a stop) compare(b stop) int {
	return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.edges, b.edges), cmp.Compare(a.node, b.node))
}

// journey is the state of one search.
type journey struct {
	best   []stop
	before []int
	open   stops
}

func newJourney(nodes, start int) *journey {
	s := &journey{best: make([]stop, nodes), before: make([]int, nodes)}
	for i := range s.best {
		s.best[i] = stop{cost: math.Inf(1), node: i}
		s.before[i] = -1
	}
	s.best[start] = stop{node: start}
	s.open = stops{s.best[start]}
	return s
}

// reach notes a way to a node that comes over another.
func (s *journey) reach(over, to stop) {
	switch to.compare(s.best[to.node]) {
	case -1:
		s.best[to.node], s.before[to.node] = to, over.node
		heap.Push(&s.open, to)
	case 0:
		s.before[to.node] = min(s.before[to.node], over.node)
	}
}

// trail walks back from the end.
func (g *Graph) trail(before []int, end int) []string {
	var ids []string
	for at := end; at >= 0; at = before[at] {
		ids = append(ids, g.ids[at])
	}
	slices.Reverse(ids)
	return ids
}

// stops is a heap, the nearest first.
type stops []stop

func (h stops) Len() int           { return len(h) }
func (h stops) Less(i, j int) bool { return h[i].compare(h[j]) < 0 }
func (h stops) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *stops) Push(x any) {
	s, _ := x.(stop) // only stops are pushed
	*h = append(*h, s)
}

// Pop implements heap.Interface.
func (h *stops) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
