package capability

import (
	"slices"

	"github.com/pml-run/pml/internal/tool"
)

// EdgeType is the kind of an edge between tools and capabilities.
type EdgeType string

// The kinds of edges. The first two never form a cycle.
const (
	Dependency EdgeType = "dependency"
	Contains   EdgeType = "contains"
	Provides   EdgeType = "provides"
	Sequence   EdgeType = "sequence"
)

// Acyclic reports whether edges of the type must not form a cycle.
func (t EdgeType) Acyclic() bool { return t == Dependency || t == Contains }

// EdgeSource says how an edge is known.
type EdgeSource string

// The sources, the strongest first.
const (
	ObservedEdge EdgeSource = "observed"
	InferredEdge EdgeSource = "inferred"
	TemplateEdge EdgeSource = "template"
)

var (
	typeWeights   = map[EdgeType]float64{Dependency: 1.0, Contains: 0.8, Provides: 0.7, Sequence: 0.5}
	sourceFactors = map[EdgeSource]float64{ObservedEdge: 1.0, InferredEdge: 0.7, TemplateEdge: 0.5}
)

// Weight is how strong an edge of the type is when it is known so.
func Weight(t EdgeType, s EdgeSource) float64 { return typeWeights[t] * sourceFactors[s] }

// Edge joins two nodes of the graph of tools and capabilities: a tool by its id, a
// capability by its uuid.
type Edge struct {
	From         string              `json:"from"`
	To           string              `json:"to"`
	Type         EdgeType            `json:"type"`
	Source       EdgeSource          `json:"source"`
	Count        int64               `json:"observed_count"`
	Weight       float64             `json:"weight"`
	Coverage     tool.Coverage       `json:"coverage,omitempty"`
	FieldMapping []tool.FieldMapping `json:"fieldMapping,omitempty"`
}

// NewEdge makes an edge with the weight of its type and source.
func NewEdge(from, to string, t EdgeType, s EdgeSource) Edge {
	e := Edge{From: from, To: to, Type: t, Source: s, Weight: Weight(t, s)}
	if s == ObservedEdge {
		e.Count = 1
	}
	return e
}

// Cycle returns the circle that an edge from → to would close, beginning and
// ending with from; nil when it closes none. next names the ends of the edges that
// leave a node.
func Cycle(from, to string, next func(string) []string) []string {
	if from == to {
		return []string{from, to}
	}
	before := map[string]string{to: ""}
	queue := []string{to}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, n := range next(at) {
			if _, seen := before[n]; seen {
				continue
			}
			before[n] = at
			if n == from {
				return circle(from, before)
			}
			queue = append(queue, n)
		}
	}
	return nil
}

// circle walks back from the end of a search to its beginning.
func circle(from string, before map[string]string) []string {
	path := []string{from}
	for at := before[from]; at != ""; at = before[at] {
		path = append(path, at)
	}
	path = append(path, from)
	slices.Reverse(path)
	return path
}
