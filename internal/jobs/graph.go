package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/graph"
)

// edges is where the graph is read and what is computed of it is kept.
type edges interface {
	Edges(ctx context.Context) ([]capability.Edge, error)
	// SaveGraphSnapshot keeps results under a new version, unless they are those of
	// the newest. It returns the newest version and whether it is new.
	SaveGraphSnapshot(ctx context.Context, results json.RawMessage) (version int64, fresh bool, err error)
}

// Snapshot is what is computed of the graph of tools and capabilities.
type Snapshot struct {
	// PageRank is the rank of each node; their sum is 1.
	PageRank map[string]float64 `json:"pagerank"`
	// Communities is the number of each node's community. They are numbered in the
	// order of their first nodes.
	Communities map[string]int `json:"communities"`
	Count       int            `json:"count"`
	Modularity  float64        `json:"modularity"`
	// Clusters is the number of each capability's cluster, and of the tools in it: those
	// in one use alike tools, also where none has ever run after another.
	Clusters map[string]int `json:"clusters"`
}

// Graph computes ranks and communities of the graph and keeps them with a version.
func Graph(store edges) Kind {
	do := func(ctx context.Context) (string, error) {
		list, err := store.Edges(ctx)
		if err != nil {
			return "", err
		}
		if len(list) == 0 { // a new database stays empty, so that an export can be read into it
			return "no edges yet", nil
		}
		snapshot, err := snapshotOf(list)
		if err != nil {
			return "", err
		}
		raw, err := json.Marshal(snapshot)
		if err != nil {
			return "", err
		}
		version, fresh, err := store.SaveGraphSnapshot(ctx, raw)
		if !fresh {
			return fmt.Sprintf("version %d is up to date", version), err
		}
		return fmt.Sprintf("version %d: %d nodes, %d communities", version, len(snapshot.PageRank), snapshot.Count), err
	}
	return Kind{Name: "graph", About: "compute ranks and communities of tools and capabilities", Every: time.Hour, Do: do}
}

// snapshotOf depends on the set of edges alone.
func snapshotOf(list []capability.Edge) (Snapshot, error) {
	joined := make([]graph.Edge, len(list))
	for i, e := range list {
		joined[i] = graph.Edge{From: e.From, To: e.To, Weight: e.Weight}
	}
	s := Snapshot{PageRank: map[string]float64{}, Communities: map[string]int{}, Clusters: map[string]int{}}
	g, err := graph.Build(joined)
	if err != nil || g.Len() == 0 {
		return s, err
	}
	ranks, groups := g.PageRank(graph.PageRankOptions{}), g.Louvain(graph.LouvainOptions{})
	for i, id := range g.IDs() {
		s.PageRank[id], s.Communities[id] = ranks[i], groups.Of[i]
	}
	s.Count, s.Modularity = groups.Count, groups.Modularity
	clusters, err := graph.Spectral(uses(list), graph.SpectralOptions{})
	maps.Copy(s.Clusters, clusters.Rows)
	maps.Copy(s.Clusters, clusters.Columns)
	return s, err
}

// uses are the rows of the matrix of capabilities and tools.
func uses(list []capability.Edge) []graph.Link {
	var links []graph.Link
	for _, e := range list {
		if e.Type == capability.Contains {
			links = append(links, graph.Link{Row: e.From, Column: e.To, Count: 1})
		}
	}
	return links
}
