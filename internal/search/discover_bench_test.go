package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pml-run/pml/internal/tool"
)

// fixed is a model that makes the same vector of every text.
type fixed struct{ vector []float32 }

func (fixed) Model() string       { return "minilm-l6 of the benchmark" }
func (fixed) QueryPrefix() string { return "" }
func (m fixed) Encode(_ context.Context, texts []string) ([][]float32, error) {
	return slices.Repeat([][]float32{m.vector}, len(texts)), nil
}

// BenchmarkDiscover is a whole request with an intent whose vector is in the cache:
// ranked, with eight signatures. The figures of interest are p50-ms and p99-ms.
func BenchmarkDiscover(b *testing.B) {
	for _, n := range []int{500, 10_000} {
		f := NewFinder(&shop{randomCatalog(n)}, FinderOptions{})
		r := rand.New(rand.NewPCG(1, 2))
		vectors := map[string][]float32{}
		for id := range f.Texts() {
			vectors[id] = randomUnit(r)
		}
		if err := f.SetVectors(vectors); err != nil {
			b.Fatal(err)
		}
		f.SetEncoder(fixed{randomUnit(r)}, "")
		b.Run(fmt.Sprintf("%d tools", n), func(b *testing.B) {
			var samples []time.Duration
			for b.Loop() {
				began := time.Now()
				a, err := f.Discover(b.Context(), Request{Intent: "copy the pages of a report into another folder"})
				samples = append(samples, time.Since(began))
				if err != nil || len(a.Results) != defaultLimit || a.Mode != Hybrid {
					b.Fatalf("%+v, %v", a, err)
				}
			}
			slices.Sort(samples)
			at := func(p int) float64 { return float64(samples[len(samples)*p/100].Microseconds()) / 1000 }
			b.ReportMetric(at(50), "p50-ms")
			b.ReportMetric(at(99), "p99-ms")
		})
	}
}

func randomUnit(r *rand.Rand) []float32 {
	v := make([]float32, 384)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return unit(v...)
}

// randomCatalog has tools with descriptions of twenty out of a thousand words.
func randomCatalog(n int) *tool.Catalog {
	r := rand.New(rand.NewPCG(3, 4))
	usual := []string{"copy", "pages", "report", "folder", "read", "write", "list"}
	lines := make([]string, n)
	for i := range lines {
		var words []string
		for range 20 {
			words = append(words, fmt.Sprintf("word%d", r.IntN(1000)))
		}
		words = append(words, usual[r.IntN(len(usual))])
		lines[i] = fmt.Sprintf("server%d:tool_%d: %s.", i/50, i, strings.Join(words, " "))
	}
	return stock(lines...)
}
