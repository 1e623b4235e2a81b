package analysis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// desk answers the calls of a DAG by the tool's name: ok gives what it was given,
// items a list, nothing null; bad fails; pair waits for the other call of its kind.
type desk struct {
	mu    sync.Mutex
	calls []string // node and arguments, in the order in which they began
	ended []string
	pairs int
	both  chan struct{}
}

func newDesk() *desk { return &desk{both: make(chan struct{})} }

// Progress does nothing.
// Log does nothing.
func (*desk) Log(string) {}

func (*desk) Progress(float64, float64, string) {}

// Call answers one call.
func (d *desk) Call(ctx context.Context, c sandbox.Call) (sandbox.Reply, error) {
	d.mu.Lock()
	d.calls = append(d.calls, c.NodeID+" "+string(c.Args))
	if c.Tool == "pair" {
		if d.pairs++; d.pairs == 2 {
			close(d.both)
		}
	}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.ended = append(d.ended, c.NodeID)
		d.mu.Unlock()
	}()
	switch c.Tool {
	case "bad":
		return sandbox.Reply{}, &tool.CallError{Server: c.Server, Tool: c.Tool, Code: "busy", Message: "the tool is busy"}
	case "pair":
		select {
		case <-d.both:
		case <-ctx.Done():
			return sandbox.Reply{}, ctx.Err()
		}
	case "items":
		return sandbox.Reply{Value: json.RawMessage(`{"items":[{"id":1},{"id":2}],"n":2}`)}, nil
	case "nothing":
		return sandbox.Reply{Value: json.RawMessage(`null`)}, nil
	}
	return sandbox.Reply{Value: json.RawMessage(fmt.Sprintf(`{"by":%q,"got":%s}`, c.NodeID, c.Args))}, nil
}

// dagRun is what can be seen of a run.
type dagRun struct {
	Result, Error, Node string
	Calls               []string // sorted, where a layer has several
	path                []string
	desk                *desk
}

func runDAG(t *testing.T, p *Program, o CodeOptions, args string) dagRun {
	t.Helper()
	code, err := p.Code(o)
	if err != nil {
		t.Fatal(err)
	}
	prog := sandbox.Program{
		Source: code.Text, Original: p.Source, Recorder: p.Recorder, Frame: p.Frame, Args: json.RawMessage(args), Position: code.Position,
		Nodes:        map[string]sandbox.NodeKind{},
		Capabilities: map[string]string{"upper": "return { text: String(args.text).toUpperCase() }"},
	}
	for id, kind := range code.Nodes {
		prog.Nodes[id] = sandbox.NodeKind(kind)
	}
	d := newDesk()
	out, err := sharedPool(t).Run(t.Context(), prog, d)
	r := dagRun{Result: string(out.Result), Calls: slices.Sorted(slices.Values(d.calls)), desk: d}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		r.Error, r.Node = fmt.Sprint(f.Code, " ", f.Message), f.NodeID
	} else if err != nil {
		t.Fatal(err)
	}
	own, _ := trace.Split(asTrace(out.Records))
	r.path = trace.Fold(p.Structure, own).IDs
	return r
}

