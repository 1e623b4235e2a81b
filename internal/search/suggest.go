package search

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/graph"
	"github.com/pml-run/pml/internal/tool"
)

const (
	mostSuggestions  = 5
	mostCapabilities = 3
	mostRelated      = 3
	// relatedTo is for how many of the context's tools related ones are looked for.
	relatedTo = 2
	// goodRate is the success rate that a suggested capability is above.
	goodRate = 0.6
)

// SuggestionType is the kind of a suggestion.
type SuggestionType string

// The kinds of suggestions: a capability to call, a tool that goes with those of the
// context, and one that may be called next.
const (
	SuggestCapability SuggestionType = "capability"
	SuggestTool       SuggestionType = "tool"
	SuggestNext       SuggestionType = "next_tool"
)

// Suggestion is something that may help after the tools of a context.
type Suggestion struct {
	Type       SuggestionType `json:"type"`
	ID         string         `json:"id"` // a tool's id, or a capability's uuid
	Name       string         `json:"name,omitempty"`
	Reason     string         `json:"reason"`     // for a person to read
	Confidence float64        `json:"confidence"` // from 0 to 1
}

// KnownCapability is what suggestions need of a capability.
type KnownCapability struct {
	ID          string // its uuid, as edges name it
	Name        string
	Tools       []tool.ID
	SuccessRate float64 // from 0 to 1
}

// Knowledge is what suggestions and plans are made from: which tools and
// capabilities there are and how they are joined. It is an immutable snapshot, safe
// for concurrent use; a nil Knowledge knows nothing.
type Knowledge struct {
	graph        *graph.Graph
	groups       graph.Communities
	ranks        []float64 // PageRank, by the graph's indexes
	capabilities map[string]KnownCapability
	edges        map[pair][]capability.Edge // sorted by type and source
}

type pair struct{ from, to string }

// NewKnowledge makes a snapshot. A capability is joined to its tools even where
// there is no edge. An edge with a weight that is none is an error.
func NewKnowledge(edges []capability.Edge, capabilities []KnownCapability) (*Knowledge, error) {
	k := &Knowledge{capabilities: map[string]KnownCapability{}, edges: map[pair][]capability.Edge{}}
	for _, e := range edges {
		p := pair{e.From, e.To}
		k.edges[p] = append(k.edges[p], e)
	}
	for _, c := range capabilities {
		k.capabilities[c.ID] = c
		for _, t := range c.Tools {
			if p := (pair{c.ID, string(t)}); len(k.edges[p]) == 0 {
				k.edges[p] = []capability.Edge{capability.NewEdge(p.from, p.to, capability.Contains, capability.ObservedEdge)}
			}
		}
	}
	var joined []graph.Edge
	for p, list := range k.edges {
		slices.SortFunc(list, func(a, b capability.Edge) int {
			return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Source, b.Source))
		})
		for _, e := range list {
			joined = append(joined, graph.Edge{From: p.from, To: p.to, Weight: e.Weight})
		}
	}
	var err error
	if k.graph, err = graph.Build(joined); err != nil {
		return nil, fmt.Errorf("graph of tools: %w", err)
	}
	k.groups = k.graph.Louvain(graph.LouvainOptions{})
	k.ranks = k.graph.PageRank(graph.PageRankOptions{})
	return k, nil
}

// Suggest returns at most five suggestions for somebody who has just used the
// tools of context, the last one last: the most confident first, ties in the order
// of ids. exists tells which tools there still are; nil is all. Unknown tools in the
// context tell nothing.
func (k *Knowledge) Suggest(context []tool.ID, exists func(tool.ID) bool) []Suggestion {
	if k == nil || len(context) == 0 {
		return nil
	}
	m := moment{k, context, exists}
	found := slices.Concat(m.fitting(), m.related(), m.next())
	slices.SortStableFunc(found, bySurety)
	return firstOfEach(found, mostSuggestions)
}

// bySurety sorts the most confident first, ties in the order of ids.
func bySurety(a, b Suggestion) int {
	return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(a.ID, b.ID))
}

// firstOfEach keeps the first suggestion of each id, most of them at most.
func firstOfEach(list []Suggestion, most int) []Suggestion {
	seen := map[string]bool{}
	var out []Suggestion
	for _, s := range list {
		if !seen[s.ID] && len(out) < most {
			seen[s.ID] = true
			out = append(out, s)
		}
	}
	return out
}

