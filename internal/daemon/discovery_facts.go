package daemon

import (
	"bytes"
	"context"
	"maps"
	"time"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/search"
	"github.com/pml-run/pml/internal/tool"
)

// graphShare is the largest share of the time that goes into reading the graph: one
// that took a second is read again after twenty.
const graphShare = 20

// knownFacts are what was read so far.
type knownFacts struct {
	search.Facts

	after   time.Time // what changed later has not been read
	mark    string    // of the graph
	graphAt time.Time // when the graph may be read again
	changed bool
}

func (k *knownFacts) clear() {
	k.Capabilities, k.Tools, k.after = map[string]capability.Capability{}, map[tool.ID]search.ToolFacts{}, time.Time{}
	k.changed = true
}

// readFacts reads what has changed since it was read last, or everything, and hands
// it to the finder.
func (d *discovery) readFacts(ctx context.Context, all bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, err := d.store.Now(ctx)
	if err != nil {
		return err
	}
	k := d.facts
	if all {
		k.clear()
		k.graphAt = time.Time{}
	}
	if err := d.readCapabilities(ctx, &k); err != nil {
		return err
	}
	if err := d.readTools(ctx, &k); err != nil {
		return err
	}
	if err := d.readGraph(ctx, &k); err != nil {
		return err
	}
	if k.changed {
		if err := d.finder.SetFacts(k.Facts); err != nil {
			return err
		}
	}
	k.after, k.changed = now, false
	d.facts = k
	return nil
}

// readCapabilities takes in the capabilities that have changed. The finder has the
// present map: a change goes into a copy.
func (d *discovery) readCapabilities(ctx context.Context, k *knownFacts) error {
	list, err := d.store.ChangedCapabilities(ctx, k.after)
	if err != nil {
		return err
	}
	copied := false
	for _, c := range list {
		id := c.ID.String()
		old, known := k.Capabilities[id]
		found := c.State.Discoverable()
		if known == found && (!known || old.UpdatedAt.Equal(c.UpdatedAt)) {
			continue
		}
		if !copied {
			k.Capabilities, copied, k.changed = maps.Clone(k.Capabilities), true, true
		}
		delete(k.Capabilities, id)
		if found {
			k.Capabilities[id] = c
		}
	}
	return nil
}

func (d *discovery) readTools(ctx context.Context, k *knownFacts) error {
	list, err := d.store.ChangedTools(ctx, k.after)
	if err != nil {
		return err
	}
	copied := false
	for _, t := range list {
		now := search.ToolFacts{Successes: t.Calls - t.Failures, Failures: t.Failures, Observed: t.Observed}
		old, known := k.Tools[t.ID]
		if known && old.Successes == now.Successes && old.Failures == now.Failures && bytes.Equal(old.Observed, now.Observed) {
			continue
		}
		if !copied {
			k.Tools, copied, k.changed = maps.Clone(k.Tools), true, true
		}
		k.Tools[t.ID] = now
	}
	return nil
}

// readGraph makes the knowledge anew when edges have changed.
func (d *discovery) readGraph(ctx context.Context, k *knownFacts) error {
	began := time.Now()
	if began.Before(k.graphAt) {
		return nil
	}
	mark, err := d.store.GraphMark(ctx)
	if err != nil || mark == k.mark {
		return err
	}
	edges, err := d.store.Edges(ctx)
	if err != nil {
		return err
	}
	known := make([]search.KnownCapability, 0, len(k.Capabilities))
	for id, c := range k.Capabilities {
		known = append(known, search.KnownCapability{ID: id, Name: c.Name, Tools: c.ToolsUsed, SuccessRate: c.SuccessRate})
	}
	knowledge, err := search.NewKnowledge(edges, known)
	if err != nil {
		return err
	}
	ended := time.Now()
	k.Knowledge, k.mark, k.changed, k.graphAt = knowledge, mark, true, ended.Add(graphShare*ended.Sub(began))
	return nil
}
