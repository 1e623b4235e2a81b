package learn

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// maxMapping bounds the fields of one edge.
const maxMapping = 20

// edgeSet gathers edges, each once, with the sum of their counts.
type edgeSet struct {
	index map[[3]string]int
	list  []capability.Edge
}

func (s *edgeSet) add(e capability.Edge) {
	if e.From == e.To {
		return
	}
	if s.index == nil {
		s.index = map[[3]string]int{}
	}
	key := [3]string{e.From, e.To, string(e.Type)}
	at, known := s.index[key]
	if !known {
		s.index[key] = len(s.list)
		s.list = append(s.list, e)
		return
	}
	have := &s.list[at]
	have.Count += e.Count
	have.Coverage = stronger(have.Coverage, e.Coverage)
	for _, m := range e.FieldMapping {
		if !slices.Contains(have.FieldMapping, m) && len(have.FieldMapping) < maxMapping {
			have.FieldMapping = append(have.FieldMapping, m)
		}
	}
}

// sorted returns the edges in the order in which they are locked, so that two runs
// cannot wait for each other.
func (s *edgeSet) sorted() []capability.Edge {
	slices.SortFunc(s.list, func(a, b capability.Edge) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Type, b.Type))
	})
	return s.list
}

var strength = map[tool.Coverage]int{tool.Optional: 1, tool.Partial: 2, tool.Strict: 3}

func stronger(a, b tool.Coverage) tool.Coverage {
	if strength[b] > strength[a] {
		return b
	}
	return a
}

// Edges returns what a run has shown about its tools: what follows what, whose
// result went into what, and what c (nil for none) contains. Only calls that were
// made count, whatever the program may do besides.
func Edges(t trace.Trace, c *capability.Capability) []capability.Edge {
	var s structure.Structure
	if c != nil {
		s = c.Structure
	}
	var set edgeSet
	siblings := siblings(t)
	for _, pair := range consecutive(s, siblings) {
		a, b := siblings[pair[0]], siblings[pair[1]]
		set.add(capability.NewEdge(string(a.Tool), string(b.Tool), capability.Sequence, capability.ObservedEdge))
	}
	if c == nil {
		return set.sorted()
	}
	addFlows(&set, t.Calls, c)
	for _, id := range usedTools(t.Calls) {
		set.add(capability.NewEdge(c.ID.String(), string(id), capability.Contains, capability.ObservedEdge))
	}
	return set.sorted()
}

// siblings are the calls of a run with those of capabilities among them, which stand
// under the capability's id.
func siblings(t trace.Trace) []trace.Call {
	if len(t.Children) == 0 {
		return t.Calls
	}
	out := make([]trace.Call, 0, len(t.Calls)+len(t.Children))
	next := 0
	add := func(c trace.Call) {
		c.Seq = len(out)
		out = append(out, c)
	}
	for i := 0; i <= len(t.Calls); i++ {
		for ; next < len(t.Children) && t.Children[next].Seq <= i; next++ {
			child := t.Children[next]
			if child.Success {
				add(trace.Call{NodeID: child.NodeID, Tool: tool.ID(child.Capability.String()), Status: trace.CallOK, StartedAt: child.StartedAt, Duration: child.Duration})
			}
		}
		if i < len(t.Calls) {
			add(t.Calls[i])
		}
	}
	return out
}

// addFlows adds an edge for each data flow of the program whose both ends
// succeeded in this run.
func addFlows(set *edgeSet, calls []trace.Call, c *capability.Capability) {
	tools := map[string]tool.ID{}
	for _, call := range calls {
		if call.Status == trace.CallOK {
			tools[call.NodeID] = call.Tool
		}
	}
	for _, e := range c.Structure.Edges {
		from, to := tools[e.From], tools[e.To]
		if e.Type != structure.Provides || e.Via == "guard" || from == "" || to == "" {
			continue
		}
		edge := capability.NewEdge(string(from), string(to), capability.Provides, capability.ObservedEdge)
		edge.Coverage, edge.FieldMapping = tool.Coverage(e.Coverage), fieldsOf(c.Info[e.To], e.From)
		set.add(edge)
	}
}

// fieldsOf lists which fields of node from go where in the arguments of a call.
func fieldsOf(info structure.Info, from string) []tool.FieldMapping {
	var out []tool.FieldMapping
	for path, sources := range info.Args {
		for _, s := range sources {
			m := tool.FieldMapping{From: s.Path, To: path, TypeCompatible: true} // it was given, and it worked
			if s.Node == from && !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	slices.SortFunc(out, func(a, b tool.FieldMapping) int { return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From)) })
	return out[:min(len(out), maxMapping)]
}

// usedTools are the tools whose calls succeeded, each once, in order of their ids.
func usedTools(calls []trace.Call) []tool.ID {
	var out []tool.ID
	for _, c := range calls {
		if c.Status == trace.CallOK {
			out = append(out, c.Tool)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// InferProvides guesses from schemas which tool can give to which: declared output
// schemas, else learnt ones. Observed edges outrank these when both are stored.
func InferProvides(tools []tool.Tool, observed map[tool.ID]tool.Observed) []capability.Edge {
	inputs, outputs := make([]tool.Shape, len(tools)), make([]tool.Shape, len(tools))
	for i, t := range tools {
		inputs[i] = shapeOf(t.InputSchema)
		outputs[i] = shapeOf(t.OutputSchema)
		if len(outputs[i].Properties) == 0 {
			outputs[i] = observed[t.ID].Shape
		}
	}
	var set edgeSet
	for i, from := range tools {
		for j, to := range tools {
			coverage, mapping := tool.Cover(outputs[i], inputs[j])
			if coverage == tool.NoCoverage {
				continue
			}
			e := capability.NewEdge(string(from.ID), string(to.ID), capability.Provides, capability.InferredEdge)
			e.Coverage, e.FieldMapping = coverage, mapping[:min(len(mapping), maxMapping)]
			set.add(e)
		}
	}
	return set.sorted()
}

// shapeOf reads a declared schema; one of no use has no shape.
func shapeOf(schema json.RawMessage) tool.Shape {
	var s tool.Shape
	if len(schema) > 0 && json.Unmarshal(schema, &s) != nil {
		return tool.Shape{}
	}
	return s
}
