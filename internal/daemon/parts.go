package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pml-run/pml/internal/config"
	"github.com/pml-run/pml/internal/deno"
	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/jobs"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/search"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/store/pglite"
	"github.com/pml-run/pml/internal/supervise"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/upstream"
)

// parts are everything behind the faces, in the order in which they start.
type parts struct {
	deno     deno.Binary
	config   *configuration
	watchdog *supervise.Watchdog
	store    *store.Store
	upstream *upstream.Manager
	sandbox  *sandbox.Pool
	rules    *rules
	cache    *execute.Cache
	signing  []byte // signs what clients give back with an answer
	engine   *execute.Engine
	results  *execute.Results
	finder   *search.Finder
	found    *discovery
	jobs     *jobs.Runner

	closers []func() // in order of starting
}

// assemble starts the parts. On an error nothing of them is left.
func assemble(ctx context.Context, o Options, registry prometheus.Registerer) (*parts, error) {
	p := &parts{}
	steps := []func(context.Context, Options, prometheus.Registerer) error{
		p.findDeno, p.readConfig, p.startWatchdog, p.openStore, p.readRules, p.openCache, p.startUpstream, p.startDiscovery, p.startSandbox, p.startEngine, p.startJobs,
	}
	for _, step := range steps {
		if err := step(ctx, o, registry); err != nil {
			p.stop()
			return nil, err
		}
	}
	return p, nil
}

// stop stops what was started, the last first.
func (p *parts) stop() {
	for len(p.closers) > 0 {
		last := len(p.closers) - 1
		p.closers[last]()
		p.closers = p.closers[:last]
	}
}

func (p *parts) onStop(f func()) { p.closers = append(p.closers, f) }

// runtimeDir is where the packages that run in Deno are kept, beside Deno itself.
func (o Options) runtimeDir() string { return filepath.Join(o.ToolDirs[0], "runtime") }

// findDeno finds Deno and the packages of the embedded database, fetching what is
// missing: pml setup has nothing to do that a first start would not.
func (p *parts) findDeno(ctx context.Context, o Options, _ prometheus.Registerer) error {
	var err error
	p.deno, err = Setup(ctx, o)
	return err
}

// Setup finds or fetches Deno and the packages that run in it.
func Setup(ctx context.Context, o Options) (deno.Binary, error) {
	b, err := deno.Find(ctx, o.Deno, o.ToolDirs...)
	if err != nil && o.Deno == "" {
		o.Logger.InfoContext(ctx, "installing deno", "version", deno.Version, "folder", o.ToolDirs[0])
		var installErr error
		if b, installErr = deno.Install(ctx, o.ToolDirs[0], logWriter{o.Logger}); installErr != nil {
			return b, errors.Join(err, installErr)
		}
	} else if err != nil {
		return b, err
	}
	if o.DatabaseURL == "" {
		if err := pglite.Install(ctx, b.Path, o.runtimeDir()); err != nil {
			return b, fmt.Errorf("packages of the embedded database: %w", err)
		}
	}
	return b, nil
}

func (p *parts) readConfig(ctx context.Context, o Options, _ prometheus.Registerer) error {
	var err error
	p.config, err = readConfiguration(ctx, o)
	return err
}

func (p *parts) startWatchdog(_ context.Context, o Options, _ prometheus.Registerer) error {
	w, err := supervise.StartWatchdog(o.Binary)
	if err != nil {
		return err
	}
	p.watchdog = w
	p.onStop(w.Stop)
	return nil
}

func (p *parts) openStore(ctx context.Context, o Options, registry prometheus.Registerer) error {
	s, err := store.Open(ctx, store.Options{
		URL: o.DatabaseURL, DataDir: filepath.Join(o.Home, "data"), Deno: p.deno.Path, RuntimeDir: o.runtimeDir(),
		Logger: o.Logger, Watchdog: p.watchdog, Registerer: registry, ResultTTL: resultTTL(p.config.current().Results),
	})
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	p.store = s
	p.onStop(s.Close)
	return nil
}

