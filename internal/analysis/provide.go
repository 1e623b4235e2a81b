package analysis

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
)

// whole is the argument path of an argument that is no object literal.
const whole = "*"

// argumentsOf says for each path into an event's first argument where the value
// there comes from.
func (d *data) argumentsOf(v *vertex) map[string][]structure.Source {
	out := map[string][]structure.Source{}
	var collect func(path string, of *value, depth int)
	collect = func(path string, of *value, depth int) {
		if len(of.sources) > 0 || of.empty() && path != "" {
			key := cmp.Or(path, whole)
			out[key] = append(out[key], of.sources...)
		}
		if depth > maxValueDepth {
			return
		}
		for _, k := range of.names() {
			switch {
			case k == "..." && path == "":
				collect(whole, of.fields[k], depth+1)
			case k == "...":
				collect(path, of.fields[k], depth+1)
			default:
				collect(join(path, k), of.fields[k], depth+1)
			}
		}
	}
	collect("", d.passedTo(v), 0)
	for k, sources := range out {
		out[k] = sorted(sources)
	}
	return out
}

// passedTo is the value of an event's first argument.
func (d *data) passedTo(v *vertex) *value {
	if v.Ref {
		p := d.parent(v.syntax)
		if p >= 0 && d.kind(p) == "arguments" {
			if it, ok := d.iterationAt(d.parent(p)); ok {
				return d.eval(it.receiver).get("[]")
			}
		}
		return nothing
	}
	args := d.arguments(v.syntax)
	callee := d.unwrap(d.field(v.syntax, "function"))
	if len(args) > 1 && d.kind(callee) == "member_expression" && d.text(d.field(callee, "property")) == "call" {
		args = args[1:]
	}
	if len(args) == 0 {
		return nothing
	}
	return d.eval(args[0])
}

// topKey is the first key of an argument path.
func topKey(path string) string {
	if i := strings.IndexAny(path, ".["); i > 0 {
		return path[:i]
	}
	return path
}

// pair is a source and a target of a provides edge.
type pair struct{ from, to string }

// provide makes the provides edges, in order.
func (d *data) provide(edges []structure.Edge) []structure.Edge {
	found := map[pair]structure.Edge{}
	for _, v := range d.vertices {
		if !v.calls() {
			continue
		}
		info := d.info[v.ID]
		info.Args = d.argumentsOf(v)
		d.info[v.ID] = info
		keys := keysBySource(info.Args)
		for from, ks := range keys {
			if d.byID[from] != nil {
				found[pair{from, v.ID}] = structure.Edge{
					From: from, To: v.ID, Type: structure.Provides, Coverage: d.coverage(v, info.Args, ks), Via: "arg",
				}
			}
		}
	}
	d.guard(edges, found)
	out := slices.Collect(maps.Values(found))
	slices.SortFunc(out, d.compareEdges)
	return out
}

// compareEdges orders edges by their target, source and outcome.
func (a *analysis) compareEdges(x, y structure.Edge) int {
	return cmp.Or(cmp.Compare(a.byID[x.To].order, a.byID[y.To].order), cmp.Compare(a.byID[x.From].order, a.byID[y.From].order),
		cmp.Compare(x.Outcome, y.Outcome), cmp.Compare(x.Type, y.Type))
}

// keysBySource lists for each source the top-level keys that it gives.
func keysBySource(args map[string][]structure.Source) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for path, sources := range args {
		for _, s := range sources {
			if out[s.Node] == nil {
				out[s.Node] = map[string]bool{}
			}
			out[s.Node][topKey(path)] = true
		}
	}
	return out
}

// Coverages of a provides edge.
const (
	strict   = "strict"
	partial  = "partial"
	optional = "optional"
)

// coverage says how much of v's argument a source gives through the keys in given.
func (d *data) coverage(v *vertex, args map[string][]structure.Source, given map[string]bool) string {
	if keys, ok := d.inputKeys(v); ok && len(keys.all) > 0 {
		explicit := map[string]bool{}
		for path := range args {
			explicit[topKey(path)] = true
		}
		return keys.coverage(func(k string) bool { return given[k] || given[whole] && !explicit[k] })
	}
	for path := range args {
		if !given[topKey(path)] {
			return partial
		}
	}
	return strict
}

// keys are the properties of an object schema.
type keys struct {
	all      map[string]json.RawMessage
	required []string
}

// coverage grades a set of keys against the schema's.
func (k keys) coverage(given func(key string) bool) string {
	n := 0
	for _, r := range k.required {
		if given(r) {
			n++
		}
	}
	switch {
	case n == 0:
		return optional
	case n == len(k.required):
		return strict
	}
	return partial
}

// parseKeys reads the properties of a schema.
func parseKeys(schema json.RawMessage) (keys, bool) {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if len(schema) == 0 || json.Unmarshal(schema, &s) != nil {
		return keys{}, false
	}
	return keys{s.Properties, s.Required}, true
}

func (d *data) inputKeys(v *vertex) (keys, bool) {
	t, ok := d.tools[tool.ID(v.Tool)]
	if !ok {
		return keys{}, false
	}
	return parseKeys(t.InputSchema)
}

// guard adds an edge where a decision about a source's value leads to a call that
// gets nothing else from it.
func (d *data) guard(edges []structure.Edge, found map[pair]structure.Edge) {
	sources := map[*vertex][]structure.Source{}
	for _, e := range edges {
		from, to := d.byID[e.From], d.byID[e.To]
		if !from.is(structure.Decision) || !to.calls() || !d.holds(from.syntax, to.syntax) {
			continue
		}
		if e.Outcome != "true" && !strings.HasPrefix(e.Outcome, "case:") {
			continue
		}
		if _, ok := sources[from]; !ok {
			sources[from] = d.sourcesOf(d.tested(from.syntax))
		}
		for _, s := range sources[from] {
			p := pair{s.Node, to.ID}
			if _, ok := found[p]; ok || d.byID[s.Node] == nil || p.from == p.to {
				continue
			}
			found[p] = structure.Edge{
				From: p.from, To: p.to, Type: structure.Provides, Coverage: d.guardCoverage(d.byID[s.Node], to), Via: "guard",
			}
		}
	}
}

// guardCoverage compares what one tool returns with what the other takes, by name.
func (d *data) guardCoverage(from, to *vertex) string {
	in, ok := d.inputKeys(to)
	if !ok {
		return optional
	}
	out, ok := parseKeys(d.tools[tool.ID(from.Tool)].OutputSchema)
	if !ok {
		return optional
	}
	return in.coverage(func(k string) bool { return out.all[k] != nil })
}
