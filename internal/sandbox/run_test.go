package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
)

func TestResult(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ source, want string }{
		"number":            {"return 1 + 1", "2"},
		"nothing":           {"", "null"},
		"undefined":         {"return undefined", "null"},
		"no return":         {"const x = 1;", "null"},
		"types are removed": {"interface A { x: number }\nconst a: A = { x: 1 } as const;\nreturn a satisfies A", `{"x":1}`},
		"enum":              {"enum E { A = 3, B }\nreturn E.B", "4"},
		"date":              {"return { at: new Date(0) }", `{"at":"1970-01-01T00:00:00.000Z"}`},
		"undefined inside":  {"return { a: undefined, b: [undefined] }", `{"b":[null]}`},
		"call":              {"return await mcp.fs.read({ path: 'x' })", `{"path":"x"}`},
		"call, no argument": {"return await mcp.fs.list()", `{}`},
		"indexed":           {"const s = 'fs', t = 'read file'; return await mcp[s][t]({ a: 1 })", `{"a":1}`},
		"parallel":          {"return await Promise.all([1, 2, 3].map((n) => mcp.m.id({ n })))", `[{"n":1},{"n":2},{"n":3}]`},
		"returned promise":  {"return mcp.m.id({ n: 1 })", `{"n":1}`},
		"method reference":  {"const { id } = mcp.m; return await [{ n: 1 }].map(id)[0]", `{"n":1}`},
		"bind":              {"return await mcp.m.id.bind(null, { n: 1 })()", `{"n":1}`},
		"await server":      {"const fs = await mcp.fs; return typeof fs", `"function"`},
		"await root":        {"await mcp; await mcp.fs.read; return 1", "1"},
		"keys":              {"return [Object.keys(mcp), Object.keys(mcp.fs), Object.keys(mcp.fs.read), JSON.stringify({ a: mcp.fs })]", `[[],[],[],"{}"]`},
		"as text":           {"return `${mcp} ${mcp.fs} ${mcp.fs.read} ${capabilities.x}`", `"[mcp] [mcp.fs] [mcp.fs.read] [capabilities.x]"`},
		"strict":            {"try { undeclared = 1 } catch (e) { return e.name }", `"ReferenceError"`},
		"timer":             {"await new Promise((r) => setTimeout(r, 1)); return 1", "1"},
		"unicode":           {"return '€😀\\u2028'", "\"€😀\u2028\""},
		"closing brace":     {"return 1 // }", "1"},
		"last line comment": {"return 1 //", "1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, tt.source)
			wantResult(t, out, err, tt.want)
		})
	}
}

func TestArgs(t *testing.T) {
	t.Parallel()
	out, err := sharedPool(t).Run(t.Context(), Program{Source: "args.list.push(3); return args", Args: json.RawMessage(`{"list":[1,{"a":2}]}`)}, &fakeHost{})
	wantResult(t, out, err, `{"list":[1,{"a":2},3]}`)
	if out.Level == "" || out.Wall <= 0 {
		t.Errorf("level %q and wall %s are not filled", out.Level, out.Wall)
	}
}

func TestCallCarriesItsPlace(t *testing.T) {
	t.Parallel()
	host := &fakeHost{}
	out, err := sharedPool(t).Run(t.Context(), Program{Source: "await mcp.fs.read({ a: 1 }); return await mcp.fs.read.raw({ b: 2 })"}, host)
	wantResult(t, out, err, `{"b":2}`)
	want := []Call{
		{ID: 1, Server: "fs", Tool: "read", Args: json.RawMessage(`{"a":1}`), NodeID: "?fs:read", Seq: 0, Occurrence: 1},
		{ID: 2, Server: "fs", Tool: "read", Args: json.RawMessage(`{"b":2}`), Raw: true, NodeID: "?fs:read", Seq: 1, Occurrence: 2},
	}
	if diff := cmp.Diff(want, host.calls); diff != "" {
		t.Error(diff)
	}
	if out.Calls != 2 {
		t.Errorf("%d calls, want 2", out.Calls)
	}
}

