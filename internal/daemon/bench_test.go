package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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

func (instant) Catalog() *tool.Catalog { return tool.NewCatalog(nil) }

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
	const calls = 1000
	var empty, full []time.Duration
	took := func(code string) time.Duration {
		idle(g)
		began := time.Now()
		must(b, e, code)
		return time.Since(began)
	}
	for b.Loop() {
		empty = append(empty, took("return 1"))
		full = append(full, took(fmt.Sprintf("for (let i = 0; i < %d; i++) await mcp.a.b({ i });", calls)))
	}
	slices.Sort(empty)
	slices.Sort(full)
	b.ReportMetric(float64((full[len(full)/2]-empty[len(empty)/2]).Microseconds())/calls, "p50-µs/call")
}

// BenchmarkMarks is what the marks cost a program: for a pass of a loop with a
// decision, and for a call of a tool that answers at once.
func BenchmarkMarks(b *testing.B) {
	g := newGateway(b)
	for unit, code := range map[string]string{
		"pass": `const s = performance.now();
for (let i = 0; i < 5000; i++) { if (i < 0) await mcp.a.b({}); }
return (performance.now() - s) * 1000 / 5000;`,
		"call": `const s = performance.now();
for (let i = 0; i < 500; i++) await mcp.a.b({});
return (performance.now() - s) * 1000 / 500;`,
	} {
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
			b.Run(unit+" "+name, func(b *testing.B) { measured(b, g, p, "µs/"+unit) })
		}
	}
}

// measured runs a program that returns a figure, and reports the median.
func measured(b *testing.B, g *Gateway, p sandbox.Program, unit string) {
	b.Helper()
	var samples []float64
	for b.Loop() {
		out, err := g.parts.sandbox.Run(b.Context(), p, silent{})
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
	b.ReportMetric(samples[len(samples)/2], unit)
}

// silent answers every call of a program with null.
type silent struct{}

func (silent) Call(context.Context, sandbox.Call) (sandbox.Reply, error) { return sandbox.Reply{}, nil }
func (silent) Progress(float64, float64, string)                         {}
func (silent) Log(string)                                                {}

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
