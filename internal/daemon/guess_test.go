package daemon

import (
	"log/slog"
	"testing"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
)

func TestACapabilityWhoseToolIsGoneIsDegraded(t *testing.T) {
	g := newGateway(t)
	s, ctx := g.parts.store, t.Context()
	add := func(name, uses, hash string) {
		t.Helper()
		_, _, err := s.UpsertCandidate(ctx, capability.Capability{
			Name: name, Intent: name, HashExact: hash, HashShape: hash, State: capability.Candidate, Origin: capability.Manual,
			Source:    capability.Source{Type: capability.CodeSource, Code: "1"},
			Structure: structure.Structure{Nodes: []structure.Node{{ID: "n1", Type: structure.Task, Tool: uses}}},
			ToolsUsed: []tool.ID{tool.ID(uses)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.MoveCapability(ctx, name, capability.Event{Kind: capability.FullSuccess}); err != nil {
			t.Fatal(err)
		}
	}
	add("reads", "fs:read", "00000000000000000000000000000001")
	add("writes", "fs:write", "00000000000000000000000000000002")
	c := &consequences{store: s, cache: g.parts.cache, upstream: g.parts.upstream, logger: slog.New(slog.DiscardHandler)}
	if err := c.draw(ctx, map[tool.ID]bool{"fs:read": true}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]capability.State{"reads": capability.Degraded, "writes": capability.Active} {
		got, err := s.Capability(ctx, name)
		if err != nil || got.State != want {
			t.Errorf("%s is %s (%s), %v", name, got.State, got.StateReason, err)
		}
	}
}
