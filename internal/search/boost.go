package search

import (
	"github.com/pml-run/pml/internal/graph"
	"github.com/pml-run/pml/internal/tool"
)

// By how much the graph's signals raise a rank at most: together by three fifths, so
// that they decide between what fits, and never lift what does not.
const (
	transitionBoost = 0.30 // the last tool of the context leads there
	neighbourBoost  = 0.15 // Adamic-Adar with one of the context's last tools
	communityBoost  = 0.10 // of the group that most of the context belongs to
	importanceBoost = 0.05 // PageRank, of the most important node
)

// boost returns by how much the rank of a tool or a capability is multiplied for
// somebody who has just used the tools of context, the last one last; nil when the
// graph knows none of them.
func (k *Knowledge) boost(context []tool.ID) func(id string) float64 {
	if k == nil || len(context) == 0 {
		return nil
	}
	group, ok := k.dominant(context)
	if !ok {
		return nil
	}
	factors := map[string]float64{}
	raise(factors, k.graph.Out(string(context[len(context)-1])), transitionBoost)
	near := map[string]float64{}
	for _, id := range context[max(len(context)-relatedTo, 0):] {
		for _, alike := range k.graph.AdamicAdar(string(id)) {
			near[alike.ID] = max(near[alike.ID], min(alike.Score/2, 1))
		}
	}
	for id, score := range near {
		factors[id] += neighbourBoost * score
	}
	most := 0.0
	for _, rank := range k.ranks {
		most = max(most, rank)
	}
	return func(id string) float64 {
		factor := 1 + factors[id]
		if at, known := k.graph.Index(id); known {
			if k.groups.Of[at] == group {
				factor += communityBoost
			}
			factor += importanceBoost * k.ranks[at] / most
		}
		return factor
	}
}

// raise adds to each node's factor its share of the largest score.
func raise(factors map[string]float64, nodes []graph.Scored, most float64) {
	largest := 0.0
	for _, n := range nodes {
		largest = max(largest, n.Score)
	}
	for _, n := range nodes {
		factors[n.ID] += most * n.Score / largest
	}
}
