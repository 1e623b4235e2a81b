package analysis

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/tool"
)

func analysed(t *testing.T, source string) *Program {
	t.Helper()
	p, err := Analyse(source, Options{})
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	if !p.Exact {
		t.Fatalf("%s: %v", source, p.Diagnostics)
	}
	return p
}

// TestSameHash compares programs that are written differently and do the same.
func TestSameHash(t *testing.T) {
	t.Parallel()
	tests := map[string][2]string{
		"layout":       {"const a = await mcp.fs.read({ path: 'x' });\nreturn a", "const a=await mcp.fs.read({path:\"x\",})\n\n\nreturn a;"},
		"comments":     {"await mcp.a.b({ x: 1 })", "// first\nawait /* now */ mcp.a.b({ x: 1 }) // last"},
		"locals":       {"const a = await mcp.a.b({}); for (const x of a) f(x)", "const rows = await mcp.a.b({}); for (const row of rows) f(row)"},
		"parameters":   {"const f = (a, { b: c }) => a + c; f(1, {})", "const g = (x, { b: y }) => x + y; g(1, {})"},
		"aliases":      {"await mcp.fs.read({ path: p })", "const { read: r } = mcp.fs; await r({ path: p })"},
		"types":        {"const a: string = (await mcp.a.b<T>({}) as any)!; type T = 1; f(a)", "const a = await mcp.a.b({}); f(a)"},
		"shorthand":    {"const path = f(); await mcp.a.b({ path })", "const p = f(); await mcp.a.b({ 'path': p })"},
		"declarations": {"const a = f(), b = g(); h(a, b)", "const a = f(); let b = g(); h(a, b)"},
		"braces":       {"if (x) { await mcp.a.b({}) } else { f() }", "if (x) await mcp.a.b({}); else f()"},
		"arrow":        {"xs.map((x) => { return x + 1 })", "xs.map(y => y + 1)"},
		"literals":     {"f(`a\\n`, 0x10, 1_000, -1)", "f('a\\n', 16, 1000, - 1)"},
		"empty":        {"f();;", "f()"},
		"line ends":    {"f(`a\r\nb`)\r\ng()", "f(`a\nb`)\ng()"},
		"class name":   {"class A { m() {} } new A().m()", "class B { m() {} } new B().m()"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := analysed(t, tt[0]), analysed(t, tt[1])
			if a.HashExact != b.HashExact || a.HashShape != b.HashShape {
				t.Errorf("%s and %s have other hashes", tt[0], tt[1])
			}
			if len(a.HashExact) != 32 {
				t.Errorf("hash %s", a.HashExact)
			}
		})
	}
}

// TestSameShape compares programs that differ in their parameters only.
func TestSameShape(t *testing.T) {
	t.Parallel()
	tests := map[string][2]string{
		"path":          {"await mcp.fs.read({ path: 'a' })", "await mcp.fs.read({ path: 'b' })"},
		"const":         {"const url = 'a'; await mcp.web.fetch({ url })", "const url = 'b'; await mcp.web.fetch({ url })"},
		"nested":        {"await mcp.a.b({ x: { y: 1, z } })", "await mcp.a.b({ x: { y: 2, z } })"},
		"whole object":  {"await mcp.a.b({ x: [1, 2] })", "await mcp.a.b({ x: [3] })"},
		"free variable": {"await mcp.fs.read({ path: p })", "await mcp.fs.read({ path: q })"},
		"args":          {"await mcp.fs.read({ path: args.p })", "await mcp.fs.read({ path: args.q })"},
		"literal or args": {
			"await mcp.fs.read({ path: 'x' })", "await mcp.fs.read({ path: args.path })",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := analysed(t, tt[0]), analysed(t, tt[1])
			if a.HashExact == b.HashExact {
				t.Errorf("%s and %s have the same exact hash", tt[0], tt[1])
			}
			if a.HashShape != b.HashShape {
				t.Errorf("%s and %s have other shapes", tt[0], tt[1])
			}
		})
	}
}

