package execute

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pml-run/pml/internal/capability"
)

// The levels at which a result may be found: in this gateway's memory, by all that the
// execution follows from, and in the database, as a result of the capability.
const (
	ExecutionLevel  = "execution"
	CapabilityLevel = "capability"
)

// maxCached is the largest result that is kept, in bytes.
const maxCached = 256 << 10

// CacheStore keeps results so that they outlive the gateway.
type CacheStore interface {
	// CachedResult finds a result with what a person has said about keeping it. A key
	// without a hash finds only the latter.
	CachedResult(ctx context.Context, k capability.CacheKey) (capability.Cached, error)
	// KeepResult keeps a result unless one of the servers was written to since a time.
	KeepResult(ctx context.Context, k capability.CacheKey, result json.RawMessage, servers []string, since time.Time, c capability.CacheConfig) (bool, error)
	DropCached(ctx context.Context, d capability.Drop) (int64, error)
	// DropFailing drops the results of a capability that fails in a row, and reports
	// whether it does.
	DropFailing(ctx context.Context, id uuid.UUID) (bool, error)
	CacheConfigs(ctx context.Context) (map[uuid.UUID]capability.CacheConfig, error)
}

// CacheSettings may change while the gateway runs.
type CacheSettings struct {
	Disabled bool
	TTL      time.Duration // of what is in memory; 0 means 5 min
	// Intents has an intent alone answered by the result of one that is almost the same.
	Intents bool
}

// CacheOptions of NewCache; the zero value of a field means its default.
type CacheOptions struct {
	Settings   func() CacheSettings // default: on
	MaxEntries int                  // in memory; default 1,000
	// Shared says that other gateways write through the same store. What they write
	// cannot be seen in time from here, so that nothing is kept in memory.
	Shared     bool
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	Now        func() time.Time
}

const (
	defaultCacheTTL     = 5 * time.Minute
	defaultCacheEntries = 1000
)

// Cache answers runs that only read with the result of an earlier run of the same
// program over the same arguments. It is never the cause of an error: what cannot be
// read or written is logged and passed over. A nil Cache has nothing and keeps nothing.
type Cache struct {
	store   CacheStore
	options CacheOptions
	hits    *prometheus.CounterVec
	misses  prometheus.Counter
	keeping sync.WaitGroup // results on their way into the store

	mu   sync.Mutex
	kept *otter.Cache[capability.CacheKey, keptResult]
	// intents are results by the intents that asked for them.
	intents *otter.Cache[intentKey, keptIntent]
	// writing counts the runs that have written to a server and have not ended: until
	// then nothing is answered or kept that uses it. writes counts such runs for ever, so
	// that a result can be told from one that was read before a write.
	writing map[string]int
	writes  map[string]uint64
	drops   uint64 // for any other reason
	emptied bool   // everything was dropped when the cache was seen to be disabled
}

// keptResult is a result in memory.
type keptResult struct {
	plan   *cachePlan
	name   string
	result json.RawMessage
	at     time.Time
}

