package sandbox

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/sandbox/wire"
)

// runMarked runs a program with marks as the analyser puts them.
func runMarked(t *testing.T, prog Program, want string) Outcome {
	t.Helper()
	out, err := sharedPool(t).Run(t.Context(), prog, &fakeHost{})
	wantResult(t, out, err, want)
	return out
}

// brief writes records without their order, one a line.
func brief(t *testing.T, records []Record) string {
	t.Helper()
	var b strings.Builder
	for i, r := range records {
		if r.Seq != i {
			t.Errorf("record %d has the order %d", i, r.Seq)
		}
		r.Seq = 0
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(strings.ReplaceAll(string(text), `"q":0,`, "") + "\n")
	}
	return b.String()
}

func TestRecords(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		source, result string
		nodes          map[string]NodeKind
		want           string
	}{
		"call and decision": {
			`const a = await __t.m(__s0,"n1",mcp).fs.read({}); if ((__t.d(__s0,"d1",(a)))) { return __t.n(__s0,"d2",null) ?? 1 }`, "1",
			map[string]NodeKind{"n1": NodeTask, "d1": NodeDecision, "d2": NodeDecision},
			`{"t":"call","f":0,"id":"n1","tool":"fs:read"}
{"t":"dec","f":0,"id":"d1","o":"true"}
{"t":"dec","f":0,"id":"d2","o":"false"}
`,
		},
		"bound later": {
			`const { read } = mcp.fs; await __t.m(__s0,"n1",read)({}); await read({}); return __t.m(__s0, "n1", 5)`, "5",
			map[string]NodeKind{"n1": NodeTask},
			`{"t":"call","f":0,"id":"n1","tool":"fs:read"}
{"t":"call","f":0,"id":"?fs:read","tool":"fs:read"}
`,
		},
		"loop": {
			`for (const x of __t.l(__s0,"l1",[1,2],1,"xs")) {const __s1=__t.i(__s0,"l1"); await __t.m(__s1,"n1",mcp).a.b({x}); } return 1`, "1",
			map[string]NodeKind{"n1": NodeTask, "l1": NodeLoop},
			`{"t":"loop","f":0,"id":"l1"}
{"t":"iter","f":1,"id":"l1"}
{"t":"call","f":1,"id":"n1","tool":"a:b"}
{"t":"iter","f":2,"id":"l1","k":1}
{"t":"call","f":2,"id":"n1","tool":"a:b"}
`,
		},
		"not iterable": {
			`try { for (const x of __t.l(__s0,"l1",undefined,1,"xs")) {const __s1=__t.i(__s0,"l1");} } catch (e) { return e.message }`, `"xs is not iterable"`,
			map[string]NodeKind{"l1": NodeLoop},
			`{"t":"loop","f":0,"id":"l1"}
`,
		},
		"switch": {
			`switch ((__t.w(__s0,"d1",("b")))) { case "a":__t.o(__s0,"d1","case:a"); case "b":__t.o(__s0,"d1","case:b"); default:__t.o(__s0,"d1","default"); } return 1`, "1",
			map[string]NodeKind{"d1": NodeDecision},
			`{"t":"dec","f":0,"id":"d1","o":"case:b"}
`,
		},
		"logical assignment": {
			`let x: any = null, y: any = 1; __t.a(__s0,"d1","true",x ??= (__t.k(__s0,"d1","false"),2)); __t.a(__s0,"d2","true",y ??= (__t.k(__s0,"d2","false"),2)); return [x, y]`, "[2,1]",
			map[string]NodeKind{"d1": NodeDecision, "d2": NodeDecision},
			`{"t":"dec","f":0,"id":"d1","o":"false"}
{"t":"dec","f":0,"id":"d2","o":"true"}
`,
		},
		"function in a branch": {
			`async function get(x) {const __s1=__t.h(__s0,"get"); return await __t.m(__s1,"n1",mcp).a.b({x}) }
return (__t.j(__s0,"j1",await __t.f(__s0,"f1",Promise).all([__t.x(__s0,get,"f1",0)(1), __t.x(__s0,get,"f1",1)(2)]))).length`, "2",
			map[string]NodeKind{"n1": NodeTask, "f1": NodeFork, "j1": NodeJoin},
			`{"t":"fork","f":0,"id":"f1"}
{"t":"frame","f":1,"name":"get","r":"f1"}
{"t":"call","f":1,"id":"n1","tool":"a:b"}
{"t":"frame","f":2,"name":"get","r":"f1","b":1}
{"t":"call","f":2,"id":"n1","tool":"a:b"}
{"t":"join","f":0,"id":"j1"}
`,
		},
		"callback by name": {
			`const one = async (x) => {const __s1=__t.h(__s0,"one"); return await __t.m(__s1,"n1",mcp).a.b({x}) };
return (__t.j(__s0,"j1",await __t.f(__s0,"f1",Promise).all([1,2].map(__t.y(__s0,"f1",one))))).length`, "2",
			map[string]NodeKind{"n1": NodeTask, "f1": NodeFork, "j1": NodeJoin},
			`{"t":"fork","f":0,"id":"f1"}
{"t":"iter","f":1,"id":"f1"}
{"t":"frame","f":2,"p":1,"name":"one"}
{"t":"call","f":2,"id":"n1","tool":"a:b"}
{"t":"iter","f":3,"id":"f1","k":1}
{"t":"frame","f":4,"p":3,"name":"one"}
{"t":"call","f":4,"id":"n1","tool":"a:b"}
{"t":"join","f":0,"id":"j1"}
`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := runMarked(t, Program{Source: tt.source, Nodes: tt.nodes}, tt.result)
			if diff := cmp.Diff(tt.want, brief(t, out.Records)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRecordsOfAFailedRun keeps what came with the last call of a killed worker.
func TestRecordsOfAFailedRun(t *testing.T) {
	t.Parallel()
	prog := Program{
		Source: `__t.d(__s0,"d1",1); await __t.m(__s0,"n1",mcp).a.b({}); __t.d(__s0,"d1",0); while (true) {}`,
		Nodes:  map[string]NodeKind{"n1": NodeTask, "d1": NodeDecision}, Limits: Limits{Wall: 200e6},
	}
	out, err := sharedPool(t).Run(t.Context(), prog, &fakeHost{})
	wantFault(t, err, "timeout")
	if len(out.Records) != 2 || out.Records[1].Type != wire.CallEvent {
		t.Errorf("records %v, want the decision and the call", out.Records)
	}
	prog.Source = `__t.d(__s0,"d1",1); throw new Error("x")`
	out, err = sharedPool(t).Run(t.Context(), prog, &fakeHost{})
	wantFault(t, err, "runtime_error")
	if len(out.Records) != 1 {
		t.Errorf("records %v, want the decision", out.Records)
	}
}

func TestRecordsAreCut(t *testing.T) {
	t.Parallel()
	prog := Program{
		Source: `for (let i = 0; i < 25000; i++) __t.d(__s0,"d1",i % 2); await __t.m(__s0,"n1",mcp).a.b({}); return 1`,
		Nodes:  map[string]NodeKind{"n1": NodeTask, "d1": NodeDecision},
	}
	out := runMarked(t, prog, "1")
	if len(out.Records) != 20000 || !out.RecordsTruncated {
		t.Errorf("%d records, truncated %t, want 20000 and true", len(out.Records), out.RecordsTruncated)
	}
	if diff := cmp.Diff(map[string]int{"d1": 5000, "n1": 1}, out.RecordCounts); diff != "" {
		t.Error(diff)
	}
}

func TestRecorderByAnotherName(t *testing.T) {
	t.Parallel()
	prog := Program{Source: `const __t = 1; return __t_.d(__s0_,"d1",__t)`, Recorder: "__t_", Frame: "__s0_", Nodes: map[string]NodeKind{"d1": NodeDecision}}
	runMarked(t, prog, "1")
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	prog := Program{
		Source: `const r = await __t.m(__s0,"c1",capabilities).double({ n: 2 }); return r`,
		Nodes:  map[string]NodeKind{"c1": NodeCapability},
		Capabilities: map[string]string{
			"double": `args.n *= 2; const x: number = (await __t.m(__s0,"n1",mcp).a.b(args)).n; return await __t.m(__s0,"c1",capabilities).inner({ x })`,
			"inner":  `return { got: args.x, log: console.log("inside") }`,
		},
		CapabilityNodes: map[string]map[string]NodeKind{"double": {"n1": NodeTask, "c1": NodeCapability}},
	}
	out := runMarked(t, prog, `{"got":4}`)
	want := `{"t":"call","f":0,"id":"c1","tool":"capability:double"}
{"t":"frame","f":1,"cap":"double"}
{"t":"call","f":1,"id":"n1","tool":"a:b"}
{"t":"call","f":1,"id":"c1","tool":"capability:inner"}
{"t":"frame","f":2,"p":1,"cap":"inner"}
{"t":"end","f":2,"o":"ok"}
{"t":"end","f":1,"o":"ok"}
`
	if diff := cmp.Diff(want, brief(t, out.Records)); diff != "" {
		t.Error(diff)
	}
	if out.Calls != 1 {
		t.Errorf("%d calls, want 1: a capability is none", out.Calls)
	}
}

func TestHowACapabilityEnded(t *testing.T) {
	t.Parallel()
	prog := Program{
		Source: `void capabilities.waits({}).catch(() => 0); try { await capabilities.fails({}) } catch { return 1 }`,
		Capabilities: map[string]string{
			"fails": `throw new Error("no")`,
			"waits": `await new Promise(() => 0)`,
		},
	}
	out := runMarked(t, prog, `1`)
	want := `{"t":"call","f":0,"id":"?capability:waits","tool":"capability:waits"}
{"t":"frame","f":1,"cap":"waits"}
{"t":"call","f":0,"id":"?capability:fails","tool":"capability:fails"}
{"t":"frame","f":2,"cap":"fails"}
{"t":"end","f":2,"o":"error"}
`
	if diff := cmp.Diff(want, brief(t, out.Records)); diff != "" {
		t.Error(diff)
	}
}

func TestCapabilityErrors(t *testing.T) {
	t.Parallel()
	pool := sharedPool(t)
	_, err := pool.Run(t.Context(), Program{Source: "await capabilities.gone({})"}, &fakeHost{})
	if f := wantFault(t, err, "tool_failed"); f.Tool != "capability:gone" {
		t.Errorf("tool %q", f.Tool)
	}
	_, err = pool.Run(t.Context(), Program{
		Source:       "try { await capabilities.again({}) } catch (e) { throw new Error(e.code) }",
		Capabilities: map[string]string{"again": "return await capabilities.again({})"},
	}, &fakeHost{})
	if f := wantFault(t, err, "runtime_error"); f.Message != "too_many_calls" {
		t.Errorf("message %q", f.Message)
	}
	_, err = pool.Run(t.Context(), Program{
		Source:       "\nawait capabilities.fails({})",
		Capabilities: map[string]string{"fails": "\n\n  throw new Error('inside')"},
	}, &fakeHost{})
	f := wantFault(t, err, "runtime_error")
	if want := "at capability fails:3:9\nat program:2:20"; f.Stack != want || f.Line != 2 {
		t.Errorf("line %d, stack %q, want line 2 and %q", f.Line, f.Stack, want)
	}
	_, err = pool.Run(t.Context(), Program{Source: "return 1", Capabilities: map[string]string{"broken": "const = 1"}}, &fakeHost{})
	wantFault(t, err, "syntax_error")
}
