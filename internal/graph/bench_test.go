package graph

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

const benchNodes, benchEdges = 5000, 25000

func BenchmarkBuild(b *testing.B) {
	edges := random(benchNodes, benchEdges)
	for b.Loop() {
		build(b, edges)
	}
}

func BenchmarkPageRank(b *testing.B) {
	g := build(b, random(benchNodes, benchEdges))
	for b.Loop() {
		g.PageRank(PageRankOptions{})
	}
}

func BenchmarkLouvain(b *testing.B) {
	g := build(b, random(benchNodes, benchEdges))
	for b.Loop() {
		g.Louvain(LouvainOptions{})
	}
}

func BenchmarkAdamicAdar(b *testing.B) {
	g := build(b, random(benchNodes, benchEdges))
	for b.Loop() {
		g.AdamicAdar("2500")
	}
}

func BenchmarkShortestPath(b *testing.B) {
	g := build(b, random(benchNodes, benchEdges))
	for b.Loop() {
		g.ShortestPath("0", "4999", math.Inf(1))
	}
}

func BenchmarkSpectral(b *testing.B) {
	var links []Link
	for _, e := range random(benchNodes, benchEdges) {
		links = append(links, Link{e.From, e.To, 1})
	}
	for b.Loop() {
		if _, err := Spectral(links, SpectralOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSpectralWeights tells whether logarithms of counts pay: eight groups of
// capabilities that use their own tools often and others' seldom. The metric is the
// share of pairs of tools that are rightly together or apart (Rand index).
func BenchmarkSpectralWeights(b *testing.B) {
	for _, across := range []float64{0.3, 0.5, 0.6} {
		links := usage(across)
		for label, logs := range map[string]bool{"plain": false, "log": true} {
			b.Run(fmt.Sprintf("%s/across=%v", label, across), func(b *testing.B) {
				var c Clusters
				for b.Loop() {
					var err error
					if c, err = Spectral(links, SpectralOptions{Clusters: 8, LogCounts: logs}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(randIndex(c.Columns), "rand")
			})
		}
	}
}

// usage makes 160 capabilities and 80 tools; the share across of the links leads out
// of a capability's group, and those are of one or two calls only.
func usage(across float64) []Link {
	r := rand.New(rand.NewPCG(3, 4))
	var links []Link
	for c := range 160 {
		group := c % 8
		for range 6 {
			if r.Float64() < across {
				links = append(links, Link{fmt.Sprint("c", c), fmt.Sprintf("%d-%d", r.IntN(8), r.IntN(10)), float64(1 + r.IntN(2))})
			} else {
				links = append(links, Link{fmt.Sprint("c", c), fmt.Sprintf("%d-%d", group, r.IntN(10)), float64(1 + r.IntN(30))})
			}
		}
	}
	return links
}

func randIndex(clusters map[string]int) float64 {
	right, pairs := 0, 0
	for a, x := range clusters {
		for b, y := range clusters {
			if a < b {
				pairs++
				if (a[0] == b[0]) == (x == y) {
					right++
				}
			}
		}
	}
	return float64(right) / float64(pairs)
}