func TestToolErrorInTheProgram(t *testing.T) {
	t.Parallel()
	errs := map[string]error{
		"refused": &tool.CallError{Server: "fs", Tool: "refused", Code: "not_found", Message: "no such file", Content: json.RawMessage(`[{"type":"text"}]`)},
		"wrapped": fmt.Errorf("gate: %w", fault.New(fault.Denied, "rule fs:* denies").WithHint("ask the owner")),
		"unknown": errors.New("secret detail"),
	}
	host := &fakeHost{call: func(_ context.Context, c Call) (json.RawMessage, error) { return nil, errs[c.Tool] }}
	source := `const out = [];
for (const t of ["refused", "wrapped", "unknown"]) {
  try { await mcp.fs[t]({}) } catch (e) {
    out.push([e instanceof Error, e.name, e.message, e.server, e.tool, e.code, e.hint, e.content]);
  }
}
return out`
	out, err := sharedPool(t).Run(t.Context(), Program{Source: source}, host)
	wantResult(t, out, err, `[[true,"ToolError","no such file","fs","refused","not_found",null,[{"type":"text"}]],`+
		`[true,"ToolError","rule fs:* denies","fs","wrapped","denied","ask the owner",null],`+
		`[true,"ToolError","the gateway failed while it made this call","fs","unknown","internal",null,null]]`)
}

