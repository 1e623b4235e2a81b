package analysis

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
)

func TestFromDAGRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		tasks  string
		code   fault.Code
		want   string
		node   string
		line   int
		column int
	}{
		"no tasks": {``, fault.InvalidInput, "the dag has no tasks", "", 0, 0},
		"condition with a syntax error": {
			`{"id":"a","tool":"x:y","condition":"args.n >"}`, fault.SyntaxError, `task "a": condition: Unexpected ")"`, "a", 1, 9,
		},
		"condition on its first line": {
			`{"id":"a","tool":"x:y","condition":"args n"}`, fault.SyntaxError, `task "a": condition: Expected ")" but found "n"`, "a", 1, 6,
		},
		"two expressions":            {`{"id":"a","tool":"x:y","condition":"1); (2"}`, fault.SyntaxError, `task "a": condition: it is more than one expression`, "a", 0, 0},
		"a statement as a condition": {`{"id":"a","tool":"x:y","condition":"if (1) 2"}`, fault.SyntaxError, `task "a": condition: `, "a", 1, 1},
		"an empty condition":         {`{"id":"a","tool":"x:y","condition":" // none"}`, fault.SyntaxError, `task "a": condition: `, "a", 1, 9},
		"condition on another branch": {
			`{"id":"a","tool":"x:y"},{"id":"b","tool":"x:y","condition":"a.ok"}`, fault.InvalidInput, `task "b": it reads the result of "a", which may not be there yet`, "b", 0, 0,
		},
		"condition on a later task": {
			`{"id":"a","tool":"x:y","condition":"results['b-1']"},{"id":"b-1","tool":"x:y","depends_on":["a"]}`, fault.InvalidInput, `task "a": it reads the result of "b-1"`, "a", 0, 0,
		},
		"condition on no task": {`{"id":"a","tool":"x:y","condition":"results.b"}`, fault.InvalidInput, `task "a": it reads the result of "b", and there is no such task`, "a", 0, 0},
		"code with an error":   {`{"id":"a","tool":"x:y"},{"id":"b","code":"const x = 1;\nconst y = ;"}`, fault.SyntaxError, `task "b": code: `, "b", 2, 11},
		"code that declares twice": {
			`{"id":"a","tool":"x:y"},{"id":"b","code":"const x = 1;\nconst x = 2;"}`, fault.SyntaxError, `task "b": The symbol "x" has already been declared`, "b", 8, 7,
		},
		"code that ends its function": {`{"id":"a","code":"} {"}`, fault.SyntaxError, `task "a": code: Unexpected "}"`, "a", 1, 1},
		"code that imports":           {`{"id":"a","code":"import fs from 'fs'"}`, fault.UnsupportedCode, `task "a": code: programs cannot import`, "a", 1, 1},
		"code with a NUL":             {`{"id":"a","code":"'\u0000'"}`, fault.SyntaxError, `task "a": the program holds a NUL byte`, "a", 1, 2},
		"code that reads a task":      {`{"id":"a","tool":"x:y"},{"id":"b","code":"return a","depends_on":["a"]}`, fault.InvalidInput, `task "b": its code reads a, which is the name of a task`, "b", 0, 0},
		"code that reads ahead":       {`{"id":"a","tool":"x:y"},{"id":"b","code":"return results.a"}`, fault.InvalidInput, `task "b": it reads the result of "a"`, "b", 0, 0},
		"too large": {
			`{"id":"a","tool":"x:y","arguments":{"x":"` + strings.Repeat("a", maxSource) + `"}}`, fault.UnsupportedCode, "the dag is too large: the program is longer than 128 KiB", "", 0, 0,
		},
		"too many calls": {
			`{"id":"a","code":"` + strings.Repeat(`mcp.x.y();`, maxEvents+1) + `"}`, fault.UnsupportedCode, "the dag is too large: the program has more than 500 calls of tools", "", 0, 0,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d structure.DAG
			if err := json.Unmarshal([]byte(`{"tasks":[`+tt.tasks+`]}`), &d); err != nil {
				t.Fatal(err)
			}
			_, err := FromDAG(d, Options{}, false)
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Code != tt.code || !strings.Contains(f.Message, tt.want) || f.NodeID != tt.node || f.Line != tt.line || f.Column != tt.column || f.Hint == "" {
				t.Errorf("error %v of %q at %d:%d with hint %q", err, f.NodeID, f.Line, f.Column, f.Hint)
			}
		})
	}
}

