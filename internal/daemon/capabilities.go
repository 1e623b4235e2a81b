package daemon

import (
	"context"
	"io"
	"time"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/httpapi"
	"github.com/pml-run/pml/internal/store"
)

// capabilityTraces is how many surprising runs are shown with a capability.
const capabilityTraces = 5

// Capabilities lists capabilities, the most used first.
func (g *Gateway) Capabilities(ctx context.Context, f httpapi.CapabilityFilter) ([]capability.Capability, error) {
	p, err := g.await(ctx)
	if err != nil {
		return nil, asFault(err)
	}
	filter := store.CapabilityFilter{Query: f.Query, Limit: f.Limit, Offset: f.Offset}
	if f.State != "" {
		filter.States = []capability.State{f.State}
	}
	return p.store.Capabilities(ctx, filter)
}

// Capability describes one capability with its versions and its surprising runs.
func (g *Gateway) Capability(ctx context.Context, name string) (httpapi.CapabilityDetail, error) {
	p, err := g.await(ctx)
	if err != nil {
		return httpapi.CapabilityDetail{}, asFault(err)
	}
	var d httpapi.CapabilityDetail
	if d.Capability, err = p.store.Capability(ctx, name); err != nil {
		return d, err
	}
	if d.Versions, err = p.store.CapabilityVersions(ctx, name); err != nil {
		return d, err
	}
	traces, err := p.store.HighPriorityTraces(ctx, d.Capability.ID, capabilityTraces)
	d.Surprises = traces
	return d, err
}

// AddCapability stores a program that a person gives as a candidate.
func (g *Gateway) AddCapability(ctx context.Context, c capability.Capability) (capability.Capability, error) {
	p, err := g.await(ctx)
	if err != nil {
		return c, asFault(err)
	}
	program, err := p.engine.Analyse(ctx, c.Source)
	if err != nil {
		return c, err
	}
	c.HashExact, c.HashShape, c.Structure, c.Parameters = program.HashExact, program.HashShape, program.Structure, program.Parameters
	c.State, c.Origin = capability.Candidate, capability.Manual
	stored, _, err := p.store.UpsertCandidate(ctx, c)
	return stored, err
}

// ChangeCapability renames, rolls back or retires a capability.
func (g *Gateway) ChangeCapability(ctx context.Context, name string, change httpapi.CapabilityChange) error {
	p, err := g.await(ctx)
	if err != nil {
		return asFault(err)
	}
	switch {
	case change.Rename != "":
		return p.store.RenameCapability(ctx, name, change.Rename)
	case change.Version != 0:
		return p.store.RollbackCapability(ctx, name, change.Version)
	default:
		return p.store.RetireCapability(ctx, name, change.Retire)
	}
}

// ExportCapabilities writes the named capabilities to w.
func (g *Gateway) ExportCapabilities(ctx context.Context, w io.Writer, names []string) error {
	p, err := g.await(ctx)
	if err != nil {
		return asFault(err)
	}
	list := make([]capability.Capability, len(names))
	for i, name := range names {
		if list[i], err = p.store.Capability(ctx, name); err != nil {
			return err
		}
	}
	return capability.Export(w, list, time.Now())
}

// ImportCapabilities reads what ExportCapabilities wrote.
func (g *Gateway) ImportCapabilities(ctx context.Context, r io.Reader) ([]capability.Capability, error) {
	p, err := g.await(ctx)
	if err != nil {
		return nil, asFault(err)
	}
	list, err := capability.Import(r, p.engine.Hash)
	if err != nil {
		return nil, err
	}
	return p.store.ImportCapabilities(ctx, list)
}
