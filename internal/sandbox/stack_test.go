package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
)

// TestPositionsOfAnInstrumentedProgram follows an error through both maps to what
// the user wrote.
func TestPositionsOfAnInstrumentedProgram(t *testing.T) {
	t.Parallel()
	const mark = `__t.m(__s0,"n1",mcp)`
	prog := Program{
		Original: "const a: string = 'x';\nreturn await mcp.nope()",
		Source:   "const a: string = 'x';\nreturn await " + mark + ".nope()",
		Nodes:    map[string]NodeKind{"n1": NodeTask},
		Position: func(line, column int) (int, int) {
			if end := len("return await "+mark) + 1; line == 2 && column >= end {
				return line, column - len(mark) + len("mcp")
			}
			return line, min(column, len("return await ")+1)
		},
	}
	_, err := sharedPool(t).Run(t.Context(), prog, &fakeHost{})
	got := *wantFault(t, err, fault.RuntimeError)
	got.Hint = ""
	want := fault.Error{
		Code: fault.RuntimeError, Message: "TypeError: mcp.nope is a server, not a function: call mcp.nope.<tool>(args)",
		Line: 2, Column: 18, Source: "return await mcp.nope()", Stack: "at program:2:18",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	prog.Source = "const a: string = 'x';\nreturn await " + mark + ".fs.read.gone.x()"
	prog.Original = "const a: string = 'x';\nreturn await mcp.fs.read.gone.x()"
	_, err = sharedPool(t).Run(t.Context(), prog, &fakeHost{})
	if f := wantFault(t, err, fault.RuntimeError); f.Message != "TypeError: Cannot read properties of undefined (reading 'x')" || f.Line != 2 {
		t.Errorf("%v at line %d", f, f.Line)
	}
	prog.Source = "const a: string = 'x';\n(__t.m(__s0,\"n1\",a))()"
	prog.Original = "const a: string = 'x';\n(a)()"
	prog.Position = func(line, _ int) (int, int) { return line, 2 }
	_, err = sharedPool(t).Run(t.Context(), prog, &fakeHost{})
	if f := wantFault(t, err, fault.RuntimeError); f.Message != "TypeError: a is not a function" {
		t.Errorf("message %q shows the mark", f.Message)
	}
}

// TestToolErrorPlace finds the line of a call whose failure nobody catches.
func TestToolErrorPlace(t *testing.T) {
	t.Parallel()
	host := &fakeHost{call: func(_ context.Context, c Call) (json.RawMessage, error) {
		if c.Tool == "good" {
			return c.Args, nil
		}
		return nil, &tool.CallError{Message: "no such file"}
	}}
	tests := map[string]struct{ source, want string }{
		"top level":              {"const a = 1;\n  await mcp.x.y({})", "2:3 at program:2:3"},
		"later":                  {"await mcp.x.good({});\nfor (const i of [1, 2]) {\n  await mcp.x.good({ i });\n  if (i > 1) await mcp.x.y({});\n}", "4:14 at program:4:14"},
		"function":               {"async function f(n: number) {\n  return await mcp.x.y({ n });\n}\nawait f(1)", "2:10 at f (program:2:10)|at program:4:1"},
		"function without await": {"const f = async () => {\n  return mcp.x.y({});\n};\nawait f()", "4:1 at program:4:1"},
		"callback":               {"await Promise.all([1, 2].map(async (i) => {\n  await mcp.x.y({ i })\n}))", "2:3 at eval (program:2:3)|at program:1:1"},
		"all":                    {"await Promise.all([\n  mcp.x.good({}),\n  mcp.x.y({}),\n])", "1:1 at program:1:1"},
		"rethrown":               {"try {\n  await mcp.x.y({})\n} catch (e) {\n  throw e\n}", "2:3 at program:2:3"},
		"then":                   {"await mcp.x.y({}).then((v) => v)", "1:1 at program:1:1"},
		"returned":               {"const a = 1;\nreturn mcp.x.y({})", "0:0 "},
		"returned, with a mark":  {"const a = 1;\nreturn __t.m(__s0, \"n1\", mcp).x.y({})", "2:8 "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prog := Program{Source: tt.source, Nodes: map[string]NodeKind{"n1": NodeTask}, Site: func(node string) (int, int, bool) { return 2, 8, node == "n1" }}
			_, err := sharedPool(t).Run(t.Context(), prog, host)
			f := wantFault(t, err, fault.ToolFailed)
			if got := fmt.Sprintf("%d:%d %s", f.Line, f.Column, strings.ReplaceAll(f.Stack, "\n", "|")); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if f.Line > 0 && f.Source != strings.Split(tt.source, "\n")[f.Line-1] {
				t.Errorf("source %q is not line %d", f.Source, f.Line)
			}
		})
	}
}

func TestSourceMap(t *testing.T) {
	t.Parallel()
	m, err := parseSourceMap([]byte(`{"mappings":"AAAA,GAAM;;EACF"}`))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		line, column int
		want         segment
		ok           bool
	}{
		"first":           {1, 1, segment{0, 0, 0}, true},
		"between":         {1, 3, segment{0, 0, 0}, true},
		"second":          {1, 4, segment{3, 0, 6}, true},
		"after":           {1, 99, segment{3, 0, 6}, true},
		"line of nothing": {2, 1, segment{}, false},
		"third line":      {3, 3, segment{2, 1, 4}, true},
		"no such line":    {9, 1, segment{}, false},
		"line zero":       {0, 1, segment{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := m.find(tt.line, tt.column)
			if got != tt.want || ok != tt.ok {
				t.Errorf("find(%d, %d) = %v, %t, want %v, %t", tt.line, tt.column, got, ok, tt.want, tt.ok)
			}
		})
	}
	for _, bad := range []string{`{"mappings":"!"}`, `{`, `{"mappings":"ggggggggggC"}`} {
		if _, err := parseSourceMap([]byte(bad)); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func FuzzSourceMap(f *testing.F) {
	f.Add("AAAA,GAAM;;EACF", 1, 4)
	f.Fuzz(func(_ *testing.T, mappings string, line, column int) {
		if m, err := parseSourceMap([]byte(`{"mappings":"` + mappings + `"}`)); err == nil {
			m.find(line, column) // no input may panic
		}
	})
}

func TestCompilerKeepsTheLast(t *testing.T) {
	t.Parallel()
	c := newCompiler(2)
	for _, body := range []string{"return 1", "return 2", "return 1", "return 3", "return 1"} {
		if _, msg := c.compile(body, "", "__t", "__s0"); msg != nil {
			t.Fatal(msg.Text)
		}
	}
	if c.order.Len() != 2 || len(c.byKey) != 2 {
		t.Errorf("%d and %d entries are kept, want 2", c.order.Len(), len(c.byKey))
	}
}
