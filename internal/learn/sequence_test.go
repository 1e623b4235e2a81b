package learn

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// timed reads calls as "node:from-to", in the order of their starts; "n1@f1/2" was
// made in pass 2 of f1. A node's tool is named like it, with capital letters.
func timed(text string) []trace.Call {
	base := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	var out []trace.Call
	for i, word := range strings.Fields(text) {
		place, times, _ := strings.Cut(word, ":")
		var from, to int
		_, _ = fmt.Sscanf(times, "%d-%d", &from, &to)
		node, region, inRegion := strings.Cut(place, "@")
		c := trace.Call{
			NodeID: node, Occurrence: i + 1, Seq: i, Tool: tool.MakeID("s", strings.ToUpper(node)), Status: trace.CallOK,
			StartedAt: base.Add(time.Duration(from) * time.Millisecond), Duration: time.Duration(to-from) * time.Millisecond,
		}
		if inRegion {
			name, pass, inPass := strings.Cut(region, "/")
			c.ParentNode = name
			if k := number(pass); inPass {
				c.Iteration = &k
			}
		}
		out = append(out, c)
	}
	return out
}

func number(text string) (n int) { _, _ = fmt.Sscan(text, &n); return n }

// inside reads "f1>n1#0 l1>n2".
func inside(text string) structure.Structure {
	var s structure.Structure
	seen := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		from, to, _ := strings.Cut(word, ">")
		to, index, numbered := strings.Cut(to, "#")
		e := structure.Edge{From: from, To: to, Type: structure.Contains}
		if branch := number(index); numbered {
			e.Branch = &branch
		}
		s.Edges = append(s.Edges, e)
		for _, id := range []string{from, to} {
			if !seen[id] {
				kind := map[byte]structure.NodeType{'n': structure.Task, 'f': structure.Fork, 'l': structure.Loop}[id[0]]
				s.Nodes = append(s.Nodes, structure.Node{ID: id, Type: kind})
			}
			seen[id] = true
		}
	}
	return s
}