func (p *parts) readRules(ctx context.Context, o Options, _ prometheus.Registerer) error {
	p.rules = &rules{store: p.store, config: p.config, logger: o.Logger.With("system", "policy")}
	p.config.applied = p.rules.Changed
	if err := p.readSigningKey(ctx); err != nil {
		return err
	}
	return p.rules.read(ctx)
}

func (p *parts) startUpstream(ctx context.Context, o Options, registry prometheus.Registerer) error {
	c := p.config.current()
	m := upstream.New(upstream.Options{
		Servers: c.Servers, Store: p.store, Logger: o.Logger, Watchdog: p.watchdog, Roots: c.Roots,
		Registerer: registry, Version: o.Version,
	})
	p.onStop(startConsequences(ctx, p.store, p.cache, m, o.Logger))
	if err := m.Start(ctx); err != nil {
		return fmt.Errorf("start servers: %w", err)
	}
	p.upstream = m
	p.onStop(m.Stop)
	p.onStop(p.config.watch(ctx, o, m))
	return nil
}

func (p *parts) startSandbox(ctx context.Context, o Options, registry prometheus.Registerer) error {
	c := p.config.current().Sandbox
	pool, err := sandbox.New(sandbox.Options{
		Deno: p.deno.Path, Self: o.Binary, Size: c.Size, Require: c.Require, JIT: c.JIT, MemoryMB: c.Limits.MemoryMB,
		Logger: o.Logger, Registerer: registry,
	})
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if err := pool.Start(ctx); err != nil {
		return fmt.Errorf("start sandbox: %w", err)
	}
	p.sandbox = pool
	p.onStop(pool.Stop)
	return nil
}

func (p *parts) startEngine(ctx context.Context, o Options, registry prometheus.Registerer) error {
	p.engine = execute.New(memory{p.store, p.found.Served, newLearnt(ctx, p.store, registry)}, p.upstream, p.sandbox, execute.Config{
		Logger: o.Logger, Version: o.Version, Limits: p.config.limits(), Exclusive: o.DatabaseURL == "",
		Brief: o.Brief, Rules: p.rules, Approvals: p.config.approvals, Matcher: matcher{p.finder}, Cache: p.cache,
	})
	if err := p.engine.Start(ctx); err != nil {
		return fmt.Errorf("start engine: %w", err)
	}
	p.onStop(p.engine.Stop)
	p.results = execute.NewResults(p.engine, p.store)
	return nil
}

// startDiscovery fills the search from the store's last known catalog; what takes
// long goes on in the background.
func (p *parts) startDiscovery(ctx context.Context, o Options, registry prometheus.Registerer) error {
	d := newDiscovery(p.store, o.Logger, registry)
	d.model, d.settings = p.openModel(o), p.modelSettings
	d.finder = search.NewFinder(p.upstream, search.FinderOptions{
		NotReady: p.notReady, Examples: p.store.Examples, Neighbours: d, Registerer: registry,
		Approval: func(t tool.Tool) string { return string(p.rules.Policy().Decide(t).Effect) },
	})
	if err := d.readFacts(ctx, true); err != nil {
		return fmt.Errorf("start search: %w", err)
	}
	p.upstream.OnChange(func(upstream.Change) { d.Changed() })
	p.onStop(d.start(ctx))
	p.finder, p.found = d.finder, d
	return nil
}

// notReady lists the servers whose tools may be missing or out of date.
func (p *parts) notReady() []search.ServerState {
	var out []search.ServerState
	for _, s := range p.upstream.States() {
		if s.State != "ready" {
			out = append(out, search.ServerState{Name: s.Name, State: s.State, Error: s.Error})
		}
	}
	return out
}

// resultTTL turns "0 keeps them" into the store's word for it.
func resultTTL(r config.Results) time.Duration {
	if ttl := r.TTL(); ttl > 0 {
		return ttl
	}
	return -1
}

// milliseconds as a Duration; 0 stays the default.
func milliseconds(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }
