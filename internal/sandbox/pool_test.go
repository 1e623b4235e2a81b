package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pml-run/pml/internal/deno/denotest"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox/jail"
)

func TestManyCallers(t *testing.T) {
	t.Parallel()
	p := newPool(t, Options{Size: 4, QueueWait: time.Hour})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			prog := Program{Source: "const r = await mcp.a.b({ i: args.i }); return r.i", Args: json.RawMessage(fmt.Sprintf(`{"i":%d}`, i)), Client: fmt.Sprint(i % 5)}
			out, err := p.Run(t.Context(), prog, &fakeHost{})
			if err != nil || string(out.Result) != fmt.Sprint(i) {
				t.Errorf("run %d: %s, %v", i, out.Result, err)
			}
		})
	}
	wg.Wait()
	if s := p.Stats(); s.Busy != 0 || s.Queued != 0 {
		t.Errorf("stats %+v after the last run", s)
	}
}

// TestNoStateBetweenRuns runs what would leave a trace, and looks for it.
func TestNoStateBetweenRuns(t *testing.T) {
	t.Parallel()
	for range 3 {
		out, err := run(t, `
const found = [globalThis.leak, ({} as any).leak, Array.prototype.map.name, typeof localStorage, typeof caches];
(globalThis as any).leak = 1; (Object.prototype as any).leak = 1; Array.prototype.map = function evil() { return [] } as any;
JSON.parse = () => "evil"; Promise.prototype.then = Promise.prototype.then; setInterval(() => {}, 1);
return found`)
		wantResult(t, out, err, `[null,null,"map","undefined","undefined"]`)
	}
}

// TestBrokenRealm shows that a program which breaks its own realm still gets its
// answer across.
func TestBrokenRealm(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"JSON":             "JSON.parse = JSON.stringify = () => 'evil'",
		"Map and WeakMap":  "for (const c of [Map, WeakMap]) for (const k of ['get', 'set', 'has', 'delete']) (c.prototype as any)[k] = () => { throw 1 }",
		"typed arrays":     "for (const k of ['set', 'subarray', 'slice']) (Uint8Array.prototype as any)[k] = () => { throw 1 }; (globalThis as any).Uint8Array = null",
		"encoder":          "TextEncoder.prototype.encode = TextEncoder.prototype.encodeInto = TextDecoder.prototype.decode = () => { throw 1 }",
		"string":           "for (const k of ['slice', 'charCodeAt']) (String.prototype as any)[k] = () => { throw 1 }; (globalThis as any).String = null",
		"array":            "for (const k of ['push', 'join', 'map']) (Array.prototype as any)[k] = () => { throw 1 }",
		"object":           "for (const k of ['keys', 'getPrototypeOf', 'defineProperty']) (Object as any)[k] = () => { throw 1 }",
		"reflect":          "for (const k of Object.getOwnPropertyNames(Reflect)) (Reflect as any)[k] = () => { throw 1 }",
		"function":         "Function.prototype.apply = Function.prototype.bind = () => { throw 1 }",
		"globals":          "for (const k of ['Proxy', 'Promise', 'Error', 'TypeError', 'WeakMap', 'Map', 'Symbol', 'eval']) (globalThis as any)[k] = null",
		"setter on object": "Object.defineProperty(Object.prototype, 'server', { set() { throw 1 } }); Object.defineProperty(Object.prototype, 'resolve', { set() { throw 1 } })",
		"frozen":           "for (const c of [Object, Array, Function, Promise]) Object.freeze(c.prototype)",
	}
	for name, source := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, source+"; console.log('x'); const r = await mcp.a.b({ n: 1 }); try { mcp.a = 1 } catch {}; return r.n")
			wantResult(t, out, err, "1")
		})
	}
}