// TestOtherShape compares programs that do something else.
func TestOtherShape(t *testing.T) {
	t.Parallel()
	tests := map[string][2]string{
		"loop condition":  {"for (let i = 0; i < 3; i++) await mcp.a.b({})", "for (let i = 0; i < 4; i++) await mcp.a.b({})"},
		"tool":            {"await mcp.a.b({})", "await mcp.a.c({})"},
		"order":           {"f(); g()", "g(); f()"},
		"equal values":    {"await mcp.a.b({ x: 1 }); await mcp.a.c({ x: 1 })", "await mcp.a.b({ x: 1 }); await mcp.a.c({ x: 2 })"},
		"compared":        {"if (x === 'a') await mcp.a.b({ k: 'a' })", "if (x === 'b') await mcp.a.b({ k: 'b' })"},
		"which class":     {"class A {} class B {} new A()", "class A {} class B {} new B()"},
		"which parameter": {"const f = (a, b) => a; f()", "const f = (a, b) => b; f()"},
		"default":         {"const f = (a = b) => 1; f()", "const f = (a, b) => 1; f()"},
		"holes":           {"f([, a])", "f([a])"},
		"for parts":       {"for (a;;) f()", "for (; a;) f()"},
		"empty branch":    {"if (a); else f()", "if (a) f()"},
		"await":           {"await mcp.a.b({})", "mcp.a.b({})"},
		"optional":        {"a?.b()", "a.b()"},
		"optional group":  {"(a?.b).c", "a?.b.c"},
		"regexp":          {"/a b/.test(x)", "/a c/.test(x)"},
		"enum member":     {"enum E { A = 1, B = 2, C = A }", "enum E { A = 1, B = 2, C = B }"},
		"key":             {"f({ a: 1 })", "f({ b: 1 })"},
		"mode":            {"await Promise.all([mcp.a.b({})])", "await Promise.race([mcp.a.b({})])"},
		"let or const":    {"let a = 1; a = 2; f(a)", "const a = 1; f(a)"},
		"template":        {"f(`a${x}`)", "f(`b${x}`)"},
		"label":           {"a: for (;;) { b: for (;;) break a }", "a: for (;;) { b: for (;;) break b }"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := analysed(t, tt[0]), analysed(t, tt[1])
			if a.HashExact == b.HashExact || a.HashShape == b.HashShape {
				t.Errorf("%s and %s have the same hash", tt[0], tt[1])
			}
		})
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ source, want string }{
		"kinds": {
			"await mcp.a.b({ s: 'x', i: 3, f: 1.5, t: true, neg: -2, tpl: `y`, n: null })",
			`s {"default":"x","type":"string"}
i {"default":3,"type":"integer"}
f {"default":1.5,"type":"number"}
t {"default":true,"type":"boolean"}
neg {"default":-2,"type":"integer"}
tpl {"default":"y","type":"string"}
`,
		},
		"arrays and objects": {
			"await mcp.a.b({ a: [1, 2], m: [1, 'x'], e: [], o: { k: 1, l: ['x'] } })",
			`a {"default":[1,2],"items":{"type":"integer"},"type":"array"}
m {"default":[1,"x"],"type":"array"}
e {"default":[],"type":"array"}
o {"default":{"k":1,"l":["x"]},"properties":{"k":{"type":"integer"},"l":{"items":{"type":"string"},"type":"array"}},"required":["k","l"],"type":"object"}
`,
		},
		"partly literal": {
			"await mcp.a.b({ o: { k: 1, v } })",
			"k {\"default\":1,\"type\":\"integer\"}\nv required {}\n",
		},
		"same name": {
			"await mcp.a.b({ k: 1 }); await mcp.a.b({ k: 1 }); await mcp.a.b({ k: 2 }); await mcp.a.b({ k: 3 })",
			"k {\"default\":1,\"type\":\"integer\"}\nk2 {\"default\":2,\"type\":\"integer\"}\nk3 {\"default\":3,\"type\":\"integer\"}\n",
		},
		"names of the program come first": {
			"await mcp.a.b({ path: 'x', to: path, id: args.id }); await mcp.a.c({ id: 1 })",
			"path2 {\"default\":\"x\",\"type\":\"string\"}\nid2 {\"default\":1,\"type\":\"integer\"}\npath required {}\nid required {}\n",
		},
		"const": {
			"const url = 'x'; let n = 1; const m = 2 as const; await mcp.a.b({ u: url, n, m })",
			"url {\"default\":\"x\",\"type\":\"string\"}\n",
		},
		"compared":        {"if (kind === 'a') await mcp.a.b({ k: 'a', l: ['a'], m: 'b' })", "m {\"default\":\"b\",\"type\":\"string\"}\nkind required {}\n"},
		"case label":      {"switch (x) { case 'a': await mcp.a.b({ k: 'a' }) }", "x required {}\n"},
		"odd key":         {"await mcp.a.b({ 'content-type': 'x', 1: 'y' })", "value {\"default\":\"x\",\"type\":\"string\"}\nvalue2 {\"default\":\"y\",\"type\":\"string\"}\n"},
		"optional args":   {"await mcp.a.b({ a: args.a ?? 1, b: args.b || 2, c: args.c && 3, d: args.d?.x })", "a {}\nb {}\nc required {}\nd {}\n"},
		"pattern of args": {"const { a, b = 1, c: d } = args; await mcp.a.b({ a, b, d })", "a required {}\nb {}\nc required {}\n"},
		"hidden args":     {"const f = (args) => mcp.a.b({ k: 'x', l: args.l }); f({})", ""},
		"escapes":         {`await mcp.a.b({ k: 'a\n\t\x41\u0042\u{1F600}\'' })`, "k {\"default\":\"a\\n\\tAB😀'\",\"type\":\"string\"}\n"},
		"half surrogate":  {`await mcp.a.b({ k: '\ud800' })`, ""},
		"big integer":     {"await mcp.a.b({ k: 10n, l: 1e400, m: 1e21 })", "m {\"default\":1e+21,\"type\":\"number\"}\n"},
		"holes":           {"await mcp.a.b({ k: [, 1] })", ""},
		"not an argument": {"const x = 'a'; f({ k: x })", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := analysed(t, tt.source)
			if diff := cmp.Diff(tt.want, parameters(p)); diff != "" {
				t.Error(diff)
			}
			for _, q := range p.Parameters {
				if q.End > 0 && !json.Valid(q.Schema) {
					t.Errorf("%s: schema %s of %s", q.Name, q.Schema, p.Source[q.Start:q.End])
				}
			}
		})
	}
}

