package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// learner runs programs on a folder's real servers and reads what came of them.
type learner struct {
	folder
	session *mcp.ClientSession
}

func newLearner(t *testing.T) learner {
	t.Helper()
	f := newFolder(t)
	return learner{f, connect(t, f.serveHTTP(t))}
}

// outcome is what the tests read of an answer.
type outcome struct {
	Status     string          `json:"status"`
	WorkflowID string          `json:"workflow_id"`
	Result     json.RawMessage `json:"result"`
	Error      *struct {
		Code, Message string
		Line          int
	} `json:"error"`
	ToolFailures []struct{ Tool string } `json:"tool_failures"`
	Capability   *struct {
		ID, Name, State string
		Version         int
		Created         bool
	} `json:"capability"`
	Trace struct {
		ExecutedPath []string                           `json:"executed_path"`
		Decisions    []struct{ NodeID, Outcome string } `json:"decisions"`
	} `json:"trace"`
}

// run runs a program that must not be refused.
func (l learner) run(t *testing.T, code string, args map[string]any) outcome {
	t.Helper()
	return l.call(t, map[string]any{
		"intent": "test: " + firstWords(code), "args": args, "implementation": map[string]any{"type": "code", "code": code},
	})
}

func (l learner) call(t *testing.T, arguments map[string]any) outcome {
	t.Helper()
	var o outcome
	if err := json.Unmarshal(l.raw(t, arguments), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// raw is the structured content of an answer of pml_execute.
func (l learner) raw(t *testing.T, arguments map[string]any) json.RawMessage {
	t.Helper()
	return l.rawContext(t.Context(), t, arguments)
}

func (l learner) rawContext(ctx context.Context, t *testing.T, arguments map[string]any) json.RawMessage {
	t.Helper()
	r, err := l.session.CallTool(ctx, &mcp.CallToolParams{Name: "pml_execute", Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func firstWords(code string) string {
	words := strings.Fields(strings.Map(func(r rune) rune {
		if r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return ' '
	}, code))
	return strings.Join(words[:min(len(words), 6)], " ")
}

// learnt is what capability show says.
type learnt struct {
	Capability struct {
		State        string `json:"state"`
		UsageCount   int    `json:"usage_count"`
		SuccessCount int    `json:"success_count"`
		Structure    struct {
			Nodes []struct{ ID, Type, Tool, Condition string }
		} `json:"static_structure"`
		Learning struct {
			Paths []struct {
				Hash        string
				Path        []string
				Count       int
				SuccessRate float64
			}
			Decisions []struct {
				NodeID, Outcome string
				Count           int
			}
			DominantPath string
			Output       struct{ Count int }
		}
	} `json:"capability"`
	Versions []struct{ Version int } `json:"versions"`
}

func (l learner) show(t *testing.T, name string) learnt {
	t.Helper()
	out, err := l.pml(t.Context(), t, "capability", "show", name, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var k learnt
	if err := json.Unmarshal([]byte(out), &k); err != nil {
		t.Fatal(err)
	}
	return k
}

// branching reads a file if it is there, else makes a folder and the file.
const branching = `
const found = await mcp.filesystem.search_files({ path: args.dir, pattern: args.name });
if (!found.content.startsWith("No matches")) {
  return (await mcp.filesystem.read_text_file({ path: args.dir + "/" + args.name })).content;
} else {
  await mcp.filesystem.create_directory({ path: args.dir + "/made" });
  await mcp.filesystem.write_file({ path: args.dir + "/" + args.name, content: "new" });
}`

func TestThreeRunsTeachTwoPaths(t *testing.T) {
	t.Parallel()
	l := newLearner(t)
	args := map[string]any{"dir": l.files, "name": "d.txt"}
	created := l.run(t, branching, args)
	second := l.run(t, branching, args)
	third := l.run(t, branching, args)
	if string(second.Result) != `"new"` || third.Capability == nil || third.Capability.ID != created.Capability.ID || !created.Capability.Created || third.Capability.Created {
		t.Fatalf("got %+v\n%+v\n%+v", created, second, third)
	}
	if got := strings.Join(created.Trace.ExecutedPath, " "); got != "n1 d1 n3 n4" || created.Trace.Decisions[0].Outcome != "false" {
		t.Errorf("first path: %s %v", got, created.Trace.Decisions)
	}
	if got := strings.Join(second.Trace.ExecutedPath, " "); got != "n1 d1 n2" || second.Trace.Decisions[0].Outcome != "true" {
		t.Errorf("second path: %s %v", got, second.Trace.Decisions)
	}
	k := l.show(t, created.Capability.Name).Capability
	counts := map[string]int{}
	for _, p := range k.Learning.Paths {
		counts[strings.Join(p.Path, " ")] = p.Count
	}
	if len(counts) != 2 || counts["n1 d1 n3 n4"] != 1 || counts["n1 d1 n2"] != 2 {
		t.Errorf("paths: %v", counts)
	}
	// No path has three runs yet: the first one seen is the dominant one.
	if k.Learning.DominantPath != k.Learning.Paths[0].Hash || strings.Join(k.Learning.Paths[0].Path, " ") != "n1 d1 n3 n4" {
		t.Errorf("dominant: %+v", k.Learning)
	}
	for _, d := range k.Learning.Decisions {
		if want := map[string]int{"true": 2, "false": 1}[d.Outcome]; d.NodeID != "d1" || d.Count != want {
			t.Errorf("decision %+v", d)
		}
	}
	if k.State != "active" || k.UsageCount != 3 || k.SuccessCount != 3 || len(k.Structure.Nodes) != 5 {
		t.Errorf("capability: %+v", k)
	}
}

func TestACaughtToolFailureKeepsAProgramFromBeingSaved(t *testing.T) {
	t.Parallel()
	l := newLearner(t)
	const code = `
const list = await mcp.filesystem.list_directory({ path: args.dir });
let text = "none";
try { text = (await mcp.filesystem.read_text_file({ path: args.dir + "/absent.txt" })).content; } catch (e) { console.log(e.name); }
const sum = await mcp.everything.get_sum({ a: 1, b: 2 });
return [list.content.length > 0, text, sum];`
	o := l.run(t, code, map[string]any{"dir": l.files})
	if o.Status != "success" || len(o.ToolFailures) != 1 || o.ToolFailures[0].Tool != "filesystem:read_text_file" {
		t.Fatalf("got %+v", o)
	}
	if o.Capability.State != "candidate" {
		t.Errorf("saved as %s", o.Capability.State)
	}
	out, err := l.pml(t.Context(), t, "trace", "show", o.WorkflowID)
	if err != nil || !strings.Contains(out, "n2#1") || !strings.Contains(out, "1 failed") {
		t.Errorf("trace: %s %v", out, err)
	}
	partial := l.call(t, map[string]any{
		"intent": "the same, saved all the same", "args": map[string]any{"dir": l.files},
		"implementation": map[string]any{"type": "code", "code": code}, "options": map[string]any{"allow_partial": true},
	})
	if partial.Capability.ID != o.Capability.ID || partial.Capability.State != "active" {
		t.Errorf("partial: %+v", partial.Capability)
	}
}

func TestWhatIsTheSameProgram(t *testing.T) {
	t.Parallel()
	l := newLearner(t)
	original := l.run(t, `const names = ["a.txt", "b.txt"];
let total = 0;
for (let i = 0; i < names.length; i++) {
  const { content } = await mcp.filesystem.read_text_file({ path: "`+l.files+`/a.txt", head: 1 });
  total += content.length;
}
return total;`, nil)
	if original.Status != "success" {
		t.Fatalf("got %+v", original)
	}
	variant := func(change ...string) outcome {
		code := `const names = ["a.txt", "b.txt"];
let total = 0;
for (let i = 0; i < names.length; i++) {
  const { content } = await mcp.filesystem.read_text_file({ path: "` + l.files + `/a.txt", head: 1 });
  total += content.length;
}
return total;`
		return l.run(t, strings.NewReplacer(change...).Replace(code), nil)
	}
	for name, c := range map[string]struct {
		change []string
		same   bool
	}{
		"comments and layout":   {[]string{"let total = 0;", "// the sum\nlet   total\n  = 0", "  total +=", "total +="}, true},
		"renamed locals":        {[]string{"total", "sum", "names", "files", "i++", "i++"}, true},
		"snake case to camel":   {[]string{"read_text_file", "readTextFile"}, true},
		"another literal path":  {[]string{"/a.txt\"", "/b.txt\""}, true},
		"another loop bound":    {[]string{"i < names.length", "i < names.length - 1"}, false},
		"another tool argument": {[]string{"head: 1", "tail: 1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := variant(c.change...)
			if o.Status != "success" {
				t.Fatalf("got %+v", o.Error)
			}
			if same := o.Capability.ID == original.Capability.ID; same != c.same {
				t.Errorf("same capability: %v", same)
			}
		})
	}
}

func TestCapabilitiesAreReusedComposedAndMoved(t *testing.T) {
	t.Parallel()
	l := newLearner(t)
	saved := l.call(t, map[string]any{
		"intent": "read the first line of a file", "options": map[string]any{"name": "first_line"},
		"implementation": map[string]any{"type": "code", "code": `const path = "` + l.files + `/a.txt"; return (await mcp.filesystem.read_text_file({ path, head: 1 })).content.trim();`},
	})
	if string(saved.Result) != `"alpha"` || saved.Capability.Name != "first_line" {
		t.Fatalf("got %+v", saved)
	}
	again := l.call(t, map[string]any{
		"intent": "the same of another file", "args": map[string]any{"path": filepath.Join(l.files, "b.txt")},
		"implementation": map[string]any{"type": "capability", "name": "first_line"},
	})
	if string(again.Result) != `"beta"` {
		t.Errorf("with another argument: %+v", again)
	}
	composed := l.run(t, `const all = [];
for (const f of args.files) all.push(await capabilities.first_line({ path: f }));
return all;`, map[string]any{"files": []string{filepath.Join(l.files, "b.txt"), filepath.Join(l.files, "c.txt")}})
	if string(composed.Result) != `["beta","gamma"]` || strings.Join(composed.Trace.ExecutedPath, " ") != "l1 c1" {
		t.Errorf("composed: %+v", composed)
	}
	if k := l.show(t, "first_line").Capability; k.UsageCount != 4 {
		t.Errorf("first_line ran %d times, not 4", k.UsageCount)
	}
	caught := l.run(t, `try { return await capabilities.first_line({ path: args.gone }); } catch { return "caught"; }`,
		map[string]any{"gone": filepath.Join(l.files, "gone.txt")})
	if k := l.show(t, "first_line").Capability; string(caught.Result) != `"caught"` || k.UsageCount != 5 || k.SuccessCount != 4 {
		t.Errorf("after a failure that the caller caught: %+v, %d runs, %d successful", caught, k.UsageCount, k.SuccessCount)
	}
	circle := l.call(t, map[string]any{
		"intent": "a circle", "options": map[string]any{"name": "first_line"},
		"implementation": map[string]any{"type": "code", "code": `return await capabilities.first_line({ path: "x" });`},
	})
	if circle.Error == nil || !strings.Contains(circle.Error.Message, "first_line") {
		t.Errorf("a capability that contains itself: %+v", circle)
	}
	for _, args := range [][]string{
		{"capability", "rename", "first_line", "head_line"},
		{"capability", "export", "head_line", "--file", filepath.Join(l.root, "c.json")},
		{"capability", "retire", "head_line"},
	} {
		if _, err := l.pml(t.Context(), t, args...); err != nil {
			t.Fatal(err)
		}
	}
	retired := l.call(t, map[string]any{"intent": "gone", "implementation": map[string]any{"type": "capability", "name": "first_line"}})
	if retired.Error == nil || retired.Error.Code != "unknown_capability" {
		t.Errorf("a retired one ran: %+v", retired)
	}
	other := l.folder
	other.home = filepath.Join(l.root, "other-home")
	out, err := other.pml(t.Context(), t, "capability", "import", filepath.Join(l.root, "c.json"))
	if err != nil || !strings.Contains(out, "head_line") || !strings.Contains(out, "candidate") {
		t.Errorf("import: %s %v", out, err)
	}
	b, err := os.ReadFile(filepath.Join(l.root, "c.json"))
	if err != nil {
		t.Fatal(err)
	}
	tampered := filepath.Join(l.root, "t.json")
	if err := os.WriteFile(tampered, []byte(strings.ReplaceAll(string(b), "head: 1", "head: 9")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := other.pml(t.Context(), t, "capability", "import", tampered); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("a changed file was imported: %v", err)
	}
}