func TestSequenceEdges(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, calls, want string }{
		"one after the other": {"", "n1:0-10 n2:10-20 n3:25-30", "N1>N2×1 N2>N3×1"},
		"one tool twice":      {"", "n1:0-10 n1:10-20", ""},
		"at the same time":    {"", "n1:0-10 n2:5-15", ""},
		"before and after a fork": {
			"f1>n2#0 f1>n3#1", "n1:0-10 n2:10-20 n3:10-15 n4:20-30",
			"N1>N2×1 N1>N3×1 N2>N4×1 N3>N4×1",
		},
		"branches that did not overlap": {
			"f1>n2#0 f1>n3#1", "n1:0-10 n2:10-11 n3:12-13 n4:20-30",
			"N1>N2×1 N1>N3×1 N2>N4×1 N3>N4×1",
		},
		"a longer branch": {
			"f1>n2#0 f1>n3#0 f1>n4#1", "n1:0-1 n2:1-5 n4:1-2 n3:5-9 n5:9-10",
			"N1>N2×1 N1>N4×1 N2>N3×1 N3>N5×1 N4>N5×1",
		},
		"passes of a map": {
			"f1>n2#0 f1>n3#0", "n1:0-1 n2@f1/0:1-2 n2@f1/1:1-4 n3@f1/0:2-3 n3@f1/1:4-5 n4:5-6",
			"N1>N2×2 N2>N3×2 N3>N4×2",
		},
		"passes of a loop":          {"l1>n2 l1>n3", "n1:0-1 n2@l1/0:1-2 n3@l1/0:2-3 n2@l1/1:3-4 n3@l1/1:4-5", "N1>N2×1 N2>N3×2 N3>N2×1"},
		"helpers in a map's passes": {"", "n2@f1/0:1-2 n3@f1/1:3-4", "N2>N3×1"},
		"a fork in a fork's passes": {
			"f1>f2#0 f2>n1#0 f2>n2#1", "n1@f2:0-1 n2@f2:2-3", "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := capability.Capability{ID: uuid.New(), Structure: inside(tt.in)}
			var got []string
			for _, e := range Edges(trace.Trace{Calls: timed(tt.calls)}, &c) {
				if e.Type == capability.Sequence {
					got = append(got, fmt.Sprintf("%s>%s×%d", e.From[2:], e.To[2:], e.Count))
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCapabilitiesStandAmongTheCalls(t *testing.T) {
	t.Parallel()
	worked, failed := uuid.New(), uuid.New()
	calls := timed("n1:0-10 n2:30-40")
	child := func(id uuid.UUID, success bool) trace.Child {
		return trace.Child{Capability: id, Seq: 1, Success: success, StartedAt: calls[0].StartedAt.Add(15 * time.Millisecond), Duration: 10 * time.Millisecond}
	}
	want := []string{"s:N1 " + worked.String(), worked.String() + " s:N2"}
	slices.Sort(want)
	var got []string
	for _, e := range Edges(trace.Trace{Calls: calls, Children: []trace.Child{child(failed, false), child(worked, true)}}, nil) {
		got = append(got, e.From+" "+e.To)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCallsThatWereNotMadeAreNoEdges(t *testing.T) {
	t.Parallel()
	calls := timed("n1:0-1 n2:2-3 n3:4-5 n4:6-7")
	calls[1].Status, calls[1].Error = trace.CallError, fault.New(fault.UnknownTool, "no such tool")
	calls[2].Status, calls[2].Error = trace.CallError, fault.New(fault.ToolFailed, "it said no")
	calls[3].Status = trace.CallStarted
	edges := Edges(trace.Trace{Calls: calls}, nil)
	if len(edges) != 1 || edges[0].From != "s:N1" || edges[0].To != "s:N3" {
		t.Errorf("edges %+v", edges)
	}
}

func TestObservedFlows(t *testing.T) {
	t.Parallel()
	c := capability.Capability{
		ID: uuid.New(),
		Structure: structure.Structure{Edges: []structure.Edge{
			{From: "n1", To: "n2", Type: structure.Provides, Coverage: "strict", Via: "arg"},
			{From: "n1", To: "n3", Type: structure.Provides, Coverage: "optional", Via: "guard"},
			{From: "n1", To: "n4", Type: structure.Provides, Coverage: "strict", Via: "arg"},
		}},
		Info: map[string]structure.Info{"n2": {Args: map[string][]structure.Source{
			"text":  {{Node: "n1", Path: "content", Exact: true}, {Node: "$x", Path: ""}},
			"title": {{Node: "n1", Path: "meta.title"}},
		}}},
	}
	var got []capability.Edge
	for _, e := range Edges(trace.Trace{Calls: timed("n1:0-1 n2:1-2 n3:2-3")}, &c) {
		if e.Type == capability.Provides {
			got = append(got, e)
		}
	}
	want := []capability.Edge{{
		From: "s:N1", To: "s:N2", Type: capability.Provides, Source: capability.ObservedEdge, Count: 1, Weight: 0.7, Coverage: tool.Strict,
		FieldMapping: []tool.FieldMapping{{From: "content", To: "text", TypeCompatible: true}, {From: "meta.title", To: "title", TypeCompatible: true}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestInferProvides(t *testing.T) {
	t.Parallel()
	object := func(required string, names ...string) json.RawMessage {
		var p []string
		for _, n := range names {
			p = append(p, fmt.Sprintf(`%q:{"type":"string"}`, n))
		}
		return fmt.Appendf(nil, `{"type":"object","properties":{%s},"required":[%s]}`, strings.Join(p, ","), required)
	}
	learnt, err := tool.ShapeOf(json.RawMessage(`{"url":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	tools := []tool.Tool{
		{ID: "s:find", OutputSchema: object(``, "path", "size"), InputSchema: object(`"query"`, "query")},
		{ID: "s:read", InputSchema: object(`"path"`, "path", "encoding")},
		{ID: "s:copy", InputSchema: object(`"path","to"`, "path", "to")},
		{ID: "s:fetch", InputSchema: object(`"url"`, "url")},
	}
	var got []string
	for _, e := range InferProvides(tools, map[tool.ID]tool.Observed{"s:read": {Shape: learnt, Count: 3}}) {
		got = append(got, fmt.Sprintf("%s>%s %s %.2f", e.From, e.To, e.Coverage, e.Weight))
	}
	want := []string{"s:find>s:copy partial 0.49", "s:find>s:read strict 0.49", "s:read>s:fetch strict 0.49"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestInvocationsAreCut(t *testing.T) {
	t.Parallel()
	var calls []trace.Call
	for i := range 600 {
		calls = append(calls, trace.Call{Tool: "s:a", Seq: i, Status: trace.CallOK})
	}
	kept, dropped := invocations(calls)
	if len(kept) != 500 || dropped != 100 || kept[499].ID != "a#499" {
		t.Errorf("%d kept, %d dropped, last %+v", len(kept), dropped, kept[len(kept)-1])
	}
}

// BenchmarkPrepare has a run with as many calls as are looked at.
func BenchmarkPrepare(b *testing.B) {
	var calls []trace.Call
	base := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for i := range 500 {
		calls = append(calls, trace.Call{
			NodeID: "n1", Seq: i, Tool: tool.MakeID("s", strconv.Itoa(i%20)), Status: trace.CallOK, Result: json.RawMessage(`{"a":1,"b":[{"c":"x"}]}`),
			StartedAt: base.Add(time.Duration(i) * time.Millisecond), Duration: time.Millisecond,
		})
	}
	c := capability.Capability{ID: uuid.New()}
	for b.Loop() {
		Prepare(trace.Trace{Calls: calls}, &c, Options{})
	}
}
