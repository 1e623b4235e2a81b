package daemon

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/httpapi"
	"github.com/pml-run/pml/internal/tool"
)

func (p *parts) openCache(_ context.Context, o Options, registry prometheus.Registerer) error {
	p.cache = execute.NewCache(p.store, execute.CacheOptions{
		Settings: func() execute.CacheSettings {
			c := p.config.current().Cache
			return execute.CacheSettings{Disabled: c.Disabled, TTL: c.TTL(), Intents: c.Intents}
		},
		MaxEntries: p.config.current().Cache.Entries(), Shared: o.DatabaseURL != "", Logger: o.Logger, Registerer: registry,
	})
	return nil
}

// dropAltered drops what is cached of tools that have another schema or are gone.
func dropAltered(ctx context.Context, c *execute.Cache, changed map[tool.ID]bool, logger *slog.Logger) {
	altered := maps.Clone(changed)
	maps.DeleteFunc(altered, func(_ tool.ID, known bool) bool { return !known })
	if len(altered) == 0 {
		return
	}
	d := capability.Drop{Trigger: capability.DroppedByTool, Tools: slices.Sorted(maps.Keys(altered))}
	if _, err := c.Drop(ctx, d); err != nil {
		logger.WarnContext(ctx, "the results of changed tools were not dropped from the cache", "error", err)
	}
}

// CacheEntries lists the results that runs may be answered with, those in memory first.
func (g *Gateway) CacheEntries(ctx context.Context) ([]capability.CacheEntry, error) {
	p, err := g.await(ctx)
	if err != nil {
		return nil, asFault(err)
	}
	stored, err := p.store.CachedResults(ctx)
	return append(p.cache.Entries(), stored...), err
}

// ClearCache drops the results of a capability, or all where none is named.
func (g *Gateway) ClearCache(ctx context.Context, name string) (int64, error) {
	p, err := g.await(ctx)
	if err != nil {
		return 0, asFault(err)
	}
	d := capability.Drop{Trigger: capability.DroppedByHand}
	if name != "" {
		c, err := p.store.Capability(ctx, name)
		if err != nil {
			return 0, err
		}
		d.Capability = c.ID
	}
	return p.cache.Drop(ctx, d)
}

// dropOldResults drops the results that are a day old, so that none lives for ever
// whatever was missed, and what the log says of drops long ago. It returns how many
// results went.
func (p *parts) dropOldResults(ctx context.Context) (int64, error) {
	n, err := p.cache.Drop(ctx, capability.Drop{Trigger: capability.DroppedDaily, Before: time.Now().AddDate(0, 0, -1)})
	return n, errors.Join(err, p.store.PruneCacheLog(ctx))
}

// ChangeCaching changes what is said about keeping the results of a capability, drops
// those that are kept, and returns what is said now.
func (g *Gateway) ChangeCaching(ctx context.Context, name string, change httpapi.CacheChange) (capability.CacheConfig, error) {
	p, err := g.await(ctx)
	if err != nil {
		return capability.CacheConfig{}, asFault(err)
	}
	id, config, err := p.store.ChangeCacheConfig(ctx, name, change.Apply)
	if err != nil || change == (httpapi.CacheChange{}) {
		return config, err
	}
	_, err = p.cache.Drop(ctx, capability.Drop{Trigger: capability.DroppedByHand, Capability: id})
	return config, err
}
