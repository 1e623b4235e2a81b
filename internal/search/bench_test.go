package search

import (
	"fmt"
	"testing"
)

func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{500, 10_000} {
		x, q := randomIndex(b, n)
		several := q
		for range 8 {
			several.Vectors = append(several.Vectors, q.Vectors[0])
		}
		for name, v := range map[string]struct {
			q Query
			o Options
		}{"sum": {q, Options{}}, "nine sentences": {several, Options{}}, "words": {q, Options{Without: Vectors}}, "zscore": {q, Options{Fusion: ZScore}}} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					find(b, x, v.q, v.o)
				}
			})
		}
	}
}

func BenchmarkChange(b *testing.B) {
	x, q := randomIndex(b, 10_000)
	b.Run("vector", func(b *testing.B) {
		for b.Loop() {
			if err := x.SetVectors(map[string][]float32{"server:tool77": q.Vectors[0]}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("document", func(b *testing.B) {
		for b.Loop() {
			if err := x.Put(toolDoc("server:tool77", q.Text)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
