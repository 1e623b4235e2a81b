package daemon

import (
	"context"
	"log/slog"
	"sync"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/learn"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/upstream"
)

// guessedTools is the largest catalog for which every pair of tools is compared.
const guessedTools = 1500

// consequences draws what follows from a change of the catalog: which tool could
// give to which, and which capabilities have lost a tool. What is cached of changed tools goes.
type consequences struct {
	store    *store.Store
	cache    *execute.Cache
	upstream *upstream.Manager
	logger   *slog.Logger
	wake     chan struct{}

	mu      sync.Mutex
	changed map[tool.ID]bool // true: it was known before, otherwise
}

// startConsequences follows the manager's catalog until the returned function is called.
func startConsequences(ctx context.Context, s *store.Store, cache *execute.Cache, m *upstream.Manager, logger *slog.Logger) (stop func()) {
	c := &consequences{store: s, cache: cache, upstream: m, logger: logger.With("system", "catalog"), wake: make(chan struct{}, 1), changed: map[tool.ID]bool{}}
	m.OnChange(c.note)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { c.run(ctx) })
	return func() { cancel(); wg.Wait() }
}

// note is called from a server's goroutine and only leaves word.
func (c *consequences) note(change upstream.Change) {
	c.mu.Lock()
	for _, id := range change.New {
		if !c.changed[id] {
			c.changed[id] = false
		}
	}
	for _, id := range change.Altered {
		c.changed[id] = true
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default: // it will look all the same
	}
}

func (c *consequences) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		c.mu.Lock()
		changed := c.changed
		c.changed = map[tool.ID]bool{}
		c.mu.Unlock()
		if err := c.draw(ctx, changed); err != nil && ctx.Err() == nil {
			c.logger.WarnContext(ctx, "a change of the catalog had no consequences", "error", err)
		}
	}
}

func (c *consequences) draw(ctx context.Context, changed map[tool.ID]bool) error {
	dropAltered(ctx, c.cache, changed, c.logger)
	catalog := c.upstream.Catalog()
	for id := range changed {
		if _, there := catalog.Get(id); there {
			continue
		}
		if err := c.degrade(ctx, id); err != nil {
			return err
		}
	}
	tools := catalog.Tools()
	if len(tools) > guessedTools {
		c.logger.InfoContext(ctx, "too many tools to guess edges between them", "tools", len(tools))
		return nil
	}
	observed, err := c.store.ObservedSchemas(ctx)
	if err != nil {
		return err
	}
	return c.store.SaveGuesses(ctx, learn.InferProvides(tools, observed))
}

// degrade marks the capabilities that use a tool which is gone.
func (c *consequences) degrade(ctx context.Context, id tool.ID) error {
	using, err := c.store.Capabilities(ctx, store.CapabilityFilter{Tool: id, States: []capability.State{capability.Active, capability.Promoted}, Limit: 1000})
	if err != nil {
		return err
	}
	for _, u := range using {
		if _, err := c.store.MoveCapability(ctx, u.Name, capability.Event{Kind: capability.ToolRemoved, Tool: string(id)}); err != nil {
			return err
		}
		c.logger.WarnContext(ctx, "capability degraded: its tool is gone", "capability", u.Name, "tool", id)
	}
	return nil
}
