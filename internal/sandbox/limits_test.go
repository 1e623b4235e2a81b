package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pml-run/pml/internal/deno/denotest"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox/jail"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	short := Limits{Wall: 300 * time.Millisecond}
	cpu := Limits{CPU: 150 * time.Millisecond}
	tests := map[string]struct {
		source string
		limits Limits
		want   fault.Code
	}{
		"endless loop":                {"while (true) {}", short, fault.Timeout},
		"endless microtasks":          {"for (;;) await null", short, fault.Timeout},
		"endless wait":                {"await new Promise(() => {})", short, fault.Timeout},
		"backtracking":                {"/(a+)+b/.test('a'.repeat(60))", short, fault.Timeout},
		"blocked thread":              {"Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)", short, fault.Timeout},
		"timer flood":                 {"for (;;) setTimeout(() => {}, 1e6)", short, fault.Timeout},
		"busy loop":                   {"while (true) {}", cpu, fault.CPULimit},
		"busy microtasks":             {"for (;;) await null", cpu, fault.CPULimit},
		"array growth":                {"const a = []; for (;;) a.push(new Array(10000).fill(1.5))", Limits{}, fault.MemoryLimit},
		"string doubling":             {"const a = []; for (let s = 'x'.repeat(1 << 20);;) a.push((s + a.length).split(''))", Limits{}, fault.MemoryLimit},
		"array buffers":               {"const a = []; for (;;) a.push(new Uint8Array(10e6).fill(1))", Limits{}, fault.MemoryLimit},
		"shared array buffers":        {"const a = []; for (;;) a.push(new Uint8Array(new SharedArrayBuffer(10e6)).fill(1))", Limits{}, fault.MemoryLimit},
		"memory of the host's":        {"const a = []; for (;;) a.push(new Blob([new Uint8Array(10e6)]))", Limits{}, fault.MemoryLimit},
		"smaller memory":              {"const a = new Uint8Array(150e6).fill(1); return a.length", Limits{MemoryMB: 64}, fault.MemoryLimit},
		"result":                      {"return 'x'.repeat(9 << 20)", Limits{}, fault.OutputLimit},
		"result, own limit":           {"return '€€€€'", Limits{Result: 10}, fault.OutputLimit},
		"calls":                       {"for (;;) await mcp.a.b({})", Limits{Calls: 20}, fault.TooManyCalls},
		"calls without await":         {"for (;;) mcp.a.b({})", Limits{Calls: 500}, fault.TooManyCalls},
		"calls behind a caught error": {"for (;;) try { await mcp.a.b({}) } catch {}", Limits{Calls: 20}, fault.TooManyCalls},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := sharedPool(t).Run(t.Context(), Program{Source: tt.source, Limits: tt.limits}, &fakeHost{})
			wantFault(t, err, tt.want)
			if out.Level == "" {
				t.Error("the outcome of a failed run has no level")
			}
		})
	}
}

// memoryPrograms fill some MB and keep them. An object of four numbers is 56 bytes.
var memoryPrograms = map[string]func(mb int) string{
	"objects": func(mb int) string {
		return fmt.Sprintf("keep.o = []; for (let i = 0; i < %d * 16384; i++) keep.o.push({ i, k: i, s: i, t: i });", mb)
	},
	"buffers": func(mb int) string {
		return fmt.Sprintf("keep.b = []; for (let i = 0; i < %d; i++) keep.b.push(new Uint8Array(1 << 20).fill(1));", mb)
	},
	"text": func(mb int) string {
		return fmt.Sprintf("keep.s = []; for (let i = 0; i < %d * 64; i++) keep.s.push(JSON.stringify('x'.repeat(15e3) + i) + JSON.stringify(i));", mb)
	},
}

// TestMemory shows that a limit leaves what it promises, whatever the memory is used
// for, and little more.
func TestMemory(t *testing.T) {
	t.Parallel()
	const mb = 128
	p := newPool(t, Options{Size: 2, MemoryMB: mb})
	objects, buffers, text := memoryPrograms["objects"], memoryPrograms["buffers"], memoryPrograms["text"]
	tests := map[string]struct {
		source string
		fits   bool
	}{
		"objects":              {objects(mb * 80 / 100), true},
		"buffers":              {buffers(mb * 80 / 100), true},
		"text":                 {text(mb * 80 / 100), true},
		"objects then buffers": {objects(mb*40/100) + buffers(mb*40/100), true},
		"buffers then objects": {buffers(mb*40/100) + objects(mb*40/100), true},
		"many objects":         {objects(mb * 150 / 100), false},
		"many buffers":         {buffers(mb * 150 / 100), false},
		"much text":            {text(mb * 150 / 100), false},
		"much of both":         {objects(mb*75/100) + buffers(mb*75/100), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			prog := Program{Source: "const keep = (globalThis as any).keep = {} as any;" + tt.source + "return Object.keys(keep).length > 0", Limits: Limits{MemoryMB: mb}}
			out, err := p.Run(t.Context(), prog, &fakeHost{})
			if tt.fits {
				wantResult(t, out, err, "true")
				return
			}
			wantFault(t, err, fault.MemoryLimit)
			out, err = p.Run(t.Context(), Program{Source: "return 1"}, &fakeHost{})
			wantResult(t, out, err, "1")
		})
	}
}

// TestGarbage makes four times its memory in buffers that it drops, beside objects
// that it keeps. V8 notices such garbage late, so a small limit has no room for it.
func TestGarbage(t *testing.T) {
	t.Parallel()
	out, err := run(t, "let n = 0; for (let i = 0; i < 100; i++) n += new Uint8Array(10e6).fill(1).length; const a = []; for (let i = 0; i < 1.5e6; i++) a.push({ i }); return [n, a.length]")
	wantResult(t, out, err, "[1000000000,1500000]")
}

func TestArgumentLimit(t *testing.T) {
	t.Parallel()
	source := `try { await mcp.a.b({ x: "y".repeat(9 << 20) }) } catch (e) { return [e.name, e.code, e.message] }`
	host := &fakeHost{}
	out, err := sharedPool(t).Run(t.Context(), Program{Source: source}, host)
	wantResult(t, out, err, `["ToolError","invalid_input","the arguments of a:b are larger than the limit of 8388608 bytes"]`)
	if len(host.calls) != 0 {
		t.Error("the call was made nevertheless")
	}
	_, err = sharedPool(t).Run(t.Context(), Program{Source: `await mcp.a.b({ x: "y".repeat(9 << 20) })`}, host)
	if f := wantFault(t, err, fault.ToolFailed); f.Tool != "a:b" {
		t.Errorf("tool %q, want a:b", f.Tool)
	}
}

func TestToolResultLimit(t *testing.T) {
	t.Parallel()
	host := &fakeHost{call: func(context.Context, Call) (json.RawMessage, error) {
		return json.RawMessage(`"` + strings.Repeat("x", 2000) + `"`), nil
	}}
	source := `try { await mcp.a.b({}) } catch (e) { return [e.name, e.code] }`
	out, err := sharedPool(t).Run(t.Context(), Program{Source: source, Limits: Limits{ToolResult: 1000}}, host)
	wantResult(t, out, err, `["ToolError","output_limit"]`)
}

func TestLargeValues(t *testing.T) {
	t.Parallel()
	host := &fakeHost{call: func(context.Context, Call) (json.RawMessage, error) {
		return json.RawMessage(`"` + strings.Repeat("x", 20<<20) + `"`), nil
	}}
	out, err := sharedPool(t).Run(t.Context(), Program{Source: `const v = await mcp.a.b({ a: "y".repeat(7 << 20) }); return [v.length, v.slice(0, 7 << 20)]`}, host)
	if err != nil {
		t.Fatal(err)
	}
	if want := 7<<20 + len(`[20971520,""]`); len(out.Result) != want {
		t.Errorf("result of %d bytes, want %d", len(out.Result), want)
	}
}

