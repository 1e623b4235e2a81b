package graph

import "math"

// PageRankOptions set how ranks are computed; zero values are the defaults.
type PageRankOptions struct {
	Damping       float64 // the share that follows edges, between 0 and 1; default 0.85
	Tolerance     float64 // stop when the ranks change by less in all (their 1-norm); default 1e-6
	MaxIterations int     // default 100
}

// PageRank returns the rank of each node by its number; their sum is 1. A node's
// rank flows along its edges in proportion to their weights, that of a node without
// edges to all nodes alike (Page, Brin, Motwani and Winograd, 1999).
func (g *Graph) PageRank(o PageRankOptions) []float64 {
	if o.Damping <= 0 || o.Damping >= 1 {
		o.Damping = 0.85
	}
	if o.Tolerance <= 0 {
		o.Tolerance = 1e-6
	}
	if o.MaxIterations <= 0 {
		o.MaxIterations = 100
	}
	n := g.Len()
	rank, next := make([]float64, n), make([]float64, n)
	for i := range rank {
		rank[i] = 1 / float64(n)
	}
	for range o.MaxIterations {
		g.flow(rank, next, o.Damping)
		change := 0.0
		for i := range rank {
			change += math.Abs(next[i] - rank[i])
		}
		rank, next = next, rank
		if change < o.Tolerance {
			break
		}
	}
	return rank
}

// flow does one step of the power iteration.
func (g *Graph) flow(rank, next []float64, damping float64) {
	dangling := 0.0
	for i, strength := range g.out.strength {
		if strength == 0 {
			dangling += rank[i]
		}
	}
	base := (1 - damping + damping*dangling) / float64(len(rank))
	for i := range next {
		from, weights := g.in.row(i)
		sum := 0.0
		for k, j := range from {
			sum += rank[j] * (weights[k] / g.out.strength[j])
		}
		next[i] = base + damping*sum
	}
}