// TestDAGHashes compares a DAG with others: what the list's order and the layout leave
// alone, and what they do not.
func TestDAGHashes(t *testing.T) {
	t.Parallel()
	const text = `{"tasks":[{"id":"t1","tool":"fs:read","arguments":{"path":{"$args":"path"}}},{"id":"t2","tool":"crm:find","arguments":{"name":"Ann","limit":10}},
		{"id":"t3","tool":"mail:send","arguments":{"to":{"$ref":"t2.people[0].mail"}},"on_error":"skip"},{"id":"t4","tool":"db:store","depends_on":["t1"],"on_error":"skip"},
		{"id":"t5","tool":"log:write","depends_on":["t3","t4"]}]}`
	p := fromDAG(t, text, false)
	edited := func(edit func(d *structure.DAG)) *Program {
		d := parsedDAG(t, text)
		edit(&d)
		q, err := FromDAG(d, Options{}, false)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	set := func(i int, arguments string) func(d *structure.DAG) {
		return func(d *structure.DAG) { d.Tasks[i].Arguments = json.RawMessage(arguments) }
	}
	tests := map[string]struct {
		other        *Program
		exact, shape bool // the same
	}{
		"checkpoints":        {fromDAG(t, text, true), true, true},
		"order of the list":  {edited(func(d *structure.DAG) { slices.Reverse(d.Tasks) }), true, true},
		"order of the keys":  {edited(set(1, `{"limit": 10, "name": "Ann"}`)), true, true},
		"order of the needs": {edited(func(d *structure.DAG) { d.Tasks[4].DependsOn = []string{"t4", "t3"} }), true, true},
		"a literal":          {edited(set(1, `{"name": "Bob", "limit": 10}`)), false, true},
		"an argument's name": {edited(set(1, `{"name": "Ann", "most": 10}`)), false, false},
		"a tool":             {edited(func(d *structure.DAG) { d.Tasks[4].Tool = "log:read" }), false, false},
		"a failure":          {edited(func(d *structure.DAG) { d.Tasks[4].OnError = structure.OnErrorSkip }), false, false},
		"an id":              {edited(func(d *structure.DAG) { d.Tasks[4].ID = "t6" }), false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if (tt.other.HashExact == p.HashExact) != tt.exact || (tt.other.HashShape == p.HashShape) != tt.shape {
				t.Errorf("exact %s and %s, shape %s and %s", p.HashExact, tt.other.HashExact, p.HashShape, tt.other.HashShape)
			}
			if !tt.exact {
				return
			}
			if diff := cmp.Diff(p.Structure, tt.other.Structure); diff != "" {
				t.Errorf("structure %s", diff)
			}
			if diff := cmp.Diff(p.Parameters, tt.other.Parameters); diff != "" {
				t.Errorf("parameters %s", diff)
			}
		})
	}
	if code := analysed(t, p.Source); code.HashExact == p.HashExact || code.HashShape == p.HashShape {
		t.Error("the text as code has the hash of the DAG, and other nodes")
	}
}

// TestCheckpointsAreNotForPrograms wants a server of that name to be like any other
// where a person's program names it.
func TestCheckpointsAreNotForPrograms(t *testing.T) {
	t.Parallel()
	p := analysed(t, "await mcp.$pml.layer({ index: 0, results: {} })")
	if got := p.Tools(); !slices.Equal(got, []string{"$pml:layer"}) {
		t.Errorf("code has the tools %v", got)
	}
	d := fromDAG(t, `{"tasks":[{"id":"a","tool":"$pml:layer"},{"id":"b","code":"await mcp.$pml.layer({})"}]}`, true)
	if got := d.Tools(); !slices.Equal(got, []string{"$pml:layer"}) || len(d.Structure.Nodes) != 4 {
		t.Errorf("the DAG has the tools %v and the nodes %v", got, d.Structure.Nodes)
	}
}

// TestDAGResolves wants the tools' own ids and schemas to count.
func TestDAGResolves(t *testing.T) {
	t.Parallel()
	resolve := func(server, name string) (tool.Tool, bool) {
		return tool.Tool{
			ID:          tool.MakeID(server, strings.ReplaceAll(name, "_", "-")),
			InputSchema: json.RawMessage(`{"properties":{"a":{"type":"string","maxLength":3},"b":{}},"required":["a","b"]}`),
		}, true
	}
	p, err := FromDAG(parsedDAG(t, `{"tasks":[{"id":"t1","tool":"x:get_it"},{"id":"t2","tool":"x:y","arguments":{"a":"z","b":{"$ref":"t1.c[2]"}}}]}`), Options{Resolve: resolve}, false)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := p.Structure.Node("t1"); n.Tool != "x:get-it" {
		t.Errorf("node %+v", n)
	}
	want := structure.Edge{From: "t1", To: "t2", Type: structure.Provides, Coverage: partial, Via: "arg"}
	if !slices.Contains(p.Structure.Edges, want) {
		t.Errorf("edges %+v", p.Structure.Edges)
	}
	if diff := cmp.Diff([]structure.Source{{Node: "t1", Path: "c[2]", Exact: true}}, p.Info["t2"].Args["b"]); diff != "" {
		t.Errorf("sources (-want +got)\n%s", diff)
	}
	if len(p.Parameters) != 1 || string(p.Parameters[0].Schema) != `{"default":"z","maxLength":3,"type":"string"}` {
		t.Errorf("parameters %+v", p.Parameters)
	}
}

