package structure

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/fault"
)

// dagOf puts tasks into a DAG.
func dagOf(tasks ...string) string { return `{"tasks":[` + strings.Join(tasks, ",") + `]}` }

// chain are n tasks, each of which needs the one before.
func chain(n int) string {
	var tasks []string
	for i := range n {
		before := ""
		if i > 0 {
			before = fmt.Sprintf(`"t%d"`, i-1)
		}
		tasks = append(tasks, fmt.Sprintf(`{"id":"t%d","tool":"a:b","depends_on":[%s]}`, i, before))
	}
	return dagOf(tasks...)
}

func TestParseDAGRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ dag, want string }{
		"nothing":              {``, "the dag: EOF"},
		"no object":            {`[]`, "the dag: this is a JSON array, not an object"},
		"no tasks":             {`{}`, "the dag has no tasks"},
		"null":                 {`null`, "the dag has no tasks"},
		"two values":           {`{} {}`, "the dag: there is something behind the JSON value"},
		"unknown key":          {`{"tasks":[],"steps":[]}`, `the dag: there is no key "steps"`},
		"too many":             {chain(201), "the dag has 201 tasks; the limit is 200"},
		"task of another type": {dagOf(`"t1"`), "tasks[0]: this is a JSON string, not an object"},
		"key of a task":        {dagOf(`{"id":"t1","tool":"a:b","dependsOn":[]}`), `task "t1": there is no key "dependsOn"`},
		"key of another type":  {dagOf(`{"id":"t1","tool":7}`), `task "t1": tool cannot be a JSON number`},
		"no id":                {dagOf(`{"tool":"a:b"}`), `tasks[0]: "" cannot be an id`},
		"odd id":               {dagOf(`{"id":"a.b","tool":"a:b"}`), `tasks[0]: "a.b" cannot be an id`},
		"long id":              {dagOf(`{"id":"` + strings.Repeat("a", 61) + `","tool":"a:b"}`), `cannot be an id`},
		"same id":              {dagOf(`{"id":"a","tool":"a:b"}`, `{"id":"a","tool":"a:b"}`), `task "a" is there twice`},
		"nothing to do":        {dagOf(`{"id":"a"}`), `task "a": it has 0 of tool, capability and code`},
		"too much to do":       {dagOf(`{"id":"a","tool":"a:b","code":"1"}`), `task "a": it has 2 of tool, capability and code`},
		"tool without server":  {dagOf(`{"id":"a","tool":"read"}`), `task "a": "read" is no tool`},
		"tool with a star":     {dagOf(`{"id":"a","tool":"fs:*"}`), `task "a": "fs:*" is no tool`},
		"on_error":             {dagOf(`{"id":"a","tool":"a:b","on_error":"stop"}`), `task "a": on_error cannot be "stop"`},
		"array of arguments":   {dagOf(`{"id":"a","tool":"a:b","arguments":[1]}`), `task "a": arguments is no object`},
		"text as arguments":    {dagOf(`{"id":"a","tool":"a:b","arguments":"x"}`), `task "a": arguments is no object`},
		"literal text":         {dagOf(`{"id":"a","tool":"a:b","arguments":{"$literal":"x"}}`), `task "a": arguments is no object`},
		"key beside $ref":      {dagOf(`{"id":"a","tool":"a:b","arguments":{"x":{"$ref":"a","y":1}}}`), `task "a": an object with $ref has other keys beside it`},
		"$ref of a number":     {dagOf(`{"id":"a","tool":"a:b","arguments":{"x":{"$ref":1}}}`), `task "a": $ref must be a string`},
		"$args of null":        {dagOf(`{"id":"a","tool":"a:b","arguments":{"x":{"$args":null}}}`), `task "a": $args must be a string`},
		"empty $args":          {dagOf(`{"id":"a","tool":"a:b","arguments":{"x":{"$args":""}}}`), `task "a": $args is empty`},
		"empty $ref":           {dagOf(`{"id":"a","tool":"a:b","arguments":{"x":{"$ref":""}}}`), `task "a": $ref "" is no path`},
		"$ref without a task":  {dagOf(`{"id":"a","tool":"a:b","arguments":{"x":{"$ref":"[0]"}}}`), `task "a": $ref "[0]" is no path`},
		"$ref to every":        {dagOf(`{"id":"a","tool":"a:b","arguments":{"x":{"$ref":"b.items[].id"}}}`), `task "a": $ref "b.items[].id" is no path`},
		"$ref not closed":      {dagOf(`{"id":"a","tool":"a:b","arguments":{"x":{"$ref":"b.c[0"}}}`), `task "a": $ref "b.c[0" is no path`},
		"$ref with a bracket":  {dagOf(`{"id":"a","tool":"a:b","arguments":{"x":{"$ref":"b.c]"}}}`), `task "a": $ref "b.c]" is no path`},
		"$ref with two dots":   {dagOf(`{"id":"a","tool":"a:b","arguments":{"x":{"$ref":"b..c"}}}`), `task "a": $ref "b..c" is no path`},
		"$ref with a huge [n]": {dagOf(`{"id":"a","tool":"a:b","arguments":{"x":{"$ref":"b[99999999999]"}}}`), `task "a": $ref "b[99999999999]" is no path`},
		"a number too large":   {dagOf(`{"id":"a","tool":"a:b","arguments":{"x":1e999}}`), `task "a": the number 1e999 is out of range`},
		"nested too deep": {
			dagOf(`{"id":"a","tool":"a:b","arguments":{"x":` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + `}}`),
			`task "a": arguments are nested more than 100 levels deep`,
		},
		"unknown dependency": {dagOf(`{"id":"a","tool":"a:b","depends_on":["b"]}`), `task "a": depends_on names "b", and there is no such task`},
		"own dependency":     {dagOf(`{"id":"a","tool":"a:b","depends_on":["a"]}`), `task "a": depends_on names the task itself`},
		"unknown $ref":       {dagOf(`{"id":"a","tool":"a:b","arguments":{"x":[{"$ref":"b.c"}]}}`), `task "a": a $ref in its arguments is to "b", and there is no such task`},
		"own $ref":           {dagOf(`{"id":"a","tool":"a:b","arguments":{"x":{"$ref":"a"}}}`), `task "a": a $ref in its arguments is to the task itself`},
		"circle": {
			dagOf(`{"id":"x","tool":"a:b","depends_on":["a"]}`, `{"id":"a","tool":"a:b","depends_on":["y","b"]}`, `{"id":"y","tool":"a:b"}`, `{"id":"b","tool":"a:b","arguments":{"x":{"$ref":"a"}}}`),
			"tasks wait for each other in a circle: a → b → a",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseDAG(json.RawMessage(tt.dag))
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Code != fault.InvalidInput || !strings.Contains(f.Message, tt.want) || f.Hint == "" {
				t.Errorf("error %v with hint %q, want %s", err, f.Hint, tt.want)
			}
		})
	}
}

