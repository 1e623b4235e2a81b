package analysis

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/structure"
)

func TestConditions(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a + ", 60) + "ü"
	tests := map[string]struct{ condition, want string }{
		"comments":      {"a /* x */ > // y\n  b", "a > b"},
		"lines":         {"a\n    &&\n  b", "a && b"},
		"tight":         {"a>b", "a>b"},
		"parentheses":   {"((a))", "a"},
		"inner ones":    {"(a) + (b)", "(a) + (b)"},
		"types":         {"(a as any).b! > (<number>c) && f<T>(d satisfies X)", "(a).b > (c) && f(d)"},
		"strings":       {"a === 'x  y' && b === `  ${ c }  `", "a === 'x  y' && b === `  ${ c }  `"},
		"regular":       {"/a  b/.test(s)", "/a  b/.test(s)"},
		"cut":           {long, long[:197] + "..."},
		"cut in astral": {strings.Repeat("a", 196) + "é" + "b", strings.Repeat("a", 196) + "éb"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Analyse("if ("+tt.condition+") await mcp.a.b({})", Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, p.Structure.Nodes[0].Condition); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := cut(strings.Repeat("é", 150)); got != strings.Repeat("é", 98)+"..." {
		t.Errorf("cut in the middle of a character: %q", got)
	}
}

// TestReferences says which tool an expression means, through aliases and scopes.
func TestReferences(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		source string
		want   string
		flags  structure.Flags
	}{
		"member":               {"await mcp.fs.read({})", "fs:read", structure.Flags{}},
		"subscript":            {"await mcp['my-fs'][`read file`]({})", "my-fs:read file", structure.Flags{}},
		"constant name":        {"const op = 'read'; await mcp.fs[op]({})", "fs:read", structure.Flags{}},
		"computed name":        {"for (const op of ops) await mcp.fs[op]({})", "fs:*", structure.Flags{Dynamic: true}},
		"alias":                {"const api = mcp; const { fs: { read: r } } = api; await r({})", "fs:read", structure.Flags{}},
		"alias with a default": {"const { read = nothing } = mcp.fs; await read({})", "fs:read", structure.Flags{}},
		"let that stays":       {"let fs = mcp.fs; await fs.read({})", "fs:read", structure.Flags{Escapes: true}},
		"let that changes":     {"let fs = mcp.fs; fs = other; await fs.read({})", "", structure.Flags{Escapes: true}},
		"hidden by parameter":  {"const f = (mcp) => mcp.fs.read({}); f(1)", "", structure.Flags{}},
		"hidden by block":      {"{ const mcp = other; await mcp.fs.read({}) } await mcp.fs.stat({})", "fs:stat", structure.Flags{}},
		"hidden by catch":      {"try { await mcp.fs.stat({}) } catch (mcp) { mcp.fs.read({}) }", "fs:stat", structure.Flags{}},
		"parameter":            {"const f = (fs) => fs.read({}); await f(mcp.fs)", "fs:read", structure.Flags{}},
		"several arguments":    {"const f = (s) => s.read({}); await f(mcp.a); await f(mcp.b)", "*:read", structure.Flags{Dynamic: true}},
		"call":                 {"await mcp.fs.read.call(mcp.fs, {})", "fs:read", structure.Flags{}},
		"bind":                 {"const read = mcp.fs.read.bind(mcp.fs); await read({})", "fs:read", structure.Flags{}},
		"optional":             {"await mcp?.fs?.read?.({})", "fs:read", structure.Flags{}},
		"casts":                {"await ((mcp as any).fs!.read satisfies X)({})", "fs:read", structure.Flags{}},
		"generic":              {"await mcp.fs.read<T>({})", "fs:read", structure.Flags{}},
		"capability":           {"await capabilities.normalize({})", "capability normalize", structure.Flags{}},
		"stored":               {"const all = { mcp }; await all.mcp.fs.read({})", "", structure.Flags{Escapes: true}},
		"passed on":            {"await helper(mcp.fs)", "", structure.Flags{Escapes: true}},
		"value":                {"const table = { r: mcp.fs.read }", "fs:read", structure.Flags{}},
		"type only":            {"type F = typeof mcp.fs.read; let f: F", "", structure.Flags{}},
		"label":                {"mcp: for (;;) break mcp", "", structure.Flags{}},
		"property":             {"const o = { mcp: 1 }; o.mcp", "", structure.Flags{}},
		"not called":           {"class A { run = () => mcp.fs.read({}) }", "fs:read", structure.Flags{Implicit: true}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Analyse(tt.source, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range p.Structure.Nodes {
				if n.Type == structure.Task || n.Type == structure.Capability {
					got = append(got, n.Title())
				}
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.flags, p.Flags); diff != "" {
				t.Error("flags", diff)
			}
		})
	}
}

func TestFreeNames(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ source, want string }{
		"declared later":   {"f(); function f() { return x } var x = 1; let y = x", ""},
		"block":            {"{ let a = 1 } a", "a"},
		"var in block":     {"if (1) { var a = 1 } a", ""},
		"parameters":       {"const f = ({ a, b: [c = d, ...e] }, ...g) => [a, c, e, g]; f({})", "d"},
		"function name":    {"const f = function g() { return g }; g", "g"},
		"class":            {"class A { #p = 1; m() { return this.#p + q } } new A()", "q"},
		"types":            {"const a: T = b as U; type T = X; f<V>(a)", "b"},
		"keys":             {"const o = { a: 1, [b]: c, d }; o.e", "b c d"},
		"globals":          {"console.log(JSON.stringify(Math.max(1)), undefined)", ""},
		"enum":             {"enum E { A = 1, B = A } E.B", ""},
		"assigned":         {"total = 1; total += other", "other"},
		"destructured":     {"let a; [a, b.c] = d; ({ a } = e)", "b d e"},
		"generator":        {"function* g() { yield x } for (const y of g()) z(y)", "x"},
		"catch and switch": {"try { f() } catch ({ message }) { message } switch (1) { case 1: let k = 1; k }", ""},
		"template":         {"`${a} ${`${b}`}`", "a b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Analyse(tt.source, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, strings.Join(names(p), " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