// moment is knowledge at the point where something is suggested.
type moment struct {
	*Knowledge
	context []tool.ID
	exists  func(tool.ID) bool
}

// offers reports whether a node is a tool that can be suggested.
func (m moment) offers(id string) bool {
	return m.isTool(id) && !slices.Contains(m.context, tool.ID(id)) && (m.exists == nil || m.exists(tool.ID(id)))
}

// works reports whether all tools of a capability are still there.
func (m moment) works(c KnownCapability) bool {
	return m.exists == nil || !slices.ContainsFunc(c.Tools, func(t tool.ID) bool { return !m.exists(t) })
}

// fitting are the good capabilities of the group that most of the context's tools
// belong to, those first that share tools with it.
func (m moment) fitting() []Suggestion {
	group, ok := m.dominant(m.context)
	if !ok {
		return nil
	}
	var out []Suggestion
	for id, c := range m.capabilities {
		at, known := m.graph.Index(id)
		if known && m.groups.Of[at] == group && c.SuccessRate > goodRate && m.works(c) {
			out = append(out, Suggestion{SuggestCapability, id, c.Name, fittingReason(c, m.context), min(c.SuccessRate, 1)})
		}
	}
	slices.SortFunc(out, func(a, b Suggestion) int {
		shared := func(s Suggestion) int { return len(sharedTools(m.capabilities[s.ID], m.context)) }
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(shared(b), shared(a)), cmp.Compare(a.ID, b.ID))
	})
	return out[:min(len(out), mostCapabilities)]
}

// dominant is the group of most of the context's tools; of equals the one that
// comes first in the context.
func (k *Knowledge) dominant(context []tool.ID) (group int, ok bool) {
	count := map[int]int{}
	for _, id := range context {
		if at, known := k.graph.Index(string(id)); known {
			count[k.groups.Of[at]]++
		}
	}
	most := 0
	for _, id := range context {
		at, known := k.graph.Index(string(id))
		if known && count[k.groups.Of[at]] > most {
			group = k.groups.Of[at]
			most = count[group]
		}
	}
	return group, most > 0
}

func sharedTools(c KnownCapability, context []tool.ID) []string {
	var out []string
	for _, t := range context {
		if slices.Contains(c.Tools, t) && !slices.Contains(out, string(t)) {
			out = append(out, string(t))
		}
	}
	return out
}

// related are the tools that share most neighbours with the context's first ones.
func (m moment) related() []Suggestion {
	var out []Suggestion
	for _, id := range m.context[:min(len(m.context), relatedTo)] {
		for _, alike := range m.graph.AdamicAdar(string(id)) {
			if m.offers(alike.ID) {
				reason := "the same programs and tools go with it as with " + string(id)
				out = append(out, Suggestion{SuggestTool, alike.ID, "", reason, min(alike.Score/2, 1)})
			}
		}
	}
	slices.SortStableFunc(out, bySurety)
	return firstOfEach(out, mostRelated)
}

// isTool tells a tool's id from a capability's.
func (k *Knowledge) isTool(id string) bool {
	_, known := k.capabilities[id]
	return !known && strings.Contains(id, ":")
}

// next are the tools that edges of the context's last tool lead to. Their
// confidence is the weight of the edges, 1 at most, in proportion to how often the
// way was taken beside the most frequent one.
func (m moment) next() []Suggestion {
	last := string(m.context[len(m.context)-1])
	var out []Suggestion
	var often []float64
	for _, to := range m.graph.Out(last) {
		if m.offers(to.ID) {
			edges := m.edges[pair{last, to.ID}]
			out = append(out, Suggestion{SuggestNext, to.ID, "", nextReason(edges, last), min(to.Score, 1)})
			often = append(often, frequency(edges))
		}
	}
	for i := range out {
		out[i].Confidence *= often[i] / slices.Max(often)
	}
	return out
}

// frequency grows with the logarithm of how often edges were observed; a guess
// counts as one observation.
func frequency(edges []capability.Edge) float64 {
	most := int64(1)
	for _, e := range edges {
		most = max(most, e.Count)
	}
	return math.Log2(float64(most) + 1)
}