// TestDAGRuns runs DAGs in the sandbox.
func TestDAGRuns(t *testing.T) {
	t.Parallel()
	sharedPool(t)
	tests := map[string]struct {
		tasks string
		args  string
		want  dagRun
	}{
		"references and args": {
			tasks: `{"id":"t1","tool":"x:items"},{"id":"t2","tool":"x:ok","arguments":{"a":[{"b":{"$ref":"t1.items[1].id"}}],"c":{"$args":"user.name"},"d":{"$literal":{"$ref":"t9"}},"e":{"$ref":"t1"}}}`,
			args:  `{"user":{"name":"ann"}}`,
			want: dagRun{
				Result: `{"t2":{"by":"t2","got":{"a":[{"b":2}],"c":"ann","d":{"$ref":"t9"},"e":{"items":[{"id":1},{"id":2}],"n":2}}}}`,
				Calls:  []string{`t1 {}`, `t2 {"a":[{"b":2}],"c":"ann","d":{"$ref":"t9"},"e":{"items":[{"id":1},{"id":2}],"n":2}}`},
			},
		},
		"a layer runs in parallel": {
			tasks: `{"id":"a","tool":"x:pair"},{"id":"b-1","tool":"x:pair"}`,
			want:  dagRun{Result: `{"a":{"by":"a","got":{}},"b-1":{"by":"b-1","got":{}}}`, Calls: []string{`a {}`, `b-1 {}`}},
		},
		"a condition holds, another does not": {
			tasks: `{"id":"t1","tool":"x:items"},` +
				`{"id":"t2","tool":"x:ok","condition":"t1.n > 1 // enough","depends_on":["t1"]},` +
				`{"id":"t-3","tool":"x:ok","condition":"results['t1'].n > 2","depends_on":["t1"]},` +
				`{"id":"t4","tool":"x:ok","depends_on":["t-3"]},` +
				`{"id":"t5","tool":"x:ok","condition":"t4 === undefined && args.on && 'b' in results.t2 === false","depends_on":["t4","t2"]},` +
				`{"id":"t6","code":"return [results['t-3'], results.t1.n]","depends_on":["t-3"],"condition":"true"}`,
			args: `{"on":true}`,
			want: dagRun{Result: `{"t5":{"by":"t5","got":{}},"t6":[null,2]}`, Calls: []string{`t1 {}`, `t2 {}`, `t5 {}`}},
		},
		"null is a result": {
			tasks: `{"id":"t1","tool":"x:nothing","on_error":"skip"},{"id":"t2","tool":"x:ok","arguments":{"a":{"$ref":"t1"}}},{"id":"t3","tool":"x:ok","on_error":"continue","arguments":{"a":{"$ref":"t1.id"}}}`,
			want: dagRun{
				Result: `{"t2":{"by":"t2","got":{"a":null}},"t3":{"error":{"message":"Cannot read properties of null (reading 'id')","code":"runtime_error"}}}`,
				Calls:  []string{`t1 {}`, `t2 {"a":null}`},
			},
		},
		"skip leaves out what follows": {
			tasks: `{"id":"a","tool":"x:bad","on_error":"skip"},{"id":"b","tool":"x:ok","depends_on":["a"]},{"id":"c","tool":"x:ok","depends_on":["b"]},{"id":"d","tool":"x:ok"}`,
			want:  dagRun{Result: `{"c":null,"d":{"by":"d","got":{}}}`, Calls: []string{`a {}`, `d {}`}},
		},
		"continue gives the error": {
			tasks: `{"id":"a","tool":"x:bad","on_error":"continue"},{"id":"b","tool":"x:ok","arguments":{"why":{"$ref":"a.error.message"},"code":{"$ref":"a.error.code"}}}`,
			want: dagRun{
				Result: `{"b":{"by":"b","got":{"code":"busy","why":"the tool is busy"}}}`,
				Calls:  []string{`a {}`, `b {"code":"busy","why":"the tool is busy"}`},
			},
		},
		"fail alone": {
			tasks: `{"id":"a","tool":"x:bad"},{"id":"b","tool":"x:ok","depends_on":["a"]}`,
			want:  dagRun{Error: "tool_failed the tool is busy", Node: "a", Calls: []string{`a {}`}},
		},
		"fail waits for the layer": {
			tasks: `{"id":"a","tool":"x:bad"},{"id":"b","code":"await mcp.x.ok({ n: 1 }); await mcp.x.ok({ n: 2 })"},{"id":"c","tool":"x:ok","depends_on":["a"]}`,
			want:  dagRun{Error: "tool_failed the tool is busy", Node: "a", Calls: []string{`a {}`, `b.n1 {"n":1}`, `b.n2 {"n":2}`}},
		},
		"code and a capability": {
			tasks: `{"id":"t1","code":"const args2 = args.list.map((x) => x * 2);\nargs2","arguments":{"list":[1,2],"more":true}},` +
				`{"id":"t2","capability":"upper","arguments":{"text":{"$ref":"t1[1]"}}},` +
				`{"id":"t3","capability":"upper","arguments":{"text":"abc"},"depends_on":["t1"]},` +
				`{"id":"t4","code":"const results2 = { ...results };\nObject.keys(results2).join() + results.t3.text","depends_on":["t2","t3"]}`,
			want: dagRun{Result: `{"t4":"t1,t2,t3ABC"}`},
		},
		"code names what it declares": {
			tasks: `{"id":"t1","code":"const results = [1];\nconst args = 2;\n{ const fail = 3; results.push(args, fail); }\nresults"}`,
			want:  dagRun{Result: `{"t1":[1,2,3]}`},
		},
		"code gives nothing": {
			tasks: `{"id":"t1","code":"for (;;) break;"},{"id":"t2","code":"for (;;) break;","on_error":"skip"},{"id":"t3","tool":"x:ok","arguments":{"a":{"$ref":"t1"},"b":{"$ref":"t2"}}}`,
			want:  dagRun{Result: `{"t3":{"by":"t3","got":{"b":null}}}`, Calls: []string{`t3 {"b":null}`}},
		},
		"odd names": {
			tasks: `{"id":"if","tool":"x:ok","arguments":{"__proto__":1,"a b":2,"true":true}},{"id":"args","tool":"x:ok","arguments":{"x":{"$ref":"if.got.a b"},"y":{"$ref":"if.got.__proto__"},"f":{"$args":"f[0"}}},` +
				`{"id":"results","tool":"x:ok","arguments":{"x":{"$ref":"args.got"}},"condition":"results.args.by === 'args' && results['if'].got.true && args['f[0']"}`,
			args: `{"f[0":5}`,
			want: dagRun{
				Result: `{"results":{"by":"results","got":{"x":{"f":5,"x":2,"y":1}}}}`,
				Calls:  []string{`args {"f":5,"x":2,"y":1}`, `if {"__proto__":1,"a b":2,"true":true}`, `results {"x":{"f":5,"x":2,"y":1}}`},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fromDAG(t, `{"tasks":[`+tt.tasks+`]}`, false)
			if tt.args == "" {
				tt.args = "{}"
			}
			got := runDAG(t, p, CodeOptions{}, tt.args)
			if diff := cmp.Diff(tt.want, got, cmp.FilterPath(hidden, cmp.Ignore())); diff != "" {
				t.Errorf("(-want +got)\n%s\n%s", diff, p.Source)
			}
		})
	}
}

