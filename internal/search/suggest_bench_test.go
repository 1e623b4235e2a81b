package search

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/tool"
)

// bigKnowledge is what a busy installation knows: 4,000 tools of 100 servers, 1,000
// capabilities, 25,000 edges.
func bigKnowledge() ([]capability.Edge, []KnownCapability) {
	r := rand.New(rand.NewPCG(1, 2))
	id := func(server int) string { return fmt.Sprintf("s%d:t%d", server, r.IntN(40)) }
	var edges []capability.Edge
	for range 25_000 {
		from := r.IntN(100)
		to := from
		if r.Float64() < 0.2 {
			to = r.IntN(100)
		}
		t, s := capability.Sequence, capability.ObservedEdge
		if r.IntN(2) == 0 {
			t, s = capability.Provides, capability.InferredEdge
		}
		edges = append(edges, capability.NewEdge(id(from), id(to), t, s))
	}
	var capabilities []KnownCapability
	for i := range 1000 {
		server := r.IntN(100)
		capabilities = append(capabilities, KnownCapability{fmt.Sprintf("c%d", i), "", []tool.ID{tool.ID(id(server)), tool.ID(id(server))}, r.Float64()})
	}
	return edges, capabilities
}

func BenchmarkNewKnowledge(b *testing.B) {
	edges, capabilities := bigKnowledge()
	for b.Loop() {
		knowledge(b, edges, capabilities...)
	}
}

func BenchmarkSuggest(b *testing.B) {
	edges, capabilities := bigKnowledge()
	k := knowledge(b, edges, capabilities...)
	for b.Loop() {
		k.Suggest([]tool.ID{"s1:t1", "s1:t2", "s2:t3"}, nil)
	}
}

func BenchmarkPlan(b *testing.B) {
	edges, capabilities := bigKnowledge()
	k := knowledge(b, edges, capabilities...)
	var candidates []Candidate
	for i := range mostCandidates {
		candidates = append(candidates, candidate(fmt.Sprintf("s%d:t%d", i*8, i), 1-float64(i)/100, "path content? > id text"))
	}
	for b.Loop() {
		k.Plan(candidates)
	}
}
