package analysis

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/fault"
)

func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		source       string
		line, column int
		message      string // part of it
		hint         string // part of it
	}{
		"string":            {"const a = 1;\nreturn \"abc", 2, 12, "Unterminated string", "backquotes"},
		"template":          {"const x = `abc", 1, 15, "Unterminated string", "close the template"},
		"string over lines": {"const s = \"a\nb\"; return s", 1, 13, "Unterminated string", "close the string on its line"},
		"open call":         {"if (a) { b(", 1, 12, "end of the program", "the ( opened at line 1, column 11 is not closed"},
		"open block":        {"const f = async () => {\n  if (a) {\n    b();\n};\nreturn f();", 5, 12, "end of the program", "line 1, column 23"},
		"one too many":      {"const a = 1;\n}\nreturn a", 2, 1, `Unexpected "}"`, "closes nothing"},
		"wrong bracket":     {"const a = {\n  b: [1, 2\n};\nreturn a", 3, 1, `Expected "]"`, "the [ opened at line 2, column 6"},
		"regular expression": {
			"const r = /ab[/(]{2}/.exec(x); foo(]", 1, 36, `Unexpected "]"`, "the ( opened at line 1, column 35",
		},
		"template with braces": {"const t = `${ { a: `}` } }`; foo(", 1, 34, "end of the program", "line 1, column 33"},
		"await":                {"function f() { await mcp.a.b() }\nf()", 1, 16, "await", "make the function around it async"},
		"for await":            {"function f(xs) { for await (const x of xs) {} }\nf()", 1, 22, "await", "async"},
		"declared twice":       {"const a = 1;\nconst a = 2; f(", 2, 7, "declared", "another name"},
		"missing value":        {"let a: number = ;", 1, 17, `Unexpected ";"`, "nothing has run"},
		"operator at the end":  {"return 1 +", 1, 11, "end of the program", "nothing has run"},
		"astral before":        {"const a = \"😀\" 1", 1, 16, "Expected", "nothing has run"},
		"NUL":                  {"const a = 1;\nreturn \"\x00\"", 2, 9, "NUL byte", `\u0000`},
		"type import and error": {
			"import type { A } from './a'\nreturn 1 +", 2, 11, "end of the program", "nothing has run",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Analyse(tt.source, Options{})
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Code != fault.SyntaxError {
				t.Fatalf("error %v, want a syntax error", err)
			}
			if f.Line != tt.line || f.Column != tt.column {
				t.Errorf("at %d:%d (%s), want %d:%d", f.Line, f.Column, f.Message, tt.line, tt.column)
			}
			if !strings.Contains(f.Message, tt.message) || !strings.Contains(f.Hint, tt.hint) {
				t.Errorf("message %q, hint %q, want %q and %q", f.Message, f.Hint, tt.message, tt.hint)
			}
			if want := strings.Split(tt.source, "\n")[tt.line-1]; f.Source != want {
				t.Errorf("quotes %q, want %q", f.Source, want)
			}
		})
	}
}

func TestModules(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		`import fs from "fs"; return 1`, `import { a, type B } from "x"`, `import "x"`, `import * as x from "x"`,
		"const a = 1;\nexport const b = 2", `export default 1`, `export * from "x"`, `import a, { type B } from "x"`,
	} {
		_, err := Analyse(source, Options{})
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != fault.UnsupportedCode || f.Hint == "" || f.Line == 0 {
			t.Errorf("%s: error %v, want unsupported code", source, err)
		}
	}
	source := "import type { A } from './a'; import {\n  type B,\n  type C } from 'b'\nreturn await mcp.a.b({} as A)"
	p, err := Analyse(source, Options{})
	if err != nil {
		t.Fatal(err)
	}
	code, err := p.Code(CodeOptions{})
	if err != nil || strings.Contains(code.Text, "import") || strings.Count(code.Text, "\n") != 3 {
		t.Errorf("code %q, %v: the imports are still there, or lines are missing", code.Text, err)
	}
}