// NewCache makes a Cache over a store.
func NewCache(store CacheStore, o CacheOptions) *Cache {
	if o.Settings == nil {
		o.Settings = func() CacheSettings { return CacheSettings{} }
	}
	if o.MaxEntries <= 0 {
		o.MaxEntries = defaultCacheEntries
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = o.Logger.With("system", "cache")
	c := &Cache{
		store: store, options: o, writing: map[string]int{}, writes: map[string]uint64{},
		kept:    otter.Must(&otter.Options[capability.CacheKey, keptResult]{MaximumSize: o.MaxEntries}),
		intents: otter.Must(&otter.Options[intentKey, keptIntent]{MaximumSize: o.MaxEntries}),
		hits:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pml_capability_cache_hits_total", Help: "Runs that were answered from a cache."}, []string{"level"}),
		misses:  prometheus.NewCounter(prometheus.CounterOpts{Name: "pml_capability_cache_misses_total", Help: "Runs that a cache might have answered and had nothing for."}),
	}
	if o.Registerer != nil {
		o.Registerer.MustRegister(c.hits, c.misses)
	}
	return c
}

// on reports whether there is a cache in force. One that is disabled misses writes;
// hence everything is dropped when it is first seen to be.
func (c *Cache) on(ctx context.Context) bool {
	if c == nil {
		return false
	}
	disabled := c.options.Settings().Disabled
	c.mu.Lock()
	empty := disabled && !c.emptied
	c.emptied = disabled
	c.mu.Unlock()
	if empty {
		if _, err := c.Drop(ctx, capability.Drop{Trigger: capability.DroppedDisabled}); err != nil {
			c.options.Logger.WarnContext(ctx, "the disabled cache was not emptied", "error", err)
		}
	}
	return !disabled
}

// ttl bounds the age of what is in memory.
func (c *Cache) ttl() time.Duration {
	if ttl := c.options.Settings().TTL; ttl > 0 {
		return ttl
	}
	return defaultCacheTTL
}

// found is a result that was kept.
type found struct {
	result json.RawMessage
	age    time.Duration
	level  string
}

// find looks for a plan's result, and prepares the plan for the result of a run where
// there is none: after it, plan.keep says whether that may be kept. A fresh run is not
// answered from the cache.
func (c *Cache) find(ctx context.Context, p *cachePlan, fresh bool) (found, bool) {
	if !c.mark(p) {
		return found{}, false
	}
	if f, ok := c.inMemory(p.key); ok && !fresh {
		return f, c.hit(ExecutionLevel)
	}
	key := p.key
	if fresh {
		key.Hash = ""
	}
	known, err := c.store.CachedResult(ctx, key)
	if err == nil {
		err = c.allow(ctx, p, known.Config)
	}
	if err != nil {
		c.options.Logger.WarnContext(ctx, "the cache was not read", "error", err)
		return found{}, false
	}
	p.config, p.since = known.Config, known.Now
	if !p.keep || fresh {
		return found{}, false
	}
	if !known.Found || !c.unchanged(p) {
		c.misses.Inc()
		return found{}, false
	}
	return found{known.Result, max(known.Now.Sub(known.At), 0), CapabilityLevel}, c.hit(CapabilityLevel)
}

// hit counts a hit; it is always true.
func (c *Cache) hit(level string) bool {
	c.hits.WithLabelValues(level).Inc()
	return true
}

// allow decides whether a plan's result may be kept, by what persons have said.
func (c *Cache) allow(ctx context.Context, p *cachePlan, config capability.CacheConfig) error {
	p.keep = !config.Off() && (p.plain || config.Trusted())
	if !p.keep || len(p.inner) == 0 {
		return nil
	}
	configs, err := c.store.CacheConfigs(ctx)
	if err != nil || slices.ContainsFunc(p.inner, func(id uuid.UUID) bool { return configs[id].Off() }) {
		p.keep = false
	}
	return err
}

func (c *Cache) inMemory(k capability.CacheKey) (found, bool) {
	kept, ok := c.kept.GetIfPresent(k)
	if !ok {
		return found{}, false
	}
	age := c.options.Now().Sub(kept.at)
	if age >= c.ttl() {
		c.kept.Invalidate(k)
		return found{}, false
	}
	return found{kept.result, max(age, 0), ExecutionLevel}, true
}

// keepInMemory keeps the result of a run that began at a time, unless one of its
// servers was written to since it was looked for.
func (c *Cache) keepInMemory(p *cachePlan, name string, result json.RawMessage, at time.Time) {
	if c.options.Shared {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unchangedLocked(p) {
		c.kept.Set(p.key, keptResult{plan: p, name: name, result: result, at: at})
	}
}

// keepInStore keeps a result for after this gateway; the answer need not wait for it.
// The store sees for itself what was written meanwhile.
func (c *Cache) keepInStore(ctx context.Context, p *cachePlan, result json.RawMessage) {
	if !c.unchanged(p) {
		return
	}
	c.keeping.Go(func() {
		if _, err := c.store.KeepResult(ctx, p.key, result, p.servers, p.since, p.config); err != nil {
			c.options.Logger.WarnContext(ctx, "a result was not kept in the cache", "error", err)
		}
	})
}

// wait waits for what is on its way into the store.
func (c *Cache) wait() {
	if c != nil {
		c.keeping.Wait()
	}
}

// Entries lists the results in memory, the newest first.
func (c *Cache) Entries() []capability.CacheEntry {
	out := []capability.CacheEntry{}
	ttl, now := c.ttl(), c.options.Now()
	for k, e := range c.kept.All() {
		if now.Sub(e.at) >= ttl {
			continue
		}
		out = append(out, capability.CacheEntry{
			Level: ExecutionLevel, Capability: k.Capability, Name: e.name, Version: k.Version, Hash: k.Hash,
			Bytes: len(e.result), At: e.at, ExpiresAt: e.at.Add(ttl),
		})
	}
	slices.SortFunc(out, func(a, b capability.CacheEntry) int { return b.At.Compare(a.At) })
	return out
}
