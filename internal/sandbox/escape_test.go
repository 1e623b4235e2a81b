package sandbox

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pml-run/pml/internal/sandbox/jail"
)

// escapes are programs that try to reach something outside, each with what it may
// return. All of them are stopped by Deno's flags and the locked realm alone, so
// they run at the lowest level; TestNativeEscapes shows what the jail adds.
var escapes = map[string]struct{ source, want string }{
	"host objects": {`return ["Deno", "process", "Buffer", "global", "Worker", "WebSocket", "WebAssembly", "BroadcastChannel", "EventSource",
  "localStorage", "caches", "navigator", "close", "reportError", "prompt"].filter((k) => k in globalThis)`, "[]"},
	"host of the bridge": {`const F = (mcp as any).__proto__; return [typeof F, typeof (console.log as any).constructor("return typeof Deno")()]`, `["function","string"]`},
	"Deno by a function": {`return new Function("return typeof Deno + typeof process")()`, `"undefinedundefined"`},
	"Deno by eval":       {`return (0, eval)("typeof Deno")`, `"undefined"`},
	"Deno by a symbol":   {`return Object.getOwnPropertySymbols(globalThis).map(String).filter((s) => /deno|internal/i.test(s))`, "[]"},
	"constructor chain":  {`return [mcp, capabilities, args, progress, console].map((o: any) => { try { return o.constructor.constructor("return typeof Deno")() } catch { return "undefined" } }).every((s) => s === "undefined" || typeof s !== "string")`, "true"},
	"stack trace hook": {`let seen = ""; (Error as any).prepareStackTrace = (_: any, s: any[]) => { for (const f of s) seen += typeof f.getThis?.() + typeof f.getFunction?.(); return "x" };
try { null.x } catch (e) { e.stack } return /object|function/.test(seen)`, "false"},
	"remote import": {`return await tryAll(["https://esm.sh/x", "https://raw.githubusercontent.com/a/b/c.js", "jsr:@std/path", "npm:chalk", "file:///etc/passwd", "./x.js"].map((u) => () => import(u)))`, `["","","","","",""]`},
	"node modules": {`return await tryAll(["fs", "net", "child_process", "http", "os", "process", "vm", "worker_threads", "dgram", "tls", "cluster", "inspector", "fs/promises"].map((m) => async () => {
  const n = await import("node:" + m);
  if (m === "fs") return n.readFileSync("/etc/passwd", "utf8");
  if (m === "fs/promises") return await n.readFile("/etc/passwd", "utf8");
  if (m === "net") { const s = new n.Socket({ fd: 1 }); s.write("forged\n"); return "socket" }
  if (m === "child_process") return n.execSync("id").toString();
  if (m === "os") return n.hostname();
  if (m === "process") return String(n.default.pid + n.pid);
  throw new Error(m);
}))`, `["","","","","","","","","","","","",""]`},
	"network": {`return await tryAll([() => fetch("http://127.0.0.1:1"), () => new (globalThis as any).WebSocket("ws://127.0.0.1:1"),
  async () => (await import("node:sqlite")).DatabaseSync("/tmp/x.db")])`, `["","",""]`},
	"inspector": {`return await tryAll([async () => { const i = await import("node:inspector"); i.open(9229, "127.0.0.1"); return "open" },
  async () => { const i = await import("node:inspector"); const s = new i.Session(); s.connect(); return "connected" }])`, `["",""]`},
	"foreign functions": {`return await tryAll([() => (Deno as any).dlopen("libc.so.6", {}), () => new Function("return Deno.dlopen('libc.so.6', {})")(),
  async () => (await import("node:process")).dlopen({}, "/lib/x.so")])`, `["","",""]`},
	"asking for permission": {`return await tryAll([() => (Deno as any).permissions.request({ name: "read" }), () => (navigator as any).permissions.query({ name: "read" }), () => prompt("?"), () => confirm("?")])`, `["","","",""]`},
	"engine flags": {`const flags = await tryAll([async () => { const v8 = await import("node:v8"); v8.setFlagsFromString("--allow-natives-syntax"); v8.setFlagsFromString("--expose-gc"); return "" }]);
return [...flags, ...await tryAll([() => (0, eval)("%GetOptimizationStatus(tryAll)"), () => (globalThis as any).gc()])]`, `["","",""]`},
	"what persists": {`return await tryAll([() => localStorage.setItem("a", "1"), () => sessionStorage.setItem("a", "1"), async () => await (await caches.open("v")).put("http://a", new Response("x")),
  () => (Deno as any).openKv(), async () => new (await import("node:sqlite")).DatabaseSync("file.db")])`, `["","","","",""]`},
	"listeners": {`const seen: string[] = []; const on = EventTarget.prototype.addEventListener;
for (const type of ["unhandledrejection", "error", "unload", "beforeunload", "message"]) {
  try { on.call(globalThis as any, type, (e: any) => { seen.push(type + typeof (e.reason?.frame ?? e.target?.Deno)); e.stopImmediatePropagation() }) } catch { /* refused is fine too */ }
}
Promise.reject(new Error("mine")); setTimeout(() => { throw new Error("mine too") }); await new Promise((r) => setTimeout(r, 5));
return [seen.every((s) => s.endsWith("undefined")), (await mcp.a.b({ n: 1 })).n]`, "[true,1]"},
	"imported text": {`const m = await import("data:text/javascript,export default typeof Deno + typeof process"); return m.default`, `"undefinedundefined"`},
}

