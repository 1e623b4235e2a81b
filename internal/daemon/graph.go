package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/httpapi"
	"github.com/pml-run/pml/internal/jobs"
)

// Graph returns what the graph's job computed last: all nodes, or one with its
// neighbours and the edges that it has now.
func (g *Gateway) Graph(ctx context.Context, node string) (httpapi.Graph, error) {
	p, err := g.await(ctx)
	if err != nil {
		return httpapi.Graph{}, asFault(err)
	}
	kept, err := p.store.GraphSnapshot(ctx)
	if err != nil {
		return httpapi.Graph{}, err
	}
	var results jobs.Snapshot
	if err := json.Unmarshal(kept.Results, &results); err != nil {
		return httpapi.Graph{}, fmt.Errorf("graph of version %d: %w", kept.Version, err)
	}
	names, err := p.store.CapabilityNames(ctx)
	if err != nil {
		return httpapi.Graph{}, err
	}
	out := httpapi.Graph{Version: kept.Version, ComputedAt: kept.At, Modularity: results.Modularity, Nodes: nodesOf(results, names)}
	if node == "" {
		return out, nil
	}
	return p.around(ctx, out, node)
}

// nodesOf lists the nodes by community, in each the highest rank first.
func nodesOf(s jobs.Snapshot, names map[string]string) []httpapi.GraphNode {
	out := make([]httpapi.GraphNode, 0, len(s.PageRank))
	for id, rank := range s.PageRank {
		n := httpapi.GraphNode{ID: id, Name: names[id], Rank: rank, Community: s.Communities[id] + 1}
		if c, used := s.Clusters[id]; used {
			n.Cluster = c + 1
		}
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b httpapi.GraphNode) int {
		return cmp.Or(cmp.Compare(a.Community, b.Community), cmp.Compare(b.Rank, a.Rank), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// around leaves one node in a graph, and behind it its neighbours, and adds its edges.
func (p *parts) around(ctx context.Context, g httpapi.Graph, node string) (httpapi.Graph, error) {
	at := slices.IndexFunc(g.Nodes, func(n httpapi.GraphNode) bool { return n.ID == node || n.Name == node })
	if at < 0 {
		return g, fault.New(fault.NotFound, "%q is not in the graph", node).
			WithHint("a tool gets there once another goes with it; 'pml graph' lists the nodes, 'pml jobs run graph' counts anew")
	}
	edges, err := p.store.Edges(ctx)
	if err != nil {
		return g, err
	}
	center, near := g.Nodes[at], map[string]bool{}
	for _, e := range edges {
		if e.From == center.ID || e.To == center.ID {
			g.Edges = append(g.Edges, e)
			near[e.From], near[e.To] = true, true
		}
	}
	others := slices.DeleteFunc(g.Nodes, func(n httpapi.GraphNode) bool { return !near[n.ID] || n.ID == center.ID })
	g.Nodes = slices.Insert(others, 0, center)
	return g, nil
}
