package execute

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/tool"
)

// mark notes in a plan how often its servers were written to; false while one is
// being written to.
func (c *Cache) mark(p *cachePlan) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.marks, p.drops = nil, c.drops
	for _, s := range p.servers {
		if c.writing[s] > 0 {
			return false
		}
		p.marks = append(p.marks, c.writes[s])
	}
	return true
}

func (c *Cache) unchanged(p *cachePlan) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unchangedLocked(p)
}

// unchangedLocked reports whether nothing was dropped, and no server written to, since
// the plan was marked.
func (c *Cache) unchangedLocked(p *cachePlan) bool {
	if c.drops != p.drops {
		return false
	}
	for i, s := range p.servers {
		if c.writing[s] > 0 || c.writes[s] != p.marks[i] {
			return false
		}
	}
	return true
}

// written are the servers that a run has written to, with a tool of each.
type written struct {
	mu      sync.Mutex
	by      map[string]tool.ID
	dropped int64
}

// note is called before a call that may write. From then until the run has ended,
// nothing of the server is in the cache.
func (w *written) note(ctx context.Context, c *Cache, id tool.ID) {
	if !c.on(ctx) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, done := w.by[id.Server()]; done {
		return
	}
	if w.by == nil {
		w.by = map[string]tool.ID{}
	}
	w.by[id.Server()] = id
	w.dropped += c.beginWrite(id.Server())
}

// settle drops what the store has of the servers that were written to. Where that
// fails nothing is answered of them as long as this gateway runs.
func (w *written) settle(ctx context.Context, c *Cache) {
	w.mu.Lock()
	d := capability.Drop{Trigger: capability.DroppedByWrite, InMemory: w.dropped}
	for _, id := range w.by {
		d.Writers = append(d.Writers, id)
	}
	w.by, w.dropped = nil, 0
	w.mu.Unlock()
	if len(d.Writers) == 0 {
		return
	}
	slices.Sort(d.Writers)
	if _, err := c.store.DropCached(context.WithoutCancel(ctx), d); err != nil {
		c.options.Logger.ErrorContext(ctx, "results before a write were not dropped; their servers are not cached any more", "tools", d.Writers, "error", err)
		return
	}
	c.endWrite(d.Writers)
}

// beginWrite pairs with endWrite.
func (c *Cache) beginWrite(server string) (dropped int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing[server]++
	c.writes[server]++
	return c.dropLocked(func(p *cachePlan, _ time.Time) bool { return slices.Contains(p.servers, server) })
}

func (c *Cache) endWrite(tools []tool.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range tools {
		c.writing[id.Server()]--
	}
}

// dropLocked drops from memory and counts.
func (c *Cache) dropLocked(goes func(p *cachePlan, at time.Time) bool) (n int64) {
	for k, e := range c.kept.All() {
		if goes(e.plan, e.at) {
			c.kept.Invalidate(k)
			n++
		}
	}
	for k, e := range c.intents.All() {
		if goes(e.plan, e.at) {
			c.intents.Invalidate(k)
			n++
		}
	}
	return n
}

// Drop drops results from memory and from the store and returns how many went: one
// that was in both counts twice.
func (c *Cache) Drop(ctx context.Context, d capability.Drop) (int64, error) {
	c.mu.Lock()
	if d.Before.IsZero() { // else it does not concern what is being read now
		c.drops++
	}
	d.InMemory = c.dropLocked(func(p *cachePlan, at time.Time) bool {
		switch {
		case len(d.Tools) > 0:
			return slices.ContainsFunc(p.tools, func(id tool.ID) bool { return slices.Contains(d.Tools, id) })
		case d.Capability != uuid.Nil:
			return p.key.Capability == d.Capability || slices.Contains(p.inner, d.Capability)
		}
		return d.Before.IsZero() || at.Before(d.Before)
	})
	c.mu.Unlock()
	n, err := c.store.DropCached(ctx, d)
	return n + d.InMemory, err
}

// lost drops everything after a gateway has left runs behind: it may have ended between
// a write and the drop that follows from it.
func (c *Cache) lost(ctx context.Context) {
	if c == nil {
		return
	}
	if _, err := c.Drop(ctx, capability.Drop{Trigger: capability.DroppedByLoss}); err != nil {
		c.options.Logger.ErrorContext(ctx, "results before a crash were not dropped", "error", err)
	}
}

// failed drops the results of a capability if it now fails in a row.
func (c *Cache) failed(ctx context.Context, id uuid.UUID) {
	failing, err := c.store.DropFailing(ctx, id)
	if err != nil {
		c.options.Logger.WarnContext(ctx, "the results of a capability that failed were not dropped", "capability", id, "error", err)
	}
	if !failing && err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	c.dropLocked(func(p *cachePlan, _ time.Time) bool { return p.key.Capability == id || slices.Contains(p.inner, id) })
}