// TestValidAllTheSame shows programs that the grammar does not know to run without
// marks instead of being refused.
func TestValidAllTheSame(t *testing.T) {
	t.Parallel()
	source := "type X<T> = T extends (infer U extends string) ? U : never;\nconst [a] = [await mcp.a.b({})] satisfies unknown[];\nreturn a ? <const T,>(x: T) => x : 1"
	tests := map[string]string{
		"infer extends": "type X = infer U extends string ? 1 : 2\nreturn await mcp.a.b()",
		"whole":         source,
	}
	for name, source := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Analyse(source, Options{})
			if err != nil {
				t.Fatal(err)
			}
			code, err := p.Code(CodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !p.Exact && (code.Text != source || code.Nodes != nil || len(p.Diagnostics) == 0) {
				t.Errorf("code %q, diagnostics %v", code.Text, p.Diagnostics)
			}
		})
	}
}

func TestLineEnds(t *testing.T) {
	t.Parallel()
	p, err := Analyse("const a = 1\rconst b = 2\r\nreturn a\r", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("const a = 1\nconst b = 2\r\nreturn a\n", p.Source); diff != "" {
		t.Error(diff)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ source, why string }{
		"size":   {strings.Repeat("// comment\n", 12_000) + "return 1", "128 KiB"},
		"depth":  {"return " + strings.Repeat("(", 600) + "1" + strings.Repeat(")", 600), "500 levels"},
		"nodes":  {"return [" + strings.Repeat("1,", 60_000) + "]", "100,000 syntax nodes"},
		"events": {strings.Repeat("await mcp.a.b({});\n", 501), "500 calls"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Analyse(tt.source, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if p.Exact || len(p.Diagnostics) != 1 || !strings.Contains(p.Diagnostics[0].Message, tt.why) {
				t.Errorf("exact %t, diagnostics %v, want %s", p.Exact, p.Diagnostics, tt.why)
			}
			if len(p.HashExact) != 32 || p.HashShape == "" {
				t.Errorf("hashes %q %q", p.HashExact, p.HashShape)
			}
			code, err := p.Code(CodeOptions{})
			if err != nil || code.Nodes != nil || strings.Count(code.Text, "\n") != strings.Count(tt.source, "\n") {
				t.Errorf("code with nodes %v, %v", code.Nodes, err)
			}
		})
	}
}

// TestTimeLimit runs the passes with no time left: they end, and say so.
func TestTimeLimit(t *testing.T) {
	t.Parallel()
	source := strings.Repeat("let v = await mcp.a.b({});\nfor (const x of v) { if (x) await f(x) }\n", 100)
	tree, err := parse(source)
	if err != nil {
		t.Fatal(err)
	}
	tree.repair()
	a := newAnalysis(tree, Options{})
	a.limit.deadline = a.limit.deadline.Add(-2 * maxAnalysis)
	p := &Program{Source: source}
	a.fill(p)
	if p.Exact || len(p.Diagnostics) != 1 || !strings.Contains(p.Diagnostics[0].Message, "2 seconds") {
		t.Errorf("exact %t, diagnostics %v", p.Exact, p.Diagnostics)
	}
}

func TestUnbalanced(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		source string
		at     int
		want   bracket
	}{
		"balanced":           {"f([{}]) // (\n/* [ */ '{' \"(\" `[${ {} }`", -1, bracket{}},
		"open":               {"f(", 1, bracket{"(", true}},
		"closed":             {"a)", 1, bracket{")", false}},
		"crossed":            {"f([1)", 2, bracket{"[", true}},
		"template":           {"`${ f( }`", 5, bracket{"(", true}},
		"open substitution":  {"`${ a", 2, bracket{"{", true}},
		"division":           {"a / (b) / c)", 11, bracket{")", false}},
		"regular expression": {"return /[)]\\/(/.test(s", 20, bracket{"(", true}},
		"escaped quote":      {`'\'(' + (`, 8, bracket{"(", true}},
		"string to the end":  {"'((", -1, bracket{}},
		"comment to the end": {"/* ((", -1, bracket{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, got, ok := unbalanced(tt.source)
			if ok != (tt.at >= 0) || ok && (at != tt.at || got != tt.want) {
				t.Errorf("%v at %d, %t; want %v at %d", got, at, ok, tt.want, tt.at)
			}
		})
	}
}