// TestInFlight proves that no more than the limit of calls are open at a time, and
// that all are made.
func TestInFlight(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{}, 200)
	proceed := make(chan struct{})
	host := &fakeHost{call: func(ctx context.Context, c Call) (json.RawMessage, error) {
		entered <- struct{}{}
		select {
		case <-proceed:
			return c.Args, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	type result struct {
		out Outcome
		err error
	}
	done := make(chan result, 1)
	go func() {
		source := "return (await Promise.all(Array.from({ length: 200 }, (_, i) => mcp.a.b({ i })))).length"
		out, err := sharedPool(t).Run(t.Context(), Program{Source: source, Limits: Limits{InFlight: 7}}, host)
		done <- result{out, err}
	}()
	for range 7 {
		<-entered
	}
	if n := len(entered); n != 0 {
		t.Errorf("%d calls over the limit", n)
	}
	close(proceed)
	r := <-done
	wantResult(t, r.out, r.err, "200")
}

func TestCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	host := &fakeHost{call: func(ctx context.Context, _ Call) (json.RawMessage, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	out, err := sharedPool(t).Run(ctx, Program{Source: "console.log('before'); await mcp.a.b({})"}, host)
	wantFault(t, err, fault.Cancelled)
	if fmt.Sprint(out.Logs) != "[before]" || out.Calls != 1 {
		t.Errorf("logs %q and %d calls: what was known is lost", out.Logs, out.Calls)
	}
}

func TestCancelCause(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fault.New(fault.ApprovalRejected, "no").WithHint("ask again"))
	_, err := sharedPool(t).Run(ctx, Program{Source: "await new Promise(() => {})"}, &fakeHost{})
	wantFault(t, err, fault.ApprovalRejected)
	ctx, stop := context.WithTimeout(t.Context(), time.Nanosecond)
	defer stop()
	_, err = sharedPool(t).Run(ctx, Program{Source: "await new Promise(() => {})"}, &fakeHost{})
	wantFault(t, err, fault.Timeout)
}

// TestClock holds a clock, in time that passes only here.
func TestClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		expired := make(chan struct{})
		c := newClock(300*time.Millisecond, func() { close(expired) })
		time.Sleep(100 * time.Millisecond)
		release := c.hold()
		nested := c.hold()
		time.Sleep(time.Hour)
		nested()
		nested() // the second time does nothing
		time.Sleep(time.Hour)
		select {
		case <-expired:
			t.Fatal("the clock ran while it was held")
		default:
		}
		release()
		began := time.Now()
		<-expired
		if d := time.Since(began); d != 200*time.Millisecond {
			t.Errorf("expired %s after the hold, want 200ms", d)
		}
		if used := c.stop(); used != 300*time.Millisecond || c.stop() != used {
			t.Errorf("the clock counted %s, want 300ms", used)
		}
	})
}

// TestHold holds the clock of the run that a call belongs to.
func TestHold(t *testing.T) {
	t.Parallel()
	host := &fakeHost{call: func(ctx context.Context, c Call) (json.RawMessage, error) {
		clock, ok := ctx.Value(clockKey{}).(*clock)
		if !ok {
			return nil, errors.New("no clock")
		}
		holds := func() int {
			clock.mu.Lock()
			defer clock.mu.Unlock()
			return clock.holds
		}
		release := Hold(ctx)
		held := holds()
		release()
		release()
		return json.RawMessage(fmt.Sprintf("[%d,%d]", held, holds())), nil
	}}
	out, err := sharedPool(t).Run(t.Context(), Program{Source: "return await mcp.a.b({})"}, host)
	wantResult(t, out, err, "[1,0]")
	Hold(t.Context())() // outside a run: nothing happens
}

// TestRlimitCPU shows that the kernel ends a busy worker that nobody watches.
func TestRlimitCPU(t *testing.T) {
	t.Parallel()
	s := jail.Spec{
		Binary: denotest.Path(t), Layers: jail.Layers{Rlimits: true}, CPU: 1,
		Args: []string{"run", "--no-config", "--no-lock", "data:application/javascript,while(true){}"},
	}
	state, _ := inJail(t, s)
	if !killedBySystem(state) {
		t.Errorf("the worker ended with %s, want a kill for its CPU time", state)
	}
}

func TestHostPanic(t *testing.T) {
	t.Parallel()
	host := &fakeHost{call: func(context.Context, Call) (json.RawMessage, error) { panic("bug") }}
	_, err := sharedPool(t).Run(t.Context(), Program{Source: "await mcp.a.b({})"}, host)
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.Internal {
		t.Errorf("error %v, want internal", err)
	}
}

func TestFloatingCallsEndWithTheRun(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	host := &fakeHost{call: func(ctx context.Context, _ Call) (json.RawMessage, error) {
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}}
	out, err := sharedPool(t).Run(t.Context(), Program{Source: "mcp.a.b({}); setTimeout(() => mcp.a.b({}), 0); return 1"}, host)
	wantResult(t, out, err, "1")
	<-ended
}

func TestBadArgs(t *testing.T) {
	t.Parallel()
	_, err := sharedPool(t).Run(t.Context(), Program{Source: "return 1", Args: json.RawMessage("{")}, &fakeHost{})
	wantFault(t, err, fault.InvalidInput)
}