func TestLayers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		dag    string
		layers [][]string
		leaves []string
	}{
		"one": {dagOf(`{"id":"a","tool":"a:b"}`), [][]string{{"a"}}, []string{"a"}},
		"the longest way counts": {
			dagOf(`{"id":"d","tool":"a:b","depends_on":["a","c"]}`, `{"id":"c","tool":"a:b","depends_on":["b"]}`, `{"id":"b","tool":"a:b"}`, `{"id":"a","tool":"a:b"}`),
			[][]string{{"b", "a"}, {"c"}, {"d"}},
			[]string{"d"},
		},
		"a reference is a dependency": {
			dagOf(`{"id":"b","tool":"a:b","arguments":{"x":[{"y":{"$ref":"a.z[3].w"}}]},"depends_on":["a","a"]}`, `{"id":"a","tool":"a:b"}`),
			[][]string{{"a"}, {"b"}},
			[]string{"b"},
		},
		"a literal is none": {
			dagOf(`{"id":"b","tool":"a:b","arguments":{"x":{"$literal":{"$ref":"a"}}}}`, `{"id":"a","tool":"a:b"}`),
			[][]string{{"b", "a"}},
			[]string{"b", "a"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := ParseDAG(json.RawMessage(tt.dag))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.layers, d.Layers()); diff != "" {
				t.Errorf("layers (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tt.leaves, d.Leaves()); diff != "" {
				t.Errorf("leaves (-want +got)\n%s", diff)
			}
		})
	}
	if d, err := ParseDAG(json.RawMessage(chain(200))); err != nil || len(d.Layers()) != 200 {
		t.Errorf("200 tasks: %v", err)
	}
}

func TestArgument(t *testing.T) {
	t.Parallel()
	scalar := func(text string) Argument { return Argument{Kind: ScalarArgument, Scalar: text} }
	object := func(names []string, items ...Argument) Argument {
		return Argument{Kind: ObjectArgument, Names: names, Items: items}
	}
	tests := map[string]struct {
		arguments string
		want      Argument
	}{
		"none":      {"", object(nil)},
		"null":      {"null", object(nil)},
		"empty":     {"{}", object(nil)},
		"scalars":   {`{"b":"<é>","a":-1.50e3,"c":null,"d":true}`, object([]string{"a", "b", "c", "d"}, scalar("-1.50e3"), scalar(`"<é>"`), scalar("null"), scalar("true"))},
		"reference": {`{"$ref":"t-1[0].a b[2]"}`, Argument{Kind: RefArgument, Task: "t-1", Path: []Step{{Index: 0}, {Name: "a b"}, {Index: 2}}}},
		"whole":     {`{"$ref":"t1"}`, Argument{Kind: RefArgument, Task: "t1"}},
		"args":      {`{"$args":"user.name"}`, Argument{Kind: ArgsArgument, Path: []Step{{Name: "user"}, {Name: "name"}}}},
		"odd args":  {`{"$args":"filter[name]"}`, Argument{Kind: ArgsArgument, Path: []Step{{Name: "filter[name]"}}}},
		"literal": {
			`{"x":[{"$literal":{"$ref":"a","$literal":[{"$args":1}]}}]}`,
			object([]string{"x"}, Argument{Kind: ArrayArgument, Items: []Argument{
				object([]string{"$literal", "$ref"}, Argument{Kind: ArrayArgument, Items: []Argument{object([]string{"$args"}, scalar("1"))}}, scalar(`"a"`)),
			}}),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := DAGTask{Arguments: json.RawMessage(tt.arguments)}.Argument()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