// hidden are the fields that a test looks at by itself.
func hidden(p cmp.Path) bool {
	f, ok := p.Last().(cmp.StructField)
	return ok && (f.Name() == "path" || f.Name() == "desk")
}

// TestDAGOrder checks that no task begins before its layer does, and that a run's path
// names the tasks.
func TestDAGOrder(t *testing.T) {
	t.Parallel()
	sharedPool(t)
	p := fromDAG(t, `{"tasks":[
		{"id":"e","tool":"x:ok","arguments":{"from":[{"$ref":"c.by"},{"$ref":"d.by"}]}},
		{"id":"c","tool":"x:ok","depends_on":["a","b"]},{"id":"d","tool":"x:ok","depends_on":["b"]},
		{"id":"b","tool":"x:pair"},{"id":"a","tool":"x:pair"}]}`, false)
	r := runDAG(t, p, CodeOptions{}, "{}")
	if want := []string{"f1", "a", "b", "j1", "f2", "c", "d", "j2", "e"}; !slices.Equal(r.path, want) {
		t.Errorf("path %v, want %v", r.path, want)
	}
	var order []string
	for _, c := range r.desk.calls {
		order = append(order, strings.Fields(c)[0])
	}
	for i, layer := range [][]string{{"a", "b"}, {"c", "d"}, {"e"}} {
		if got := slices.Sorted(slices.Values(order[2*i : min(2*i+2, len(order))])); !slices.Equal(got, layer) {
			t.Errorf("calls in the order %v", order)
		}
	}
}

