package trace

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/structure"
)

// example is one program of testdata/paths.txt with its runs.
type example struct {
	name      string
	structure structure.Structure
	runs      []exampleRun
}

type exampleRun struct {
	records                 []Record
	path, decisions, counts string
}

func readExamples(tb testing.TB) []*example {
	tb.Helper()
	text, err := os.ReadFile("testdata/paths.txt")
	if err != nil {
		tb.Fatal(err)
	}
	var all []*example
	for line := range strings.Lines(string(text)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		var e *example
		if len(all) > 0 {
			e = all[len(all)-1]
		}
		switch word {
		case "", "#":
		case "nodes":
			e.structure.Nodes = nodesOf(rest)
		case "in":
			e.structure.Edges = insideOf(tb, rest)
		case "run":
			e.runs = append(e.runs, exampleRun{records: recordsOf(tb, rest)})
		case "path":
			e.runs[len(e.runs)-1].path = rest
		case "decisions":
			e.runs[len(e.runs)-1].decisions = rest
		case "counts":
			e.runs[len(e.runs)-1].counts = rest
		default:
			if !strings.HasPrefix(line, "#") {
				all = append(all, &example{name: word})
			}
		}
	}
	return all
}

var kinds = map[byte]structure.NodeType{
	'n': structure.Task, 'd': structure.Decision, 'c': structure.Capability,
	'l': structure.Loop, 'f': structure.Fork, 'j': structure.Join,
}

func nodesOf(list string) []structure.Node {
	var nodes []structure.Node
	for word := range strings.FieldsSeq(list) {
		id, ref := strings.CutSuffix(word, "*")
		nodes = append(nodes, structure.Node{ID: id, Type: kinds[id[0]], Ref: ref, Condition: "if " + id})
	}
	return nodes
}

func insideOf(tb testing.TB, list string) []structure.Edge {
	tb.Helper()
	var edges []structure.Edge
	for word := range strings.FieldsSeq(list) {
		from, to, _ := strings.Cut(word, ">")
		to, number, numbered := strings.Cut(to, "#")
		e := structure.Edge{From: from, To: to, Type: structure.Contains}
		if numbered {
			branch, err := strconv.Atoi(number)
			if err != nil {
				tb.Fatal(err)
			}
			e.Branch = &branch
		}
		edges = append(edges, e)
	}
	return edges
}

// recordsOf reads the notation that testdata/paths.txt explains.
func recordsOf(tb testing.TB, text string) []Record {
	tb.Helper()
	var records []Record
	parents := []int{0} // of each frame
	passes := map[string]int{}
	at := 0
	for word := range strings.FieldsSeq(text) {
		r := Record{Seq: len(records), Frame: at}
		switch c := word[0]; c {
		case ']', ')':
			at = parents[at]
			continue
		case '@':
			n, err := strconv.Atoi(word[1:])
			if err != nil {
				tb.Fatal(err)
			}
			at = n
			continue
		case '[', '(':
			r.Parent, r.Frame, r.Type = at, len(parents), FrameOpened
			rest := word[1:]
			switch {
			case c == '[':
				key := fmt.Sprint(at, rest)
				r.Type, r.ID, r.Index = Iteration, rest, passes[key]
				passes[key]++
			case strings.HasPrefix(rest, "p"):
				r.Parent, _ = strconv.Atoi(rest[1:])
			case strings.HasPrefix(rest, "c:"):
				r.Capability = rest[2:]
			case rest != "":
				fork, branch, _ := strings.Cut(rest, "#")
				r.Region = fork
				r.Branch, _ = strconv.Atoi(branch)
			}
			parents = append(parents, r.Parent)
			at = r.Frame
		default:
			id, outcome, _ := strings.Cut(word, "=")
			r.ID, r.Outcome = id, outcome
			r.Type = map[byte]RecordType{'d': DecisionSet, 'l': LoopEntered, 'f': ForkOpened, 'j': ForkJoined}[c]
			if r.Type == "" {
				r.Type, r.Tool = CallEvent, strings.TrimPrefix(id, "?")
				if c == 'c' {
					r.ID, r.Tool = id[:2], "capability:"+id[2:]
				}
			}
		}
		records = append(records, r)
	}
	return records
}

func decisionsText(list []Decision) string {
	var out []string
	for _, d := range list {
		out = append(out, d.NodeID+"="+d.Outcome)
	}
	return strings.Join(out, " ")
}

// countsText writes each region with the iterations of its runs: "l1×2/3".
func countsText(regions []RegionRun) string {
	var ids []string
	counts := map[string][]string{}
	for _, r := range regions {
		if !slices.Contains(ids, r.ID) {
			ids = append(ids, r.ID)
		}
		counts[r.ID] = append(counts[r.ID], strconv.Itoa(r.Iterations))
	}
	for i, id := range ids {
		ids[i] = id + "×" + strings.Join(counts[id], "/")
	}
	return strings.Join(ids, " ")
}

