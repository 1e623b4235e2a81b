// Package graph owns the algorithms over the graph of tools and capabilities:
// which node matters, which belong together, which are alike, and how one is
// reached from another. It knows neither tools nor rows: nodes are strings and edges
// have weights. Everything in it is pure and deterministic: a result depends on
// the set of nodes and edges alone, not on their order. Package search asks it.
package graph

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// minWeight and maxWeight bound a weight, so that no sum or quotient of them is
// infinite. One below the first is none.
const minWeight, maxWeight = 1e-100, 1e100

// Edge joins two nodes, in a direction.
type Edge struct {
	From, To string
	// Weight says how strong the edge is, up to 1e100; below 1e-100 it is as if there
	// were none.
	Weight float64
}

// Graph is an immutable directed graph with weights, safe for concurrent use. Its
// nodes are numbered in the order of their ids. A nil Graph is an empty one.
type Graph struct {
	ids   []string
	index map[string]int
	out   adjacency
	in    adjacency
	// both joins two nodes that have edges in any direction, with the sum of their weights.
	both adjacency
}

// adjacency holds the neighbours of node n, in order, from start[n] to start[n+1]
// (compressed sparse rows).
type adjacency struct {
	start  []int
	to     []int
	weight []float64
	// strength is the sum of a node's weights.
	strength []float64
}

// arc is an edge between numbered nodes.
type arc struct {
	from, to int
	weight   float64
}

// Build makes a graph of edges; nodes names further ones, which may have no edge.
// The weights of edges with the same ends are added up. An edge from a node to
// itself, or of no weight, is none. A weight that is negative, no number or too
// large is an error.
func Build(edges []Edge, nodes ...string) (*Graph, error) {
	ids := slices.Clone(nodes)
	for _, e := range edges {
		if err := checkWeight(e.Weight); err != nil {
			return nil, fmt.Errorf("edge from %q to %q: %w", e.From, e.To, err)
		}
		ids = append(ids, e.From, e.To)
	}
	g := &Graph{}
	g.ids, g.index = number(ids)
	arcs := make([]arc, 0, len(edges))
	for _, e := range edges {
		if e.From != e.To && e.Weight >= minWeight {
			arcs = append(arcs, arc{g.index[e.From], g.index[e.To], e.Weight})
		}
	}
	arcs = merge(arcs)
	g.out = compress(len(g.ids), arcs)
	turned := turn(arcs)
	g.in = compress(len(g.ids), merge(turned))
	g.both = compress(len(g.ids), merge(append(arcs, turned...)))
	return g, nil
}

func checkWeight(w float64) error {
	if math.IsNaN(w) || w < 0 || w > maxWeight {
		return fmt.Errorf("the weight %v is not between 0 and %g", w, maxWeight)
	}
	return nil
}

// number sorts ids, drops duplicates and numbers them.
func number(ids []string) ([]string, map[string]int) {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	index := make(map[string]int, len(ids))
	for i, id := range ids {
		index[id] = i
	}
	return ids, index
}

// merge sorts arcs and adds up those with the same ends. The weights take part in
// the order, so that their sum does not depend on the order in which they came.
func merge(arcs []arc) []arc {
	slices.SortFunc(arcs, func(a, b arc) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.weight, b.weight))
	})
	out := arcs[:0]
	for _, a := range arcs {
		if n := len(out); n > 0 && out[n-1].from == a.from && out[n-1].to == a.to {
			out[n-1].weight += a.weight
			continue
		}
		out = append(out, a)
	}
	return out
}

func turn(arcs []arc) []arc {
	out := make([]arc, len(arcs))
	for i, a := range arcs {
		out[i] = arc{a.to, a.from, a.weight}
	}
	return out
}

// compress makes rows of sorted arcs.
func compress(nodes int, arcs []arc) adjacency {
	a := adjacency{
		start: make([]int, nodes+1), to: make([]int, len(arcs)),
		weight: make([]float64, len(arcs)), strength: make([]float64, nodes),
	}
	for i, e := range arcs {
		a.start[e.from+1]++
		a.to[i], a.weight[i] = e.to, e.weight
		a.strength[e.from] += e.weight
	}
	for n := range nodes {
		a.start[n+1] += a.start[n]
	}
	return a
}

// row returns a node's neighbours and the weights of the edges to them.
func (a adjacency) row(node int) ([]int, []float64) {
	from, to := a.start[node], a.start[node+1]
	return a.to[from:to], a.weight[from:to]
}

// Len is the number of nodes.
func (g *Graph) Len() int {
	if g == nil {
		return 0
	}
	return len(g.ids)
}

// IDs are the nodes in the order of their numbers.
func (g *Graph) IDs() []string {
	if g == nil {
		return nil
	}
	return slices.Clone(g.ids)
}

// Index returns a node's number.
func (g *Graph) Index(id string) (int, bool) {
	if g == nil {
		return 0, false
	}
	i, ok := g.index[id]
	return i, ok
}

// Scored is a node with a number that says how strongly something holds for it.
type Scored struct {
	ID    string
	Score float64
}

// Out are the nodes that edges of a node lead to, with the weights, the strongest
// first; ties in the order of ids. An unknown node has none.
func (g *Graph) Out(id string) []Scored {
	at, ok := g.Index(id)
	if !ok {
		return nil
	}
	nodes, weights := g.out.row(at)
	out := make([]Scored, len(nodes))
	for i, n := range nodes {
		out[i] = Scored{g.ids[n], weights[i]}
	}
	sortScored(out)
	return out
}

// sortScored sorts by score, the highest first; ties in the order of ids.
func sortScored(list []Scored) {
	slices.SortFunc(list, func(a, b Scored) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
}
