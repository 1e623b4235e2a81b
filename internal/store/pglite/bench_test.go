package pglite_test

import (
	"testing"

	"github.com/pml-run/pml/internal/store/pglite"
)

// BenchmarkWarmStart starts a server on a database that is there, and stops it.
func BenchmarkWarmStart(b *testing.B) {
	opts, err := options(dataDir(b))
	must(b, err)
	var rss int64
	for b.Loop() {
		s, err := pglite.New(opts)
		must(b, err)
		must(b, s.Start(b.Context()))
		b.StopTimer()
		stats, err := s.Stats(b.Context())
		must(b, err)
		rss = stats.RSS
		s.Stop()
		b.StartTimer()
	}
	b.ReportMetric(float64(rss)/(1<<20), "child-RSS-MB")
}

func BenchmarkSelectOne(b *testing.B) {
	c := conn(b, start(b, nil))
	for b.Loop() {
		number(b, c, `select $1::bigint`, 1)
	}
}