func TestFoldExamples(t *testing.T) {
	t.Parallel()
	examples := readExamples(t)
	if len(examples) < 44 {
		t.Fatalf("read %d examples", len(examples))
	}
	for _, e := range examples {
		for i, run := range e.runs {
			t.Run(fmt.Sprint(e.name, "/", i), func(t *testing.T) {
				t.Parallel()
				p := Fold(e.structure, run.records)
				got := []string{strings.Join(p.IDs, " "), decisionsText(p.Decisions), countsText(p.Regions)}
				if diff := cmp.Diff([]string{run.path, run.decisions, run.counts}, got); diff != "" {
					t.Error(diff)
				}
				if !p.Exact || len(p.Hash) != 32 {
					t.Errorf("exact %t, hash %q", p.Exact, p.Hash)
				}
			})
		}
	}
}

// TestHashTellsPathsApart: two runs of a program have the same hash exactly when
// ids and outcomes are the same.
func TestHashTellsPathsApart(t *testing.T) {
	t.Parallel()
	for _, e := range readExamples(t) {
		if len(e.runs) != 2 {
			continue
		}
		a, b := Fold(e.structure, e.runs[0].records), Fold(e.structure, e.runs[1].records)
		same := e.runs[0].path == e.runs[1].path && e.runs[0].decisions == e.runs[1].decisions
		if (a.Hash == b.Hash) != same {
			t.Errorf("%s: hashes %s and %s, same path %t", e.name, a.Hash, b.Hash, same)
		}
	}
}

func TestFoldCutsLongPaths(t *testing.T) {
	t.Parallel()
	long := func(n int) Path {
		records := make([]Record, n)
		for i := range records {
			records[i] = Record{Type: DecisionSet, ID: "d1", Outcome: strconv.Itoa(i)}
		}
		return Fold(structure.Structure{}, records)
	}
	a, b := long(700), long(701)
	if len(a.IDs) != 500 || len(a.Decisions) != 500 {
		t.Errorf("%d ids and %d decisions, want 500", len(a.IDs), len(a.Decisions))
	}
	if a.Hash == b.Hash {
		t.Error("the hash does not cover what was cut off")
	}
}

// TestFoldBoundsRecursion: frames as deep as the records allow end soon, and
// still give paths that can be told apart.
func TestFoldBoundsRecursion(t *testing.T) {
	t.Parallel()
	s := structure.Structure{Nodes: nodesOf("l1 n1"), Edges: insideOf(t, "l1>n1")}
	deep := func(n int) Path {
		var records []Record
		for i := range n {
			records = append(records, Record{Type: Iteration, ID: "l1", Frame: i + 1, Parent: i}, Record{Type: CallEvent, ID: "n1", Frame: i + 1})
		}
		return Fold(s, records)
	}
	a, b := deep(1500), deep(1501)
	if a.Hash == b.Hash || len(a.IDs) != maxPath || slices.Contains(a.IDs, "…") {
		t.Errorf("hashes %s and %s, %d ids", a.Hash, b.Hash, len(a.IDs))
	}
	size := 0
	for _, r := range a.Regions {
		for _, v := range r.Variants {
			size += len(v.Path)
		}
	}
	if size > variantBytes || len(a.Regions) > mostRegions {
		t.Errorf("%d regions with %d bytes", len(a.Regions), size)
	}
}

func TestFoldWithoutNodes(t *testing.T) {
	t.Parallel()
	p := Fold(structure.Structure{}, recordsOf(t, "?fs:read ?fs:write"))
	byCalls := FoldCalls([]Call{{Tool: "fs:read"}, {Tool: "fs:write"}})
	if p.Exact || byCalls.Exact {
		t.Error("a path of names only is taken for exact")
	}
	if diff := cmp.Diff(p, byCalls); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"?fs:read", "?fs:write"}, p.IDs); diff != "" {
		t.Error(diff)
	}
}