// FuzzDAG wants every text to be refused, or to become a program that parses, in which
// each task has its node, with the same identity with and without checkpoints.
func FuzzDAG(f *testing.F) {
	for _, path := range dagPaths(f) {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file(archive, "dag.json"))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := structure.ParseDAG(raw)
		if err != nil {
			wantHint(t, err)
			return
		}
		wantProgram(t, d)
	})
}

// FuzzDAGTask does so for what is written into a program as it is.
func FuzzDAGTask(f *testing.F) {
	f.Add("t-1", "t1.n > 0 // some", "return args.x + results.t1", `{"x":{"$ref":"t1.a[0].b c"},"y":[{"$args":"z"}]}`)
	f.Add("if", "'\u2028' in results && `${t1}`", "} {", `{"$literal":{"__proto__":"\ud800"}}`)
	f.Add("f1", "(a) => { return <T>b /x/ 1 }", "`${a", `{"a":-0.5e-7}`)
	f.Fuzz(func(t *testing.T, id, condition, code, arguments string) {
		d := structure.DAG{Tasks: []structure.DAGTask{
			{ID: "t1", Tool: "x:" + id},
			{ID: id, Code: code, Arguments: json.RawMessage(arguments), DependsOn: []string{"t1"}, OnError: structure.OnErrorContinue},
			{ID: "t2", Capability: code, Condition: condition, DependsOn: []string{"t1"}},
			{ID: "t3", Tool: "x:y", Arguments: json.RawMessage(arguments), DependsOn: []string{id}},
		}}
		wantProgram(t, d)
	})
}

// wantProgram wants a DAG to be refused or to become a program.
func wantProgram(t *testing.T, d structure.DAG) {
	t.Helper()
	p, err := FromDAG(d, Options{}, false)
	if err != nil {
		wantHint(t, err)
		return
	}
	stopping, err := FromDAG(d, Options{}, true)
	if err != nil || stopping.HashExact != p.HashExact || stopping.HashShape != p.HashShape {
		t.Fatalf("with checkpoints: %v", err)
	}
	lifted, err := stopping.Code(CodeOptions{Lift: true, Provided: names(p)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Code{p.plain, stopping.plain, lifted} {
		if c.Nodes == nil || checkSyntax(c.Text, nil) != nil {
			t.Errorf("a text that does not parse, or has no marks:\n%s", c.Text)
		}
	}
	if want := len(d.Layers()) - 1; strings.Count(lifted.Text, "await mcp.$pml.layer({ index:") < want {
		t.Errorf("less than %d checkpoints in\n%s", want, lifted.Text)
	}
	for _, n := range p.Structure.Nodes {
		task, _, _ := strings.Cut(n.ID, ".")
		if _, ok := d.Task(task); !ok && n.Type != structure.Fork && n.Type != structure.Join {
			t.Errorf("node %+v is in no task of\n%s", n, p.Source)
		}
	}
}

func wantHint(t *testing.T, err error) {
	t.Helper()
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Hint == "" || f.Message == "" {
		t.Errorf("error %#v has no hint", err)
	}
}

func BenchmarkFromDAG(b *testing.B) {
	for _, n := range []int{5, 200} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkFromDAG(b, n) })
	}
}

func benchmarkFromDAG(b *testing.B, n int) {
	b.Helper()
	var tasks []string
	for i := range n {
		before := "{}"
		if i >= 10 {
			before = fmt.Sprintf(`{"n": %d, "from": {"$ref": "t%d.items[0].id"}}`, i, i-10)
		}
		tasks = append(tasks, fmt.Sprintf(`{"id":"t%d","tool":"x:y","arguments":%s}`, i, before))
	}
	raw := json.RawMessage(`{"tasks":[` + strings.Join(tasks, ",") + `]}`)
	for b.Loop() {
		d, err := structure.ParseDAG(raw)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := FromDAG(d, Options{}, true); err != nil {
			b.Fatal(err)
		}
	}
}