// TestDAGDecisions checks that a run's path has the decisions about tasks.
func TestDAGDecisions(t *testing.T) {
	t.Parallel()
	sharedPool(t)
	p := fromDAG(t, `{"tasks":[{"id":"a","tool":"x:items"},{"id":"b","tool":"x:ok","condition":"a.n > 1","depends_on":["a"]},{"id":"c","tool":"x:ok","condition":"a.n > 2","depends_on":["a"]},
		{"id":"d","tool":"x:ok","depends_on":["b"]},{"id":"e","code":"for (const i of [1, 2]) await mcp.x.ok({ i });\nreturn results.d.by","depends_on":["d"]},{"id":"f","tool":"x:ok","depends_on":["c","e"]}]}`, false)
	r := runDAG(t, p, CodeOptions{}, "{}")
	if want := []string{"a", "f1", "b.d1", "b", "c.d1", "j1", "d.d1", "d", "e.d1", "e.l1", "e.n1", "f.d1"}; !slices.Equal(r.path, want) {
		t.Errorf("path %v, want %v in\n%s", r.path, want, notation(p))
	}
	if r.Result != `{"f":null}` {
		t.Errorf("result %s", r.Result)
	}
}

// TestDAGRunsAgain runs a DAG with other values of its literals.
func TestDAGRunsAgain(t *testing.T) {
	t.Parallel()
	sharedPool(t)
	p := fromDAG(t, `{"tasks":[{"id":"a","tool":"x:ok","arguments":{"path":"/a","n":[1,{"$args":"n"}]}},{"id":"b","code":"return args.most + args.a","arguments":{"most":5,"a":{"$ref":"a.got.n[1]"}}}]}`, true)
	r := runDAG(t, p, CodeOptions{Lift: true, Provided: []string{"path", "n", "most"}}, `{"path":"/b","n":2,"most":7}`)
	want := []string{`?$pml:layer {"index":0,"results":{"a":{"by":"a","got":{"n":[1,2],"path":"/b"}}}}`, `a {"n":[1,2],"path":"/b"}`}
	if diff := cmp.Diff(want, r.Calls); diff != "" || r.Result != `{"b":9}` {
		t.Errorf("result %s, error %s, calls (-want +got)\n%s", r.Result, r.Error, diff)
	}
}

// TestCheckpoints runs a DAG that stops after each layer but the last.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	sharedPool(t)
	p := fromDAG(t, `{"tasks":[{"id":"a","tool":"x:items"},{"id":"b","tool":"x:bad","on_error":"skip"},{"id":"c-1","tool":"x:ok","arguments":{"n":{"$ref":"a.n"}}},{"id":"d","tool":"x:ok","depends_on":["c-1"]}]}`, true)
	r := runDAG(t, p, CodeOptions{}, "{}")
	want := []string{
		`?$pml:layer {"index":0,"results":{"a":{"items":[{"id":1},{"id":2}],"n":2},"b":null}}`,
		`?$pml:layer {"index":1,"results":{"c-1":{"by":"c-1","got":{"n":2}}}}`,
		`a {}`, `b {}`, `c-1 {"n":2}`, `d {}`,
	}
	if diff := cmp.Diff(want, r.Calls); diff != "" || r.Error != "" {
		t.Errorf("error %s, calls (-want +got)\n%s", r.Error, diff)
	}
	if i, j := slices.Index(r.desk.ended, "b"), slices.Index(r.desk.ended, "?$pml:layer"); i > j {
		t.Errorf("a checkpoint before its layer had ended: %v", r.desk.ended)
	}
}