func TestKilledIdleWorkersAreReplaced(t *testing.T) {
	t.Parallel()
	p := newPool(t, Options{Size: 4})
	out, err := p.Run(t.Context(), Program{Source: "return 1"}, &fakeHost{})
	wantResult(t, out, err, "1")
	p.mu.Lock()
	idle := append([]*worker{}, p.idle...)
	p.mu.Unlock()
	for _, w := range idle {
		if err := syscall.Kill(w.pid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-w.done
	}
	out, err = p.Run(t.Context(), Program{Source: "return 2"}, &fakeHost{})
	wantResult(t, out, err, "2")
}

func TestQueue(t *testing.T) {
	t.Parallel()
	q := newQueue()
	a1, a2, a3 := q.push("a"), q.push("a"), q.push("a")
	b1, c1 := q.push("b"), q.push("c")
	if !q.remove(a2) || q.remove(a2) {
		t.Error("a ticket is removed once")
	}
	if !q.remove(c1) {
		t.Error("a whole line is removed")
	}
	for i, want := range []*ticket{a1, b1, a3, nil} {
		if got := q.pop(); got != want {
			t.Errorf("turn %d: %v, want %v", i, got, want)
		}
	}
	if q.size != 0 || len(q.lines) != 0 || len(q.turns) != 0 {
		t.Errorf("the empty queue keeps %+v", q)
	}
}

// TestQueueFull fills the only worker and the queue.
func TestQueueFull(t *testing.T) {
	t.Parallel()
	p := newPool(t, Options{Size: 1, MaxBusy: 1, QueueLimit: 1})
	p.mu.Lock()
	reached := watch(p)
	p.mu.Unlock()
	entered, leave := make(chan struct{}), make(chan struct{})
	host := &fakeHost{call: func(context.Context, Call) (json.RawMessage, error) {
		entered <- struct{}{}
		<-leave
		return json.RawMessage("1"), nil
	}}
	var wg sync.WaitGroup
	defer wg.Wait()
	prog := Program{Source: "return await mcp.a.b({})"}
	wg.Go(func() {
		if _, err := p.Run(t.Context(), prog, host); err != nil {
			t.Error(err)
		}
	})
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	wg.Go(func() {
		_, err := p.Run(ctx, prog, host)
		waiting <- err
	})
	reached(func(s Stats) bool { return s.Queued == 1 })
	_, err := p.Run(t.Context(), prog, host)
	if f := wantFault(t, err, fault.Unavailable); !strings.Contains(f.Message, "1 programs are waiting, 1 are running") {
		t.Errorf("message %q does not say how long the queue is", f.Message)
	}
	cancel()
	wantFault(t, <-waiting, fault.Cancelled)
	close(leave)
}

// TestQueueWait waits for the only worker for as long as is allowed.
func TestQueueWait(t *testing.T) {
	t.Parallel()
	p := newPool(t, Options{Size: 1, MaxBusy: 1, QueueWait: time.Millisecond})
	w, err := p.take(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer p.release(w)
	_, err = p.Run(t.Context(), Program{Source: "return 1"}, &fakeHost{})
	if f := wantFault(t, err, fault.Unavailable); !strings.Contains(f.Message, "no worker became free within 1ms") {
		t.Errorf("message %q", f.Message)
	}
}

func TestStopEndsRuns(t *testing.T) {
	t.Parallel()
	p := newPool(t, Options{Size: 1})
	entered := make(chan struct{})
	host := &fakeHost{call: func(ctx context.Context, _ Call) (json.RawMessage, error) {
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	done := make(chan error, 1)
	go func() {
		_, err := p.Run(t.Context(), Program{Source: "await mcp.a.b({})"}, host)
		done <- err
	}()
	<-entered
	p.Stop()
	wantFault(t, <-done, fault.Cancelled)
	p.Stop()
	_, err := p.Run(t.Context(), Program{Source: "return 1"}, host)
	wantFault(t, err, fault.Unavailable)
}

func TestNotStarted(t *testing.T) {
	t.Parallel()
	p, err := New(Options{Deno: denotest.Path(t)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Run(t.Context(), Program{Source: "return 1"}, &fakeHost{})
	wantFault(t, err, fault.Unavailable)
	p.Stop()
	if err := p.Start(t.Context()); err == nil {
		t.Error("a stopped pool starts")
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	broken := t.TempDir() + "/deno"
	if err := os.WriteFile(broken, []byte("\x7fELF is not enough"), 0o755); err != nil {
		t.Fatal(err)
	}
	p, err := New(Options{Deno: broken})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "check that "+broken) {
		t.Errorf("error %v does not say what to check", err)
	}
	if _, err := New(Options{Require: "most", JIT: "maybe", Size: -1, MaxBusy: 1}); err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("error %v, want four problems at once", err)
	}
	p, err = New(Options{Deno: denotest.Path(t), Require: "full", Without: jail.Layers{Landlock: true}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "sandbox.require is full") {
		t.Errorf("error %v, want a refusal", err)
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	tests := map[string]jail.Layers{
		"deno+seccomp+landlock": {},
		"deno+seccomp":          {Landlock: true},
		"deno+rlimits":          {Landlock: true, Seccomp: true},
		"deno":                  jail.Full(),
	}
	for want, off := range tests {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			p := newPool(t, Options{Size: 1, Without: off})
			if diff := cmp.Diff(want, p.Level()); diff != "" {
				t.Error(diff, p.Report())
			}
			if full := !off.Any(); p.Report().JIT != full {
				t.Errorf("JIT %t at this level", p.Report().JIT)
			}
			out, err := p.Run(t.Context(), Program{Source: "return [typeof WebAssembly, (await mcp.a.b({ n: 1 })).n]"}, &fakeHost{})
			wantResult(t, out, err, `["undefined",1]`)
			if out.Level != want {
				t.Errorf("the outcome says %q", out.Level)
			}
		})
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	if r := newPool(t, Options{Size: 1}).Report(); r.Level != "deno+seccomp+landlock" || len(r.Missing) != 0 {
		t.Errorf("report %+v", r)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	p := newPool(t, Options{Size: 1, Registerer: registry})
	out, err := p.Run(t.Context(), Program{Source: "return 1"}, &fakeHost{})
	wantResult(t, out, err, "1")
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	want := []string{"pml_sandbox_busy", "pml_sandbox_idle", "pml_sandbox_kills_total", "pml_sandbox_queued", "pml_sandbox_spawn_seconds"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// TestShrink lets the workers of a pool with nothing to do go, and has the next run
// bring them back.
func TestShrink(t *testing.T) {
	t.Parallel()
	p, err := New(Options{Deno: denotest.Path(t), Size: 5, IdleAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	reached := watch(p)
	if err := p.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	full := func(s Stats) bool { return s.Idle == 5 && s.Starting == 0 }
	reached(full)
	p.letGo(time.Now())
	if s := p.Stats(); s.Idle != 5 {
		t.Errorf("%d idle workers before their time", s.Idle)
	}
	p.letGo(time.Now().Add(2 * time.Hour))
	if s := p.Stats(); s.Idle != asleepSize || s.Starting != 0 {
		t.Errorf("%+v, want %d idle", s, asleepSize)
	}
	out, err := p.Run(t.Context(), Program{Source: "return 1"}, &fakeHost{})
	wantResult(t, out, err, "1")
	reached(full)
}

// watch returns a function that waits until the pool is in some state. It is called
// before anything else of the pool.
func watch(p *Pool) func(func(Stats) bool) {
	changes := make(chan struct{}, 1)
	p.changed = func(Stats) {
		select {
		case changes <- struct{}{}:
		default:
		}
	}
	return func(in func(Stats) bool) {
		for !in(p.Stats()) {
			<-changes
		}
	}
}

func TestResolveDeno(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, sub := range []string{"node_modules/deno", "node_modules/@deno/linux-x64-glibc"} {
		if err := os.MkdirAll(dir+"/"+sub, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script, binary := dir+"/node_modules/deno/bin.cjs", dir+"/node_modules/@deno/linux-x64-glibc/deno"
	if err := os.WriteFile(script, []byte("#!/usr/bin/env node\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := ResolveDeno(script); err == nil {
		t.Errorf("found %s beside a wrapper without an executable", got)
	}
	if err := os.WriteFile(binary, []byte("\x7fELF..."), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{script, binary} {
		if got, err := ResolveDeno(path); err != nil || got != binary {
			t.Errorf("ResolveDeno(%s) = %s, %v", path, got, err)
		}
	}
}
