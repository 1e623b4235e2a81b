package upstream

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pml-run/pml/internal/config"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/supervise"
	"github.com/pml-run/pml/internal/tool"
)

// CatalogStore remembers the catalog between two runs of the gateway.
type CatalogStore interface {
	// Catalog returns the tools of all servers as they were last saved.
	Catalog(ctx context.Context) ([]tool.Tool, error)
	// SaveCatalog replaces a server's tools and returns those that it knew otherwise.
	SaveCatalog(ctx context.Context, server string, tools []tool.Tool) (changed []tool.ID, err error)
	// SaveServer remembers a server's state.
	SaveServer(ctx context.Context, s tool.ServerState) error
}

// ElicitFunc answers a server's question to the person.
type ElicitFunc func(ctx context.Context, server string, p *mcp.ElicitParams) (*mcp.ElicitResult, error)

// Options of a Manager. The zero value of each is of use.
type Options struct {
	Servers map[string]config.Server
	// Store is optional: without it nothing is remembered.
	Store  CatalogStore
	Logger *slog.Logger
	// Watchdog ends the servers when this process dies.
	Watchdog *supervise.Watchdog
	// Roots are the folders (or file URIs) that servers are told about.
	Roots []string
	// Elicit answers servers' questions; without it they are declined.
	Elicit     ElicitFunc
	Registerer prometheus.Registerer
	Version    string
	// Environ is the environment of which servers get the harmless part;
	// default config.Environ().
	Environ []string
	// MaxMessage bounds one message of a server in bytes; default 64 MiB.
	MaxMessage int
	// ConnectTimeout bounds start, handshake and listing; default 30 s.
	ConnectTimeout time.Duration
}

// Manager keeps the sessions to all servers.
type Manager struct {
	opts           Options
	log            *slog.Logger
	metrics        *metrics
	now            func() time.Time
	lineLimit      int
	connectTimeout time.Duration

	catalog atomic.Pointer[tool.Catalog]
	applyMu sync.Mutex // one Start, Apply or Stop at a time; before mu

	mu       sync.Mutex
	ctx      context.Context //nolint:containedctx // the one context between Start and Stop
	stop     context.CancelCauseFunc
	links    map[string]*link
	tools    map[string][]tool.Tool
	onChange []func(Change)
}

// New makes a Manager; Start starts it.
func New(o Options) *Manager {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxMessage == 0 {
		o.MaxMessage = 64 << 20
	}
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = connectTimeout
	}
	if o.Environ == nil {
		o.Environ = config.Environ()
	}
	m := &Manager{
		opts: o, log: o.Logger.With("system", "upstream"), metrics: newMetrics(o.Registerer),
		now: time.Now, lineLimit: o.MaxMessage, connectTimeout: o.ConnectTimeout,
		links: map[string]*link{}, tools: map[string][]tool.Tool{},
	}
	m.catalog.Store(tool.NewCatalog(nil))
	return m
}

