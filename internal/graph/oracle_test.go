package graph

import (
	"math"
	"math/rand/v2"
	"testing"

	gonum "gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/community"
	"gonum.org/v1/gonum/graph/network"
	"gonum.org/v1/gonum/graph/path"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/mat"
)

// directed makes the same graph for the oracle; cost turns a weight into what the
// oracle should see.
func directed(g *Graph, cost func(float64) float64) *simple.WeightedDirectedGraph {
	d := simple.NewWeightedDirectedGraph(0, math.Inf(1))
	for i := range g.ids {
		d.AddNode(simple.Node(i))
	}
	for i := range g.ids {
		to, weights := g.out.row(i)
		for k, j := range to {
			d.SetWeightedEdge(d.NewWeightedEdge(simple.Node(i), simple.Node(j), cost(weights[k])))
		}
	}
	return d
}

func same(w float64) float64 { return w }

func TestPageRankAgainstOracle(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{5, 6}, {60, 90}, {300, 1500}} {
		g := build(t, append(random(size[0], size[1]), Edge{"source", "sink", 1}), "lonely")
		want := network.PageRankSparse(directed(g, same), 0.85, 1e-12)
		got := g.PageRank(PageRankOptions{Tolerance: 1e-12, MaxIterations: 1000})
		usual := g.PageRank(PageRankOptions{})
		sum := 0.0
		for i, rank := range got {
			sum += usual[i]
			if math.Abs(rank-want[int64(i)]) > 1e-9 || math.Abs(usual[i]-rank) > 1e-5 {
				t.Fatalf("%v: node %s: %v and %v, the oracle %v", size, g.ids[i], rank, usual[i], want[int64(i)])
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("%v: the sum is %v", size, sum)
		}
	}
}

func TestLouvainAgainstOracle(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{20, 40}, {200, 700}, {1000, 6000}} {
		g := build(t, random(size[0], size[1]))
		u := simple.NewWeightedUndirectedGraph(0, 0)
		for i := range g.ids {
			to, weights := g.both.row(i)
			for k, j := range to {
				u.SetWeightedEdge(u.NewWeightedEdge(simple.Node(i), simple.Node(j), weights[k]))
			}
		}
		got := g.Louvain(LouvainOptions{})
		groups := make([][]gonum.Node, got.Count)
		for i, c := range got.Of {
			groups[c] = append(groups[c], simple.Node(i))
		}
		if q := community.Q(u, groups, 1); math.Abs(q-got.Modularity) > 1e-9 {
			t.Errorf("%v: modularity %v, the oracle says %v", size, got.Modularity, q)
		}
		best := 0.0
		for seed := range uint64(3) {
			best = max(best, community.Q(u, community.Modularize(u, 1, rand.NewPCG(seed, 1)).Communities(), 1))
		}
		if got.Modularity < best-0.02 {
			t.Errorf("%v: modularity %v, the oracle finds %v", size, got.Modularity, best)
		}
	}
}

func TestShortestPathAgainstOracle(t *testing.T) {
	t.Parallel()
	g := build(t, random(120, 300))
	d := directed(g, func(w float64) float64 { return 1 / w })
	for i, from := range g.ids {
		tree := path.DijkstraFrom(simple.Node(i), d)
		for j, to := range g.ids {
			want := tree.WeightTo(int64(j))
			got, ok := g.ShortestPath(from, to, math.Inf(1))
			if ok == math.IsInf(want, 1) || ok && math.Abs(got.Cost-want) > 1e-9 {
				t.Fatalf("%s to %s: %v, the oracle %v", from, to, got, want)
			}
		}
	}
}

// TestSingularAgainstOracle: values and vectors of a scaled matrix.
func TestSingularAgainstOracle(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{4, 30, 150} {
		var links []Link
		for _, e := range random(nodes, nodes*4) {
			links = append(links, Link{e.From, "t" + e.To, e.Weight})
		}
		m, err := newMatrix(links, true)
		if err != nil {
			t.Fatal(err)
		}
		dense := mat.NewDense(len(m.rows), len(m.columns), nil)
		for i := range m.rows {
			to, weights := m.byRow.row(i)
			for k, j := range to {
				dense.Set(i, j, weights[k])
			}
		}
		var svd mat.SVD
		if !svd.Factorize(dense, mat.SVDNone) {
			t.Fatal("the oracle gave up")
		}
		want := svd.Values(nil)
		vectors, values := m.singular(min(5, len(want)))
		image, back := make([]float64, len(m.rows)), make([]float64, len(m.columns))
		for i, value := range values {
			if math.Abs(value-want[i]) > 1e-6 {
				t.Errorf("%d nodes: value %d is %v, the oracle %v", nodes, i, value, want[i])
			}
			m.byRow.apply(vectors[i], image)
			m.byColumn.apply(image, back)
			for k := range back {
				back[k] -= value * value * vectors[i][k]
			}
			if norm(back) > 1e-3 {
				t.Errorf("%d nodes: vector %d is off by %v", nodes, i, norm(back))
			}
		}
	}
}