func TestVariants(t *testing.T) {
	t.Parallel()
	e := readExamples(t)[10] // E11
	p := Fold(e.structure, e.runs[0].records)
	want := []RegionRun{{ID: "l1", Iterations: 3, Variants: []Variant{{"n2 d1:true n3", 2}, {"n2 d1:false", 1}}}}
	if diff := cmp.Diff(want, p.Regions); diff != "" {
		t.Error(diff)
	}
	var tr Trace
	p.Put(&tr)
	if string(tr.Loops) != `[{"id":"l1","iterations":3,"variants":[{"path":"n2 d1:true n3","count":2},{"path":"n2 d1:false","count":1}]}]` {
		t.Errorf("loops %s", tr.Loops)
	}
	if tr.Decisions[0].Condition != "if d1" {
		t.Errorf("decision %+v", tr.Decisions[0])
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	records := recordsOf(t, "n1 c1outer (c:outer n1 c1inner (c:inner n1 [l1 n2 ] ) n2 ) c2inner (c:inner n1 ) n2")
	own, inner := Split(records)
	if p := Fold(structure.Structure{}, own); strings.Join(p.IDs, " ") != "n1 c1 c2 n2" {
		t.Errorf("own path %v", p.IDs)
	}
	if p := Fold(structure.Structure{}, records); strings.Join(p.IDs, " ") != "n1 c1 c2 n2" || !p.Exact {
		t.Errorf("path of all %v", p.IDs)
	}
	type brief struct {
		Name, Node string
		Caller     int
		Path       string
	}
	var got []brief
	for _, c := range inner {
		got = append(got, brief{c.Name, c.NodeID, c.Caller, strings.Join(Fold(structure.Structure{}, c.Records).IDs, " ")})
	}
	want := []brief{{"outer", "c1", -1, "n1 c1 n2"}, {"inner", "c1", 0, "n1 l1 n2"}, {"inner", "c2", -1, "n1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ nodes, in, run, want string }{
		"loop":            {"n1 l1 n2 n3", "l1>n2", "n1 l1 [l1 n2 ] [l1 n2 ] n3", "n1#1 n2#1@l1/0 n2#2@l1/1 n3#1"},
		"loop's head":     {"n1 l1 n2", "l1>n1 l1>n2", "n1 l1 [l1 n2 ] n1 l1", "n1#1@l1 n2#1@l1/0 n1#2@l1"},
		"branches":        {"f1 n1 n2 j1", "f1>n1#0 f1>n2#1", "f1 n1 n2 j1", "n1#1@f1 n2#1@f1"},
		"helper":          {"n1 n2 f1 j1", "", "n2 f1 [f1 ( n1 @0 [f1 ( n1", "n2#1 n1#1@f1/0 n1#2@f1/1"},
		"helper's branch": {"l1 n1 f1", "l1>n1", "f1 (f1#1 l1 [l1 n1 ] n2", "n1#1@l1/0 n2#1@f1"},
		"capability":      {"c1 n1", "", "c1x (c:x n1 ) n1", "c1#1 n1#1"},
		"unknown":         {"", "", "?fs:read ?fs:read", "?fs:read#1 ?fs:read#2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := structure.Structure{Nodes: nodesOf(tt.nodes), Edges: insideOf(t, tt.in)}
			var got []string
			for _, p := range Places(s, recordsOf(t, tt.run)) {
				text := fmt.Sprint(p.NodeID, "#", p.Occurrence)
				if p.ParentNode != "" {
					text += "@" + p.ParentNode
				}
				if p.Iteration != nil {
					text += fmt.Sprint("/", *p.Iteration)
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzFold: records come from a child process, so any of them must do no harm.
func FuzzFold(f *testing.F) {
	for _, e := range readExamples(f) {
		for _, r := range e.runs {
			f.Add(fmt.Sprint(r.records))
		}
	}
	f.Add("[l1 n1 ] (f1#1 j1 f1 l2 (p9 @7 n1")
	s := structure.Structure{Nodes: nodesOf("n1 n2* l1 l2 f1 j1 d1"), Edges: insideOf(f, "l1>l2 l2>l1 f1>n1#0 l1>n2 f1>f1")}
	f.Fuzz(func(t *testing.T, text string) {
		var records []Record
		for i := 0; i+4 < len(text); i += 5 {
			b := text[i : i+5]
			types := []RecordType{FrameOpened, Iteration, CallEvent, DecisionSet, LoopEntered, ForkOpened, ForkJoined}
			ids := []string{"n1", "n2", "l1", "l2", "f1", "j1", "d1", ""}
			records = append(records, Record{
				Type: types[int(b[0])%len(types)], ID: ids[int(b[1])%len(ids)], Frame: int(b[2]) % 8, Parent: int(b[3]) % 8,
				Region: ids[int(b[4])%len(ids)], Branch: int(b[4]) - 100,
			})
		}
		p := Fold(s, records)
		Places(s, records)
		Split(records)
		if len(p.IDs) > maxPath {
			t.Errorf("%d ids", len(p.IDs))
		}
	})
}

// BenchmarkFold has as many records as a run may have: one long loop, and a
// recursion as deep as they allow.
func BenchmarkFold(b *testing.B) {
	const most = 20_000
	s := structure.Structure{Nodes: nodesOf("l1 n1 d1"), Edges: insideOf(b, "l1>n1 l1>d1")}
	var flat, deep []Record
	for i := 0; len(flat) < most; i++ {
		flat = append(flat, Record{Type: Iteration, ID: "l1", Frame: i + 1}, Record{Type: CallEvent, ID: "n1", Frame: i + 1},
			Record{Type: DecisionSet, ID: "d1", Outcome: strconv.Itoa(i % 7), Frame: i + 1})
	}
	for i := 0; len(deep) < most; i++ {
		deep = append(deep, Record{Type: Iteration, ID: "l1", Frame: i + 1, Parent: i}, Record{Type: CallEvent, ID: "n1", Frame: i + 1})
	}
	for name, records := range map[string][]Record{"loop": flat, "recursion": deep} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Fold(s, records)
			}
		})
	}
}