// Start loads the catalog of the last run and begins to start the servers, all at
// once. It does not wait for them: until a server is ready its last known tools
// are in the catalog.
func (m *Manager) Start(ctx context.Context) error {
	m.applyMu.Lock()
	defer m.applyMu.Unlock()
	known, err := m.remembered(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.ctx, m.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	for _, t := range known {
		server := t.ID.Server()
		if c, ok := m.opts.Servers[server]; ok && !c.Disabled {
			m.tools[server] = append(m.tools[server], t)
		}
	}
	m.mu.Unlock()
	m.apply(m.opts.Servers)
	return nil
}

// remembered reads the store; without one there is nothing to remember.
func (m *Manager) remembered(ctx context.Context) ([]tool.Tool, error) {
	if m.opts.Store == nil {
		return nil, nil
	}
	return m.opts.Store.Catalog(ctx)
}

// Stop ends all servers, in parallel, and returns when nothing of them is left.
// It may be called twice and without Start.
func (m *Manager) Stop() {
	m.applyMu.Lock()
	defer m.applyMu.Unlock()
	m.mu.Lock()
	links, stop := m.links, m.stop
	m.links, m.ctx = map[string]*link{}, nil
	m.mu.Unlock()
	if stop != nil {
		stop(errStopping)
	}
	for _, l := range links {
		<-l.done
	}
}

// Apply puts another set of servers into force. Only those that differ are
// stopped and started; it returns when the old ones are gone.
func (m *Manager) Apply(servers map[string]config.Server) {
	m.applyMu.Lock()
	defer m.applyMu.Unlock()
	m.apply(servers)
}

func (m *Manager) apply(servers map[string]config.Server) {
	m.mu.Lock()
	if m.ctx == nil {
		m.mu.Unlock()
		return
	}
	var gone []*link
	for name, l := range m.links {
		if c, ok := servers[name]; !ok || !c.Equal(l.config) {
			delete(m.links, name)
			gone = append(gone, l)
		}
		if c, ok := servers[name]; !ok || c.Disabled {
			delete(m.tools, name)
		}
	}
	m.mu.Unlock()
	for _, l := range gone {
		l.cancel(errStopping)
	}
	for _, l := range gone {
		<-l.done
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, c := range servers {
		if m.links[name] != nil {
			continue
		}
		l := newLink(m, name, c)
		ctx, cancel := context.WithCancelCause(m.ctx)
		l.cancel = cancel
		m.links[name] = l
		go l.run(ctx) // pairs with <-l.done in apply and Stop
	}
	m.rebuildLocked()
}

// rebuildLocked makes the snapshot anew.
func (m *Manager) rebuildLocked() {
	servers := make(map[string][]tool.Tool, len(m.links))
	for name, l := range m.links {
		if !l.config.Disabled {
			servers[name] = m.tools[name]
		}
	}
	m.catalog.Store(tool.NewCatalog(servers))
}

// Change names the tools that are not as before.
type Change struct {
	New     []tool.ID
	Altered []tool.ID // their schemas are others, or they are gone
}

// IDs are all tools of the change.
func (c Change) IDs() []tool.ID { return slices.Concat(c.New, c.Altered) }

// publish puts a server's tools into the catalog and tells who wants to know.
func (m *Manager) publish(ctx context.Context, server string, tools []tool.Tool) {
	m.mu.Lock()
	change := diff(m.tools[server], tools)
	m.tools[server] = tools
	m.rebuildLocked()
	listeners := slices.Clone(m.onChange)
	m.mu.Unlock()
	if m.opts.Store != nil {
		saved, err := m.opts.Store.SaveCatalog(ctx, server, tools)
		if err != nil {
			m.log.ErrorContext(ctx, "catalog could not be saved", "server", server, "error", err)
		}
		change.Altered = append(change.Altered, saved...)
		change.New = slices.DeleteFunc(change.New, func(id tool.ID) bool { return slices.Contains(saved, id) })
	}
	slices.Sort(change.Altered)
	change.Altered = slices.Compact(change.Altered)
	if len(change.IDs()) == 0 {
		return
	}
	m.log.InfoContext(ctx, "tools have changed", "server", server, "tools", len(tools), "new", len(change.New), "altered", len(change.Altered))
	for _, f := range listeners {
		f(change)
	}
}

// diff compares two lists of a server's tools.
func diff(before, after []tool.Tool) Change {
	old := make(map[tool.ID]string, len(before))
	for _, t := range before {
		old[t.ID] = t.SchemaHash
	}
	var c Change
	for _, t := range after {
		switch hash, known := old[t.ID]; {
		case !known:
			c.New = append(c.New, t.ID)
		case hash != t.SchemaHash:
			c.Altered = append(c.Altered, t.ID)
		}
		delete(old, t.ID)
	}
	c.Altered = slices.AppendSeq(c.Altered, maps.Keys(old))
	return c
}

// saveState remembers a server's state. Failing to is no reason to stop.
func (m *Manager) saveState(ctx context.Context, l *link) {
	if m.opts.Store == nil {
		return
	}
	if err := m.opts.Store.SaveServer(ctx, l.remember()); err != nil && ctx.Err() == nil {
		m.log.ErrorContext(ctx, "state of a server could not be saved", "server", l.name, "error", err)
	}
}

// OnChange calls f with the tools that are not as before, after the catalog has them. f is called from a server's goroutine and must be quick.
func (m *Manager) OnChange(f func(Change)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onChange = append(m.onChange, f)
}

// Catalog is the current snapshot.
func (m *Manager) Catalog() *tool.Catalog { return m.catalog.Load() }

// Call calls a tool by its exact id and returns the bytes of the CallToolResult,
// isError or not. onProgress may be nil. The error is a *fault.Error, or the cause
// of ctx. A call is sent at most once.
func (m *Manager) Call(ctx context.Context, id tool.ID, args json.RawMessage, onProgress func(done, total float64, message string)) (json.RawMessage, error) {
	m.mu.Lock()
	l := m.links[id.Server()]
	m.mu.Unlock()
	if l == nil {
		err := m.known(id)
		if err == nil {
			err = fault.New(fault.Unavailable, "the gateway is stopping")
		}
		return nil, err
	}
	began := m.now()
	raw, err := l.call(ctx, id, args, onProgress)
	m.metrics.called(l.name, began, m.now(), err)
	return raw, withTool(err, id)
}

// known finds a tool by its exact id, or explains.
func (m *Manager) known(id tool.ID) error {
	c := m.Catalog()
	if _, ok := c.Get(id); ok {
		return nil
	}
	t, err := c.Resolve(id.Server(), id.Name())
	if err == nil {
		return fault.New(fault.UnknownTool, "%s is no exact name", id).WithHint("call %s", t.ID)
	}
	return err
}

// withTool names the tool in a fault that does not yet.
func withTool(err error, id tool.ID) error {
	if f, ok := err.(*fault.Error); ok && f.Tool == "" { //nolint:errorlint // a wrapped one is not ours to copy
		c := *f
		c.Tool = string(id)
		return &c
	}
	return err
}
