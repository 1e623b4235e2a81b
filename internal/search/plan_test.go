package search

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/tool"
)

// candidate writes schemas of strings: "path content? > size", with a question mark
// behind what is not required, output behind the arrow.
func candidate(id string, score float64, fields string) Candidate {
	in, out, _ := strings.Cut(fields, ">")
	return Candidate{tool.ID(id), score, schemaOf(in), schemaOf(out)}
}

func schemaOf(fields string) json.RawMessage {
	if strings.TrimSpace(fields) == "" {
		return nil
	}
	properties, required := map[string]any{}, []string{}
	for f := range strings.FieldsSeq(fields) {
		name, optional := strings.CutSuffix(f, "?")
		properties[name] = map[string]string{"type": "string"}
		if !optional {
			required = append(required, name)
		}
	}
	raw, _ := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required})
	return raw
}

func TestPlan(t *testing.T) {
	t.Parallel()
	observed, inferred := capability.ObservedEdge, capability.InferredEdge
	for name, tc := range map[string]struct {
		edges      []capability.Edge
		candidates []Candidate
		want       string
	}{
		"one tool": {
			nil,
			[]Candidate{candidate("fs:read", 1, "path head? > content")},
			`{"tasks":[{"id":"t1","tool":"fs:read","arguments":{"path":{"$args":"path"}}}]}`,
		},
		"no schemas": {
			nil,
			[]Candidate{{ID: "a:b", Score: 1, Input: json.RawMessage(`{`)}},
			`{"tasks":[{"id":"t1","tool":"a:b","arguments":{}}]}`,
		},
		"a chain by schemas, the best one last": {
			nil,
			[]Candidate{candidate("mail:send", 1, "to body"), candidate("crm:find", 0.8, "name > to"), candidate("git:log", 0.7, "repo > commits")},
			`{"tasks":[{"id":"t1","tool":"crm:find","arguments":{"name":{"$args":"name"}}},` +
				`{"id":"t2","tool":"mail:send","arguments":{"body":{"$args":"body"},"to":{"$ref":"t1.to"}},"depends_on":["t1"]}]}`,
		},
		"what was seen outranks the guess": {
			[]capability.Edge{gives("db:query", "fs:write", observed, "rows[0].text>content", "name>mode", "rows[].x>path")},
			[]Candidate{candidate("db:query", 1, "sql > content name"), candidate("fs:write", 0.9, "path content mode? owner?")},
			`{"tasks":[{"id":"t1","tool":"db:query","arguments":{"sql":{"$args":"sql"}}},` +
				`{"id":"t2","tool":"fs:write","arguments":{"content":{"$ref":"t1.rows[0].text"},"mode":{"$ref":"t1.name"},"path":{"$args":"path"}},"depends_on":["t1"]}]}`,
		},
		"guesses fill no optional arguments": {
			[]capability.Edge{gives("a:x", "a:y", inferred, "p>p", "q>q")},
			[]Candidate{candidate("a:x", 1, "> p q"), candidate("a:y", 1, "p q?")},
			`{"tasks":[{"id":"t1","tool":"a:x","arguments":{}},{"id":"t2","tool":"a:y","arguments":{"p":{"$ref":"t1.p"}},"depends_on":["t1"]}]}`,
		},
		"the whole result": {
			[]capability.Edge{gives("a:x", "a:y", observed, ">p")},
			[]Candidate{candidate("a:x", 1, ""), candidate("a:y", 1, "p")},
			`{"tasks":[{"id":"t1","tool":"a:x","arguments":{}},{"id":"t2","tool":"a:y","arguments":{"p":{"$ref":"t1"}},"depends_on":["t1"]}]}`,
		},
		"a sequence only orders, and names stay apart": {
			[]capability.Edge{followed("fs:read", "fs:delete", 3)},
			[]Candidate{candidate("fs:delete", 1, "path"), candidate("fs:read", 0.9, "path > content")},
			`{"tasks":[{"id":"t1","tool":"fs:read","arguments":{"path":{"$args":"path"}}},` +
				`{"id":"t2","tool":"fs:delete","arguments":{"path":{"$args":"delete_path"}},"depends_on":["t1"]}]}`,
		},
		"a way over another tool orders": {
			[]capability.Edge{followed("a:first", "a:middle", 1), followed("a:middle", "a:last", 1)},
			[]Candidate{candidate("a:last", 1, "x"), candidate("a:first", 1, "y")},
			`{"tasks":[{"id":"t1","tool":"a:first","arguments":{"y":{"$args":"y"}}},{"id":"t2","tool":"a:last","arguments":{"x":{"$args":"x"}},"depends_on":["t1"]}]}`,
		},
		"branches that join": {
			nil,
			[]Candidate{candidate("a:join", 1, "left right"), candidate("a:left", 0.9, "> left"), candidate("a:right", 0.8, "> right")},
			`{"tasks":[{"id":"t1","tool":"a:left","arguments":{}},{"id":"t2","tool":"a:right","arguments":{}},` +
				`{"id":"t3","tool":"a:join","arguments":{"left":{"$ref":"t1.left"},"right":{"$ref":"t2.right"}},"depends_on":["t1","t2"]}]}`,
		},
		"a circle is cut at its weakest link": {
			[]capability.Edge{gives("a:1", "a:2", observed, "p>p"), gives("a:2", "a:3", observed, "p>p"), followed("a:3", "a:1", 9)},
			[]Candidate{candidate("a:3", 1, "p > p"), candidate("a:2", 0.9, "p > p"), candidate("a:1", 0.8, "start > p")},
			`{"tasks":[{"id":"t1","tool":"a:1","arguments":{"start":{"$args":"start"}}},{"id":"t2","tool":"a:2","arguments":{"p":{"$ref":"t1.p"}},"depends_on":["t1"]},` +
				`{"id":"t3","tool":"a:3","arguments":{"p":{"$ref":"t2.p"}},"depends_on":["t2"]}]}`,
		},
		"far below the best": {
			nil,
			[]Candidate{candidate("a:x", 1, "p"), candidate("a:y", 0.4, "> p")},
			`{"tasks":[{"id":"t1","tool":"a:x","arguments":{"p":{"$args":"p"}}}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan, ok := knowledge(t, tc.edges).Plan(tc.candidates)
			got, err := json.Marshal(plan)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, ok := knowledge(t, nil).Plan(nil); ok {
		t.Error("a plan of nothing")
	}
	var none *Knowledge
	if plan, ok := none.Plan([]Candidate{candidate("a:x", 1, "p"), candidate("a:y", 1, "> p")}); !ok || len(plan.Tasks) != 2 {
		t.Error(plan)
	}
}

// TestPlanCanRun: whatever is known, a plan is small, its tasks come after what they
// need, every required argument has a source, and the order of the input does not matter.
func TestPlanCanRun(t *testing.T) {
	t.Parallel()
	names := rapid.SampledFrom([]string{"path", "content", "id", "name", "p?", "q?", "content?"})
	fields := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfNDistinct(names, 0, 4, func(n string) string { return strings.TrimSuffix(n, "?") }).Draw(t, "fields"), " ")
	})
	tools := rapid.SampledFrom([]string{"a:1", "a:2", "b:1", "b:2", "c:1", "c:2", "d:1", "d:2"})
	edge := rapid.Custom(func(t *rapid.T) capability.Edge {
		from, to := tools.Draw(t, "from"), tools.Draw(t, "to")
		source := rapid.SampledFrom([]capability.EdgeSource{capability.ObservedEdge, capability.InferredEdge}).Draw(t, "source")
		if rapid.Bool().Draw(t, "flow") {
			path := rapid.SampledFrom([]string{"", "x", "items[0].id", "items[].id", "a..b", "[0]", "x[", "x[y]"}).Draw(t, "path")
			return gives(from, to, source, path+">"+strings.TrimSuffix(names.Draw(t, "to"), "?"))
		}
		return capability.NewEdge(from, to, capability.Sequence, source)
	})
	rapid.Check(t, func(t *rapid.T) {
		edges := rapid.SliceOfNDistinct(edge, 0, 25, func(e capability.Edge) string { return e.From + ">" + e.To + string(e.Type) }).Draw(t, "edges")
		var candidates []Candidate
		required := map[tool.ID][]string{}
		for _, id := range rapid.SliceOfNDistinct(tools, 1, 8, rapid.ID[string]).Draw(t, "tools") {
			c := candidate(id, rapid.Float64Range(0, 1).Draw(t, "score"), fields.Draw(t, "in")+" > "+fields.Draw(t, "out"))
			candidates = append(candidates, c)
			required[c.ID] = newStep(c).input.Required
		}
		plans := make([]Plan, 2)
		for i := range plans {
			k, err := NewKnowledge(rapid.Permutation(edges).Draw(t, "edges"), nil)
			if err != nil {
				t.Fatal(err)
			}
			plans[i], _ = k.Plan(rapid.Permutation(candidates).Draw(t, "candidates"))
		}
		if diff := cmp.Diff(plans[0], plans[1]); diff != "" {
			t.Fatal(diff)
		}
		checkPlan(t, plans[0], required)
	})
}

func checkPlan(t *rapid.T, p Plan, required map[tool.ID][]string) {
	t.Helper()
	if len(p.Tasks) == 0 || len(p.Tasks) > mostTasks {
		t.Fatalf("%d tasks", len(p.Tasks))
	}
	done, used, args := []string{}, map[tool.ID]bool{}, map[string]bool{}
	for i, task := range p.Tasks {
		if task.ID != fmt.Sprintf("t%d", i+1) || used[task.Tool] {
			t.Fatalf("task %d: %+v", i, task)
		}
		used[task.Tool] = true
		for _, before := range task.DependsOn {
			if !slices.Contains(done, before) {
				t.Fatalf("%s waits for %s", task.ID, before)
			}
		}
		for _, name := range required[task.Tool] {
			if _, ok := task.Arguments[name]; !ok {
				t.Fatalf("%s has no %s", task.ID, name)
			}
		}
		for name, a := range task.Arguments {
			giver, path, _ := strings.Cut(a.Ref, ".")
			switch {
			case a.Ref != "" && (a.Args != "" || !slices.Contains(task.DependsOn, giver) || strings.ContainsAny(path, "[") && !strings.Contains(path, "[0]")):
				t.Fatalf("%s.%s: %+v", task.ID, name, a)
			case a.Ref == "" && (a.Args == "" || args[a.Args]):
				t.Fatalf("%s.%s: %+v", task.ID, name, a)
			}
			args[a.Args] = a.Args != ""
		}
		done = append(done, task.ID)
	}
}