const tryAll = `async function tryAll(list: (() => any)[]) {
  const out: string[] = [];
  for (const f of list) { try { out.push(String(await f()).slice(0, 80)) } catch { out.push("") } }
  return out;
}
`

// TestEscapes runs every attempt with nothing but Deno, and in the full jail.
func TestEscapes(t *testing.T) {
	t.Parallel()
	for levelName, off := range map[string]jail.Layers{"deno": jail.Full(), "full": {}} {
		t.Run(levelName, func(t *testing.T) {
			t.Parallel()
			p := newPool(t, Options{Size: 2, Without: off})
			for name, tt := range escapes {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					source := tt.source
					if strings.Contains(source, "tryAll(") {
						source = tryAll + source
					}
					out, err := p.Run(t.Context(), Program{Source: source}, &fakeHost{})
					wantResult(t, out, err, tt.want)
				})
			}
		})
	}
}

// TestInspectionMakesNoCall prints and inspects what stands for tools.
func TestInspectionMakesNoCall(t *testing.T) {
	t.Parallel()
	host := &fakeHost{}
	source := `console.log(mcp, mcp.fs, mcp.fs.read, capabilities, { deep: { mcp } });
String(mcp.fs); mcp.fs.read + ""; [mcp.fs].join(); JSON.stringify({ mcp }); "fs" in mcp; Object.entries(mcp); ({ ...mcp.fs }); await Promise.resolve(mcp.fs.read);
for (const f of [() => { mcp.a = 1 }, () => { delete mcp.fs.read }, () => new mcp.fs.read(), () => Object.setPrototypeOf(mcp, null)]) {
  try { f(); return "changed" } catch (e) { if (!(e instanceof TypeError)) throw e }
}
return 1`
	out, err := sharedPool(t).Run(t.Context(), Program{Source: source}, host)
	wantResult(t, out, err, "1")
	if len(host.calls) != 0 {
		t.Errorf("calls %v", host.calls)
	}
}

func TestSeed(t *testing.T) {
	t.Parallel()
	prog := Program{
		Source: `const d = new Date(); return [Date.now(), d.toISOString(), d instanceof Date, new Date(5).getTime(), Math.random(), crypto.randomUUID(), crypto.getRandomValues(new Uint8Array(2))[0], typeof performance.now()]`,
		Seed:   &Determinism{Random: 7},
	}
	first, err := sharedPool(t).Run(t.Context(), prog, &fakeHost{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := sharedPool(t).Run(t.Context(), prog, &fakeHost{})
	wantResult(t, again, err, string(first.Result))
	prog.Seed = &Determinism{Random: 8}
	other, err := sharedPool(t).Run(t.Context(), prog, &fakeHost{})
	if err != nil || string(other.Result) == string(first.Result) {
		t.Errorf("another seed gives the same result, %v", err)
	}
}

// TestTheClockFollowsTheReplies: time passes with the replies and the timers, in an
// order that does not depend on when things really happen.
func TestTheClockFollowsTheReplies(t *testing.T) {
	t.Parallel()
	start := time.UnixMilli(1_000_000)
	host := timedHost{"a": start.Add(50 * time.Millisecond), "b": start.Add(5 * time.Second), "c": start.Add(5 * time.Second)}
	prog := Program{
		Source: `const seen = [Date.now() - 1_000_000];
const late = new Promise((r) => setTimeout(() => { seen.push("timer", Date.now() - 1_000_000); r("timer"); }, 1000));
setTimeout(() => seen.push("first"), 999);
const every = setInterval(() => { seen.push("tick"); }, 2000);
await mcp.s.a({});
seen.push(Date.now() - 1_000_000);
seen.push(await Promise.race([mcp.s.b({}).then(() => "b"), late]));
await mcp.s.c({});
clearInterval(every);
seen.push(Date.now() - 1_000_000, performance.now());
return seen;`,
		Seed: &Determinism{Now: start},
	}
	out, err := sharedPool(t).Run(t.Context(), prog, host)
	wantResult(t, out, err, `[0,50,"first","timer",1001,"timer","tick","tick",5000,5001]`)
}

// timedHost answers each tool at its time.
type timedHost map[string]time.Time

func (h timedHost) Call(_ context.Context, c Call) (Reply, error) {
	return Reply{Seal: func() (time.Time, error) { return h[c.Tool], nil }}, nil
}

func (timedHost) Progress(float64, float64, string) {}

func (timedHost) Log(string) {}
