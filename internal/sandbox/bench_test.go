package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// percentile reports the p-th percentile of samples in milliseconds.
func percentile(b *testing.B, samples []time.Duration, p int, unit string) {
	b.Helper()
	slices.Sort(samples)
	b.ReportMetric(float64(samples[min(len(samples)-1, len(samples)*p/100)].Microseconds())/1000, unit)
}

// warm waits until the pool has all its idle workers.
func warm(b *testing.B, p *Pool) {
	b.Helper()
	for p.Stats().Idle < p.opts.Size {
		<-time.After(5 * time.Millisecond)
	}
}

func mustRun(b *testing.B, p *Pool, prog Program) Outcome {
	b.Helper()
	out, err := p.Run(b.Context(), prog, &fakeHost{})
	if err != nil {
		b.Fatal(err)
	}
	return out
}

// BenchmarkWarm is the time of a program for which a worker is ready.
func BenchmarkWarm(b *testing.B) {
	for name, source := range map[string]string{"noop": "return 1", "one call": "return await mcp.a.b({ x: 1 })"} {
		b.Run(name, func(b *testing.B) {
			p := newPool(b, Options{})
			var samples []time.Duration
			for b.Loop() {
				b.StopTimer()
				warm(b, p)
				b.StartTimer()
				began := time.Now()
				mustRun(b, p, Program{Source: source})
				samples = append(samples, time.Since(began))
			}
			percentile(b, samples, 50, "p50-ms")
			percentile(b, samples, 99, "p99-ms")
		})
	}
}

// BenchmarkCallSequential is the round trip of one call among many.
func BenchmarkCallSequential(b *testing.B) {
	p := newPool(b, Options{})
	source := `const times = []; for (let i = 0; i < 500; i++) { const t = performance.now(); await mcp.a.b({ i }); times.push(performance.now() - t) }
times.sort((a, b) => a - b); return times[250] * 1000`
	var samples []time.Duration
	for b.Loop() {
		warm(b, p)
		out := mustRun(b, p, Program{Source: source})
		us, err := strconv.ParseFloat(string(out.Result), 64)
		if err != nil {
			b.Fatal(err)
		}
		samples = append(samples, time.Duration(us*1000))
	}
	percentile(b, samples, 50, "call-p50-ms")
}

// BenchmarkCallParallel is Promise.all over 100 calls.
func BenchmarkCallParallel(b *testing.B) {
	p := newPool(b, Options{})
	source := `const all = () => Promise.all(Array.from({ length: 100 }, (_, i) => mcp.a.b({ i })));
const times = []; for (let i = 0; i < 9; i++) { const t = performance.now(); await all(); times.push(performance.now() - t) }
times.sort((a, b) => a - b); return times[4] * 1000`
	var samples []time.Duration
	for b.Loop() {
		warm(b, p)
		var us float64
		if err := json.Unmarshal(mustRun(b, p, Program{Source: source}).Result, &us); err != nil {
			b.Fatal(err)
		}
		samples = append(samples, time.Duration(us*1000))
	}
	percentile(b, samples, 50, "all100-p50-ms")
}

// BenchmarkThroughput is how many programs end per second.
func BenchmarkThroughput(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			p := newPool(b, Options{})
			warm(b, p)
			b.ResetTimer()
			work := make(chan struct{})
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for range work {
						if _, err := p.Run(b.Context(), Program{Source: "return 1"}, &fakeHost{}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			for range b.N {
				work <- struct{}{}
			}
			close(work)
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
		})
	}
}

// BenchmarkKill is how long after its deadline a busy program is gone.
func BenchmarkKill(b *testing.B) {
	const wall = 50 * time.Millisecond
	p := newPool(b, Options{})
	var samples []time.Duration
	for b.Loop() {
		warm(b, p)
		began := time.Now()
		_, err := p.Run(b.Context(), Program{Source: "while (true) {}", Limits: Limits{Wall: wall}}, &fakeHost{})
		if err == nil {
			b.Fatal("the program ended")
		}
		samples = append(samples, time.Since(began)-wall)
	}
	percentile(b, samples, 50, "after-deadline-p50-ms")
	percentile(b, samples, 99, "after-deadline-p99-ms")
}

// BenchmarkIdleMemory is what an idle worker costs.
func BenchmarkIdleMemory(b *testing.B) {
	p := newPool(b, Options{Size: 8})
	warm(b, p)
	for b.Loop() {
		var total float64
		p.mu.Lock()
		for _, w := range p.idle {
			total += pss(b, w.pid())
		}
		b.ReportMetric(total/float64(len(p.idle))/1024, "PSS-MB")
		p.mu.Unlock()
	}
}

func pss(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		b.Skip("no smaps_rollup on this system")
	}
	_, rest, _ := bytes.Cut(text, []byte("\nPss:"))
	kb, err := strconv.ParseFloat(string(bytes.Fields(rest)[0]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return kb
}