// TestSchemas gives the analysis the schemas of tools.
func TestSchemas(t *testing.T) {
	t.Parallel()
	schema := func(text string) json.RawMessage { return json.RawMessage(text) }
	tools := map[string]tool.Tool{
		"fs:stat":   {ID: "fs:stat", OutputSchema: schema(`{"properties":{"path":{},"size":{}}}`)},
		"fs:write":  {ID: "fs:write_file", InputSchema: schema(`{"properties":{"path":{"type":"string","maxLength":9},"content":{},"mode":{"properties":{"bits":{"type":"integer","minimum":0}}}},"required":["path","content"]}`)},
		"fs:delete": {ID: "fs:delete", InputSchema: schema(`{"properties":{"path":{},"force":{}},"required":["path"]}`)},
	}
	resolve := func(server, name string) (tool.Tool, bool) {
		found, ok := tools[server+":"+name]
		return found, ok
	}
	tests := map[string]struct{ source, provides, parameters string }{
		"strict":        {"const s = await mcp.fs.stat({}); await mcp.fs.write({ path: s.path, content: s.c, mode: m })", "n1⇢n2 (strict)", "m required {\"properties\":{\"bits\":{\"minimum\":0,\"type\":\"integer\"}}}\n"},
		"partial":       {"const s = await mcp.fs.stat({}); await mcp.fs.write({ path: s.path, content: c })", "n1⇢n2 (partial)", "c required {}\n"},
		"optional":      {"const s = await mcp.fs.stat({}); await mcp.fs.write({ path: p, content: p, mode: s.mode })", "n1⇢n2 (optional)", "p required {\"maxLength\":9,\"type\":\"string\"}\n"},
		"spread":        {"const s = await mcp.fs.stat({}); await mcp.fs.write({ ...s, content: c })", "n1⇢n2 (partial)", "c required {}\n"},
		"whole":         {"await mcp.fs.write(await mcp.fs.stat({}))", "n1⇢n2 (strict)", ""},
		"guard strict":  {"const s = await mcp.fs.stat({}); if (s.size) await mcp.fs.delete({ path: p })", "n1⇢n2 (strict, guard)", "p required {}\n"},
		"guard partial": {"const s = await mcp.fs.stat({}); if (s.size) await mcp.fs.write({ path: p, content: p })", "n1⇢n2 (partial, guard)", "p required {\"maxLength\":9,\"type\":\"string\"}\n"},
		"changed":       {"await mcp.fs.write({ path: args.dir + '/x', content: args.text, mode: args.all.mode })", "—", "dir required {}\ntext required {}\nall required {}\n"},
		"read from args": {
			"await mcp.fs.write({ path: args.to, content: args.refers, mode: args.mode })", "—",
			"to required {\"maxLength\":9,\"type\":\"string\"}\nrefers required {}\nmode required {\"properties\":{\"bits\":{\"minimum\":0,\"type\":\"integer\"}}}\n",
		},
		"schema of the tool": {
			"await mcp.fs.write({ path: 'x', content: c, mode: { bits: 7, d } })", "—",
			"path {\"default\":\"x\",\"maxLength\":9,\"type\":\"string\"}\nbits {\"default\":7,\"minimum\":0,\"type\":\"integer\"}\nc required {}\nd required {}\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Analyse(tt.source, Options{Resolve: resolve})
			if err != nil {
				t.Fatal(err)
			}
			_, got, _ := strings.Cut(notation(p), "provides: ")
			if diff := cmp.Diff(tt.provides+"\n", got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.parameters, parameters(p)); diff != "" {
				t.Error(diff)
			}
		})
	}
	p, err := Analyse("await mcp.fs.write({}); await mcp.fs.write({}); await mcp[x].y({}); await capabilities.c({}); await capabilities.c({})", Options{Resolve: resolve})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"fs:write_file", "*:y"}, p.Tools()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"c"}, p.Capabilities()); diff != "" {
		t.Error(diff)
	}
}

