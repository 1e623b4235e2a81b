package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pml-run/pml/internal/store/storetest"
	"github.com/pml-run/pml/internal/trace"
)

// reportMedian measures f once an iteration and reports the median.
func reportMedian(b *testing.B, f func()) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		f()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/float64(time.Millisecond), "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100])/float64(time.Millisecond), "p99-ms")
}

// fiveCalls is what the run of the benchmarks has done.
func fiveCalls() []trace.Call {
	var calls []trace.Call
	for i := range 5 {
		calls = append(calls, newCall(fmt.Sprint("n", i), 1, i, "fs:read"))
	}
	return calls
}

func BenchmarkPointSelect(b *testing.B) {
	s := storetest.New(b)
	r := begun(b, s)
	reportMedian(b, func() {
		if _, err := s.Run(b.Context(), r.ID); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkFinishRun(b *testing.B) {
	s := storetest.New(b)
	withTools(b, s, "read")
	calls := fiveCalls()
	var took []time.Duration
	for b.Loop() {
		tr := finished(begun(b, s), calls...)
		began := time.Now()
		if err := s.FinishRun(b.Context(), tr, nil); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/float64(time.Millisecond), "p50-ms")
}

func BenchmarkBeginAndFinishRun(b *testing.B) {
	s := storetest.New(b)
	withTools(b, s, "read")
	calls := fiveCalls()
	reportMedian(b, func() {
		if err := s.FinishRun(b.Context(), finished(begun(b, s), calls...), nil); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkRecordCall(b *testing.B) {
	s := storetest.New(b)
	r, i := begun(b, s), 0
	reportMedian(b, func() {
		i++
		if err := s.RecordCalls(b.Context(), r.ID, []trace.Call{newCall("n1", i, i, "fs:read")}); err != nil {
			b.Fatal(err)
		}
	})
}