func TestErrors(t *testing.T) {
	t.Parallel()
	host := &fakeHost{call: func(_ context.Context, c Call) (json.RawMessage, error) {
		if c.Tool == "denied" {
			return nil, fault.New(fault.Denied, "rule fs:denied denies").WithHint("ask the owner")
		}
		return nil, &tool.CallError{Server: "fs", Tool: "read", Code: "not_found", Message: "no such file"}
	}}
	tests := map[string]struct {
		source string
		want   fault.Error
	}{
		"syntax": {"const a = 1;\nconst b = ;\nreturn a", fault.Error{
			Code: fault.SyntaxError, Message: `Unexpected ";"`, Line: 2, Column: 11, Source: "const b = ;",
		}},
		"syntax on the first line": {"const b = ;", fault.Error{Code: fault.SyntaxError, Message: `Unexpected ";"`, Line: 1, Column: 11, Source: "const b = ;"}},
		"open brace": {"if (true) {\n  return 1\n", fault.Error{
			Code: fault.SyntaxError, Message: "Unexpected end of file", Line: 3, Column: 1,
		}},
		"brace too many": {"return 1\n}", fault.Error{
			Code: fault.SyntaxError, Message: `Unexpected "}" after the end of the program: there is one too many`, Line: 2, Column: 2, Source: "}",
		}},
		"regular expression": {"const a = 1;\nconst re = /(/;", fault.Error{
			Code: fault.SyntaxError, Message: "Invalid regular expression: /(/: Unterminated group", Line: 2, Column: 12, Source: "const re = /(/;",
		}},
		"import": {"import fs from 'fs'\nreturn 1", fault.Error{
			Code: fault.UnsupportedCode, Message: "programs cannot import or export modules", Line: 1, Column: 8, Source: "import fs from 'fs'",
		}},
		"throw": {"const a: number = 1;\nfunction inner(x: string): never {\n  throw new Error('boom ' + x);\n}\ninner('now')", fault.Error{
			Code: fault.RuntimeError, Message: "boom now", Line: 3, Column: 9, Source: "  throw new Error('boom ' + x);",
			Stack: "at inner (program:3:9)\nat program:5:1",
		}},
		"type error, first line": {"const x: any = null; x.y", fault.Error{
			Code: fault.RuntimeError, Message: "TypeError: Cannot read properties of null (reading 'y')", Line: 1, Column: 24,
			Source: "const x: any = null; x.y", Stack: "at program:1:24",
		}},
		"thrown text":       {"throw 'just text'", fault.Error{Code: fault.RuntimeError, Message: "string: just text"}},
		"tool":              {"\n  await mcp.fs.read({})", fault.Error{Code: fault.ToolFailed, Message: "no such file", Tool: "fs:read"}},
		"fault of the host": {"await mcp.fs.denied({})", fault.Error{Code: fault.Denied, Message: "rule fs:denied denies", Tool: "fs:denied"}},
		"server called": {"mcp.fs({})", fault.Error{
			Code: fault.RuntimeError, Message: "TypeError: mcp.fs is a server, not a function: call mcp.fs.<tool>(args)", Line: 1, Column: 5,
			Source: "mcp.fs({})", Stack: "at program:1:5",
		}},
		"text as argument": {"await mcp.fs.read('x')", fault.Error{
			Code: fault.RuntimeError, Message: "TypeError: mcp.fs.read takes one object with named arguments, not a string", Line: 1, Column: 14,
			Source: "await mcp.fs.read('x')", Stack: "at program:1:14",
		}},
		"Deno": {"return Deno.env.get('HOME')", fault.Error{
			Code: fault.RuntimeError, Message: "ReferenceError: Deno is not defined", Line: 1, Column: 1,
			Source: "return Deno.env.get('HOME')", Stack: "at program:1:1",
		}},
		"fetch": {"await fetch('http://x')", fault.Error{
			Code: fault.UnsupportedCode, Message: "fetch is not available in the sandbox: call a tool of mcp instead", Line: 1, Column: 7,
			Source: "await fetch('http://x')", Stack: "at program:1:7",
		}},
		"remote import": {"await import('https://esm.sh/x')", fault.Error{
			Code: fault.UnsupportedCode, Message: `A remote specifier was requested: "https://esm.sh/x", but --no-remote is specified.`,
		}},
		"function":   {"return { items: [1, 2, 3, { x() {} }] }", fault.Error{Code: fault.ResultNotSerializable, Message: "result.items[3].x is a function"}},
		"bigint":     {"return { a: 1n }", fault.Error{Code: fault.ResultNotSerializable, Message: "result.a is a BigInt (1n)"}},
		"cycle":      {"const a: any = {}; a.b = [a]; return a", fault.Error{Code: fault.ResultNotSerializable, Message: "result.b[0] is a cycle: it contains itself"}},
		"class":      {"class A {}; return { 'a b': new A() }", fault.Error{Code: fault.ResultNotSerializable, Message: `result["a b"] is an instance of A`}},
		"map":        {"return new Map()", fault.Error{Code: fault.ResultNotSerializable, Message: "result is an instance of Map"}},
		"tool value": {"return mcp.fs.read", fault.Error{Code: fault.ResultNotSerializable, Message: "result is a function"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := sharedPool(t).Run(t.Context(), Program{Source: tt.source}, host)
			got := *wantFault(t, err, tt.want.Code)
			got.Hint = ""
			if tt.want.Stack == "" { // not what the case is about
				got.Stack = ""
			}
			if tt.want.Line == 0 {
				got.Line, got.Column, got.Source = 0, 0, ""
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	out, err := run(t, `console.log("a", { b: [1] }, null); console.warn("careful"); console.error(new TypeError("x").message); return 1`)
	wantResult(t, out, err, "1")
	want := []string{"a { b: [ 1 ] } null", "[warn] careful", "[error] x"}
	if diff := cmp.Diff(want, out.Logs); diff != "" {
		t.Error(diff)
	}
}

func TestLogFlood(t *testing.T) {
	t.Parallel()
	out, err := run(t, `for (let i = 0; i < 100000; i++) console.log("line", i); return 1`)
	wantResult(t, out, err, "1")
	if len(out.Logs) != 200 || out.LogsDropped != 99800 {
		t.Errorf("%d lines and %d dropped, want 200 and 99800", len(out.Logs), out.LogsDropped)
	}
	out, err = run(t, `console.log("€".repeat(1e6)); console.log("more"); return 1`)
	wantResult(t, out, err, "1")
	if n := len(strings.Join(out.Logs, "")); n > 17<<10 || n < 15<<10 {
		t.Errorf("kept %d bytes, want about 16 KB", n)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	host := &fakeHost{}
	out, err := sharedPool(t).Run(t.Context(), Program{Source: "for (let i = 0; i <= 50; i++) progress(i, 50, 'step ' + i); return 1"}, host)
	wantResult(t, out, err, "1")
	if n := len(host.reports); n == 0 || host.reports[n-1] != "50/50 step 50" {
		t.Errorf("the last report is missing: %q", host.reports)
	}
}