func TestInputs(t *testing.T) {
	t.Parallel()
	p := analysed(t, "const x = args.opts.list[0]; await mcp.a.b({ path, x, all: args, n: `${path}!` }); if (unused) f()")
	want := []Input{
		{Name: "path", Free: true, Feeds: []Feed{{Node: "n1", Argument: "n"}, {Node: "n1", Argument: "path", Exact: true}}},
		{Name: "unused", Free: true},
		{Name: "opts", Feeds: []Feed{{Node: "n1", Argument: "x", Path: "list[0]", Exact: true}}},
		{Feeds: []Feed{{Node: "n1", Argument: "all", Exact: true}}},
	}
	if diff := cmp.Diff(want, p.Inputs); diff != "" {
		t.Error(diff)
	}
}

func TestCode(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		source  string
		options CodeOptions
		want    string
	}{
		"implicit result":    {"const a = 1;\na + 1 // sum", CodeOptions{}, "const a = 1;\nreturn (a + 1) // sum"},
		"implicit await":     {"await f()", CodeOptions{}, "return (await f())"},
		"no result":          {"if (a) b()", CodeOptions{}, "if (a) b()"},
		"explicit result":    {"if (a) return 1;\nb()", CodeOptions{}, "if (a) return 1;\nb()"},
		"return of another":  {"const f = () => { return 1 };\nf()", CodeOptions{}, "const f = () => { return 1 };\nreturn (f())"},
		"no semicolons":      {"const f = g\nf\n(1)", CodeOptions{}, "const f = g\nreturn (f\n(1))"},
		"arrow before":       {"const f = () => {}\n(a)", CodeOptions{}, "const f = () => {}\nreturn ((a))"},
		"object":             {"({ a: 1 })", CodeOptions{}, "return (({ a: 1 }))"},
		"provided":           {"f({ path, q: path })", CodeOptions{Provided: []string{"path", "other"}}, "return (f({ path:args.path, q: args.path }))"},
		"not provided":       {"f({ path })", CodeOptions{Provided: []string{"other"}}, "return (f({ path }))"},
		"provided in typeof": {"return typeof path", CodeOptions{Provided: []string{"path"}}, "return typeof args.path"},
		"provided but hidden": {
			"const f = (args) => path; return f()", CodeOptions{Provided: []string{"path"}}, "const f = (args) => path; return f()",
		},
		"lifted": {
			"return await mcp.a.b({ k: 'x', l: [\n1,\n2 ] as any })",
			CodeOptions{Lift: true},
			"return await __t.m(__s0,\"n1\",mcp).a.b({ k: args.k, l: \n\nargs.l as any })",
		},
		"names in use": {"const __t = 1; await mcp.a.b({ __t })", CodeOptions{}, "const __t = 1; return (await __t_.m(__s_0,\"n1\",mcp).a.b({ __t }))"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := analysed(t, tt.source)
			code, err := p.Code(tt.options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, code.Text); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	p := analysed(t, "const r = await mcp.fs.read({ path });\nif (r.ok) await Promise.all([mcp.a.b({ x: r.x, y: `${r.y}`, k: 1 }), capabilities.c({})]);\nfor (const t of r) await mcp[t].x({})")
	var out strings.Builder
	Describe(&out, p)
	for _, want := range []string{
		"runs   with marks", "n1  1:17  fs:read", "path ← $path", "if r.ok", "fork all", "capability c", "loop of r",
		"x ← n1.x, y ← ~n1.y", "→ n2  contains     branch 0", "→ n2  provides     partial by arg", "optional  {\"default\":1", "note 3:26",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
