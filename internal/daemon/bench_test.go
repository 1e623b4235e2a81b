package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pml-run/pml/internal/analysis"
	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/sandbox/jail"
	"github.com/pml-run/pml/internal/supervise"
	"github.com/pml-run/pml/internal/tool"
)

// TestMain lets the test binary be the sandbox's shim and the watchdog, too.
func TestMain(m *testing.M) {
	jail.MaybeExec()
	if len(os.Args) > 1 && os.Args[1] == supervise.WatchdogArg {
		supervise.RunWatchdog(os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// newGateway starts a gateway on a fresh data folder, without servers.
func newGateway(tb testing.TB) *Gateway {
	tb.Helper()
	tools := os.Getenv("PML_TOOLS")
	if tools == "" {
		tools = filepath.Join("..", "..", ".tools")
	}
	tools, err := filepath.Abs(tools)
	if err != nil {
		tb.Fatal(err)
	}
	g := New(Options{
		Home: tb.TempDir(), Dir: tb.TempDir(), ToolDirs: []string{tools}, Binary: os.Args[0], Version: "test",
		Deno: os.Getenv("PML_DENO"), Logger: slog.New(slog.DiscardHandler), Getenv: func(string) string { return "" },
	})
	if err := g.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(g.Stop)
	if err := g.Ready(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return g
}

func program(code string) execute.Request {
	return execute.Request{Intent: "benchmark", Implementation: &execute.Implementation{Type: "code", Code: code}}
}

// must runs a program that has to succeed.
func must(tb testing.TB, g interface {
	Execute(context.Context, execute.Request) *execute.Answer
}, code string,
) *execute.Answer {
	tb.Helper()
	a := g.Execute(tb.Context(), program(code))
	if a.Status != execute.StatusSuccess {
		tb.Fatalf("run failed: %v", a.Error)
	}
	return a
}

// report prints the median and the 99th percentile in milliseconds.
func report(b *testing.B, samples []time.Duration) {
	b.Helper()
	slices.Sort(samples)
	at := func(p int) float64 {
		return float64(samples[min(len(samples)-1, len(samples)*p/100)].Microseconds()) / 1000
	}
	b.ReportMetric(at(50), "p50-ms")
	b.ReportMetric(at(99), "p99-ms")
}

// idle waits until the pool has spare workers again, as after a pause of the client.
func idle(g *Gateway) {
	for g.parts.sandbox.Stats().Idle < 4 {
		<-time.After(5 * time.Millisecond)
	}
}

// BenchmarkRun is a whole run inside the gateway: stored before it starts,
// executed in a warm worker, trace committed, answered.
func BenchmarkRun(b *testing.B) {
	g := newGateway(b)
	must(b, g, "return 1")
	var samples []time.Duration
	for b.Loop() {
		b.StopTimer()
		idle(g)
		b.StartTimer()
		began := time.Now()
		must(b, g, "return 1")
		samples = append(samples, time.Since(began))
	}
	report(b, samples)
}

// BenchmarkRunsPerSecond is the throughput with several callers at once.
func BenchmarkRunsPerSecond(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(strconv.Itoa(callers)+" callers", func(b *testing.B) {
			g := newGateway(b)
			must(b, g, "return 1")
			began := time.Now()
			n := 0
			for b.Loop() {
				var wg sync.WaitGroup
				for range callers {
					wg.Go(func() { must(b, g, "return 1") })
				}
				wg.Wait()
				n += callers
			}
			b.ReportMetric(float64(n)/time.Since(began).Seconds(), "runs/s")
		})
	}
}

// instant answers every call at once: what remains is our own work.
type instant struct{}

func (instant) Catalog() *tool.Catalog { return nil }

func (instant) Resolve(_ context.Context, server, name string) (tool.Tool, error) {
	yes := true
	return tool.Tool{ID: tool.MakeID(server, name), Annotations: tool.Annotations{ReadOnly: &yes}}, nil
}

func (instant) Call(context.Context, tool.ID, json.RawMessage, func(float64, float64, string)) (json.RawMessage, error) {
	return json.RawMessage(`{"content":[],"structuredContent":{"ok":true}}`), nil
}

// BenchmarkInnerCall is what the sandbox, the bridge and the gate add to one call
// of a reading tool, call after call in one program.
func BenchmarkInnerCall(b *testing.B) {
	g := newGateway(b)
	e := execute.New(memory{Store: g.parts.store}, instant{}, g.parts.sandbox, execute.Config{Limits: sandbox.Limits{Calls: 2000}})
	if err := e.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer e.Stop()
	const code = `const t = []; for (let i = 0; i < 1000; i++) { const s = performance.now(); await mcp.a.b({ i }); t.push(performance.now() - s); }
t.sort((x, y) => x - y); return [t[500], t[990]];`
	var p50, p99 []float64
	for b.Loop() {
		var at [2]float64
		if err := json.Unmarshal(must(b, e, code).Result, &at); err != nil {
			b.Fatal(err)
		}
		p50, p99 = append(p50, at[0]*1000), append(p99, at[1]*1000)
	}
	slices.Sort(p50)
	slices.Sort(p99)
	b.ReportMetric(p50[len(p50)/2], "p50-µs")
	b.ReportMetric(p99[len(p99)/2], "p99-µs")
}

// BenchmarkMarks is what the analyser's marks cost a program: one pass of a loop
// with a decision in it, with and without them.
func BenchmarkMarks(b *testing.B) {
	g := newGateway(b)
	const code = `const s = performance.now();
for (let i = 0; i < 5000; i++) { if (i < 0) await mcp.a.b({}); }
return (performance.now() - s) * 1000 / 5000;`
	program, err := analysis.Analyse(code, analysis.Options{})
	if err != nil {
		b.Fatal(err)
	}
	marked, err := program.Code(analysis.CodeOptions{})
	if err != nil {
		b.Fatal(err)
	}
	nodes := map[string]sandbox.NodeKind{}
	for id, kind := range marked.Nodes {
		nodes[id] = sandbox.NodeKind(kind)
	}
	for name, p := range map[string]sandbox.Program{
		"with":    {Source: marked.Text, Recorder: program.Recorder, Frame: program.Frame, Nodes: nodes},
		"without": {Source: code},
	} {
		b.Run(name, func(b *testing.B) {
			var samples []float64
			for b.Loop() {
				out, err := g.parts.sandbox.Run(b.Context(), p, nil)
				if err != nil {
					b.Fatal(err)
				}
				us, err := strconv.ParseFloat(string(out.Result), 64)
				if err != nil {
					b.Fatal(err)
				}
				samples = append(samples, us)
			}
			slices.Sort(samples)
			b.ReportMetric(samples[len(samples)/2], "µs/pass")
		})
	}
}

// BenchmarkMemory is the gateway's own resident memory after 2,000 runs.
func BenchmarkMemory(b *testing.B) {
	g := newGateway(b)
	for b.Loop() {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 250 {
					must(b, g, "return 1")
				}
			})
		}
		wg.Wait()
	}
	b.ReportMetric(residentMB(b), "rss-MB")
}

func residentMB(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skipf("this system does not tell: %v", err)
	}
	_, rest, _ := bytes.Cut(status, []byte("VmRSS:"))
	kb, err := strconv.Atoi(strings.Fields(string(rest))[0])
	if err != nil {
		b.Fatal(err)
	}
	return float64(kb) / 1024
}
