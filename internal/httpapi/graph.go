package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/pml-run/pml/internal/capability"
)

// Graph is what was computed last of the graph of tools and capabilities.
type Graph struct {
	Version    int64       `json:"version"`
	ComputedAt time.Time   `json:"computed_at"`
	Modularity float64     `json:"modularity"` // of the communities, at most 1
	Nodes      []GraphNode `json:"nodes"`      // by community, in each the highest rank first; the one asked for before all
	// Edges are those of the node that was asked for, as they are now.
	Edges []capability.Edge `json:"edges,omitempty"`
}

// GraphNode is a tool or a capability in the graph.
type GraphNode struct {
	ID        string  `json:"id"`             // a tool's id, or a capability's uuid
	Name      string  `json:"name,omitempty"` // a capability's
	Rank      float64 `json:"rank"`           // PageRank; all together are 1
	Community int     `json:"community"`      // of what follows what; counted from 1
	// Cluster is that of the capabilities which use alike tools, counted from 1; 0 is
	// none: no capability uses the tool.
	Cluster int `json:"cluster,omitempty"`
}

// GraphBackend shows what was learnt of which tools go together.
type GraphBackend interface {
	// Graph returns the whole graph's ranks and communities; with a node, which is a
	// tool's id or a capability's name or id, that one, its neighbours and its edges.
	Graph(ctx context.Context, node string) (Graph, error)
}

func (s *Server) addGraph(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/graph", s.handle(func(r *http.Request) (any, error) {
		return s.backend.Graph(r.Context(), r.FormValue("node"))
	}))
}

// Graph shows which tools go together.
func (c *Client) Graph(ctx context.Context, node string) (Graph, error) {
	var out Graph
	return out, c.call(ctx, http.MethodGet, "/v1/graph?"+url.Values{"node": {node}}.Encode(), nil, &out)
}
