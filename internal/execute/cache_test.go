package execute

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// sameStore is a fakeStore for which one program is one capability.
type sameStore struct {
	*fakeStore
	lost []uuid.UUID
}

func (sameStore) UpsertCandidate(_ context.Context, c capability.Capability) (capability.Capability, bool, error) {
	c.ID, c.Version, c.Name = uuid.NewSHA1(uuid.Nil, []byte(c.HashShape)), 1, "it"
	return c, false, nil
}

func (s sameStore) LostRuns(context.Context, time.Time, string) ([]uuid.UUID, error) {
	return s.lost, nil
}

func (sameStore) ChildRuns(context.Context, uuid.UUID) ([]trace.Run, error) {
	return nil, errors.New("not to be taken up here")
}

// fakeCacheStore keeps results in a map, and every drop.
type fakeCacheStore struct {
	mu      sync.Mutex
	kept    map[capability.CacheKey]json.RawMessage
	servers map[capability.CacheKey][]string
	drops   []capability.Drop
	configs map[uuid.UUID]capability.CacheConfig
	config  capability.CacheConfig // of every capability
	failing bool
	err     error
}

func (s *fakeCacheStore) CachedResult(_ context.Context, k capability.CacheKey) (capability.Cached, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	result, ok := s.kept[k]
	return capability.Cached{Config: s.config, Found: ok, Result: result, At: time.Unix(0, 0), Now: time.Unix(7, 0)}, s.err
}

func (s *fakeCacheStore) KeepResult(_ context.Context, k capability.CacheKey, result json.RawMessage, servers []string, _ time.Time, _ capability.CacheConfig) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[k], s.servers[k] = result, servers
	return true, s.err
}

func (s *fakeCacheStore) DropCached(_ context.Context, d capability.Drop) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drops = append(s.drops, d)
	if s.err != nil {
		return 0, s.err
	}
	n := len(s.kept)
	clear(s.kept)
	return int64(n), nil
}

func (s *fakeCacheStore) DropFailing(context.Context, uuid.UUID) (bool, error) {
	return s.failing, s.err
}

func (s *fakeCacheStore) CacheConfigs(context.Context) (map[uuid.UUID]capability.CacheConfig, error) {
	return s.configs, s.err
}

// cacheBundle is an engine with a cache whose program reads and may do more.
type cacheBundle struct {
	*bundle
	cache    *Cache
	store    *fakeCacheStore
	settings CacheSettings
	now      time.Time
	policy   *policy.Policy
	runs     int
	also     fakeSandbox // after the read
	prints   bool
}

// printer is a sandbox whose program may print.
type printer struct {
	fakeSandbox
	b *cacheBundle
}

func (p printer) Run(ctx context.Context, program sandbox.Program, host sandbox.Host) (sandbox.Outcome, error) {
	o, err := p.fakeSandbox.Run(ctx, program, host)
	if p.b.prints {
		o.Logs = []string{"a line"}
	}
	return o, err
}

func (b *cacheBundle) Policy() *policy.Policy  { return b.policy }
func (b *cacheBundle) Changed(context.Context) {}

// reads is a program over the reading tool.
const reads = `return await mcp.fs.read({ path: args.path });`

func setupCache(t *testing.T, edit func(*CacheOptions)) *cacheBundle {
	t.Helper()
	ev := &events{}
	b := &cacheBundle{now: time.Unix(100, 0), policy: policy.New(nil, nil, policy.AlwaysAllow)}
	b.bundle = &bundle{events: ev, store: &fakeStore{events: ev}, upstream: &fakeUpstream{events: ev}}
	b.store = &fakeCacheStore{kept: map[capability.CacheKey]json.RawMessage{}, servers: map[capability.CacheKey][]string{}}
	o := CacheOptions{Settings: func() CacheSettings { return b.settings }, Now: func() time.Time { return b.now }}
	if edit != nil {
		edit(&o)
	}
	b.cache = NewCache(b.store, o)
	program := fakeSandbox(func(ctx context.Context, host sandbox.Host) (json.RawMessage, error) {
		b.runs++
		v, err := call(ctx, host, "read", `{}`)
		if err == nil && b.also != nil {
			return b.also(ctx, host)
		}
		return v, err
	})
	b.engine = New(sameStore{fakeStore: b.bundle.store}, b.upstream, printer{program, b}, Config{Cache: b.cache, Now: func() time.Time { return b.now }, Rules: b})
	if err := b.engine.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.engine.Stop)
	return b
}

// run runs a program and waits until its result is kept.
func (b *cacheBundle) run(t *testing.T, code string, edit func(*Request)) *Answer {
	t.Helper()
	a := b.engine.Execute(t.Context(), request(func(r *Request) {
		r.Implementation.Code = code
		if edit != nil {
			edit(r)
		}
	}))
	b.cache.wait()
	return a
}

func no(r *Request) {
	never := false
	r.Options.UseCache = &never
}

func withPath(path string) func(*Request) {
	return func(r *Request) { r.Args = mustJSON(map[string]string{"path": path}) }
}

// checkRuns fails when the program was not carried out n times.
func (b *cacheBundle) checkRuns(t *testing.T, what string, n int) {
	t.Helper()
	if b.runs != n {
		t.Errorf("%s: carried out %d times, not %d", what, b.runs, n)
	}
}

func TestTheSameRunIsAnsweredFromMemory(t *testing.T) {
	registry := prometheus.NewRegistry()
	b := setupCache(t, func(o *CacheOptions) { o.Registerer = registry })
	first := b.run(t, reads, withPath("a"))
	b.now = b.now.Add(2 * time.Second)
	second := b.run(t, "// the same\n"+reads, withPath("a"))
	b.checkRuns(t, "the same", 1)
	if second.CacheHit != ExecutionLevel || second.CacheAgeMS != 2000 || string(second.Result) != string(first.Result) || second.Status != StatusSuccess {
		t.Errorf("got %+v after %+v", second, first)
	}
	if second.WorkflowID == first.WorkflowID || second.Capability == nil || len(second.Trace.ToolsCalled) != 0 {
		t.Errorf("a hit is no run of its own: %+v", second)
	}
	stored := b.bundle.store.finished
	if len(stored) != 2 || stored[1].CacheHit != ExecutionLevel || !stored[1].Success || stored[1].Run.Status != trace.Succeeded || string(stored[1].Run.Result) != string(first.Result) {
		t.Errorf("stored %+v", stored)
	}
	b.run(t, reads, withPath("b"))
	b.checkRuns(t, "another argument", 2)
	b.run(t, `return [await mcp.fs.read({ path: args.path })];`, withPath("a"))
	b.checkRuns(t, "another program", 3)
	b.run(t, reads, func(r *Request) { withPath("a")(r); no(r) })
	b.checkRuns(t, "use_cache false", 4)
	b.now = b.now.Add(defaultCacheTTL)
	b.store.kept = map[capability.CacheKey]json.RawMessage{}
	b.run(t, reads, withPath("a"))
	b.checkRuns(t, "too old", 5)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range families {
		counts[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue()
	}
	if counts["pml_capability_cache_hits_total"] != 1 || counts["pml_capability_cache_misses_total"] != 4 {
		t.Errorf("counted %v", counts)
	}
}

// TestAFreshRunReplacesTheOldResult: who asked for the present gets no older answer later.
func TestAFreshRunReplacesTheOldResult(t *testing.T) {
	b := setupCache(t, nil)
	b.run(t, reads, nil)
	b.upstream.call = func(context.Context, tool.ID) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[{"type":"text","text":"new"}]}`), nil
	}
	fresh, later := b.run(t, reads, no), b.run(t, reads, nil)
	if fresh.CacheHit != "" || later.CacheHit == "" || string(later.Result) != string(fresh.Result) {
		t.Errorf("fresh %+v, later %+v", fresh, later)
	}
}

func TestAResultOutlivesTheGateway(t *testing.T) {
	b := setupCache(t, nil)
	first := b.run(t, reads, nil)
	again := setupCache(t, nil)
	again.store.kept, again.store.servers = b.store.kept, b.store.servers
	second := again.run(t, reads, nil)
	again.checkRuns(t, "after a restart", 0)
	if second.CacheHit != CapabilityLevel || second.CacheAgeMS != 7000 || string(second.Result) != string(first.Result) {
		t.Errorf("got %+v", second)
	}
}

func TestWhatIsNotKept(t *testing.T) {
	deny := policy.New([]policy.Rule{{Pattern: "fs:read", Effect: policy.Deny}}, nil, policy.AlwaysAllow)
	for name, c := range map[string]struct {
		code  string
		edit  func(*Request)
		setup func(*cacheBundle)
		also  fakeSandbox
	}{
		"a write in a branch":    {code: `const r = await mcp.fs.read({}); if (args.never) await mcp.fs.write({}); return r;`},
		"a computed name":        {code: `return await mcp.fs[args.name]({});`},
		"a server that escapes":  {code: `const f = (s) => globalThis.g(s); f(mcp.fs); return await mcp.fs.read({});`},
		"the time":               {code: `return [await mcp.fs.read({}), Date.now()];`},
		"chance":                 {code: `return [await mcp.fs.read({}), Math.random()];`},
		"no tool":                {code: `return 1;`},
		"turned off for all":     {setup: func(b *cacheBundle) { b.settings.Disabled = true }},
		"turned off for it":      {setup: func(b *cacheBundle) { off := false; b.store.config.Cacheable = &off }},
		"a cache that is broken": {setup: func(b *cacheBundle) { b.store.err = errors.New("broken") }},
		"a denied tool":          {setup: func(b *cacheBundle) { b.run(t, reads, nil); b.runs--; b.policy = deny }},
		"a call that failed": {also: func(ctx context.Context, h sandbox.Host) (json.RawMessage, error) {
			_, _ = call(ctx, h, "raed", `{}`)
			return json.RawMessage(`1`), nil
		}},
		"a call nobody has seen": {also: func(ctx context.Context, h sandbox.Host) (json.RawMessage, error) { return call(ctx, h, "write", `{}`) }},
		"a program that failed": {also: func(context.Context, sandbox.Host) (json.RawMessage, error) {
			return nil, fault.New(fault.RuntimeError, "x")
		}},
		"a reference to a call": {also: func(context.Context, sandbox.Host) (json.RawMessage, error) {
			return json.RawMessage(`{"data_ref":"blob:0"}`), nil
		}},
		"what it printed": {setup: func(b *cacheBundle) { b.prints = true }},
		"a result that is too big": {also: func(context.Context, sandbox.Host) (json.RawMessage, error) {
			return mustJSON(make([]byte, maxCached)), nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := setupCache(t, nil)
			b.also = c.also
			if c.setup != nil {
				c.setup(b)
			}
			if c.code == "" {
				c.code = reads
			}
			first, second := b.run(t, c.code, c.edit), b.run(t, c.code, c.edit)
			if first.CacheHit != "" || second.CacheHit != "" {
				t.Errorf("answered from the cache: %+v", second)
			}
			if name == "a denied tool" {
				if second.Error == nil || second.Error.Code != fault.Denied {
					t.Errorf("got %+v", second)
				}
				return
			}
			b.checkRuns(t, "twice", 2)
		})
	}
}

func TestAPersonVouchesForToolsThatClaimNothing(t *testing.T) {
	const code = `return [await mcp.fs.read({}), await mcp.fs.write({}), Date.now()];`
	b := setupCache(t, nil)
	b.also = func(ctx context.Context, h sandbox.Host) (json.RawMessage, error) { return call(ctx, h, "write", `{}`) }
	on := true
	b.store.config.Cacheable = &on
	b.run(t, code, nil)
	if a := b.run(t, code, nil); a.CacheHit != ExecutionLevel || len(b.store.drops) != 0 {
		t.Errorf("got %+v, drops %v", a, b.store.drops)
	}
}

func TestClaims(t *testing.T) {
	yes, never := true, false
	for name, c := range map[string]struct {
		a    tool.Annotations
		want bool
	}{
		"nothing":         {tool.Annotations{}, false},
		"reads":           {tool.Annotations{ReadOnly: &yes}, false},
		"does not read":   {tool.Annotations{ReadOnly: &never}, true},
		"destroys":        {tool.Annotations{Destructive: &yes}, true},
		"does not":        {tool.Annotations{Destructive: &never}, false},
		"reads, destroys": {tool.Annotations{ReadOnly: &yes, Destructive: &yes}, false},
	} {
		if got := claimsToWrite(tool.Tool{Annotations: c.a}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestAWriteDropsBeforeItsAnswer: while a run that has written goes on, and after it,
// nothing that was read before is given out or kept.
func TestAWriteDropsBeforeItsAnswer(t *testing.T) {
	b := setupCache(t, nil)
	b.run(t, reads, withPath("a"))
	b.also = func(ctx context.Context, h sandbox.Host) (json.RawMessage, error) {
		if _, err := call(ctx, h, "write", `{}`); err != nil {
			return nil, err
		}
		b.also = nil
		if got := b.cache.Entries(); len(got) != 0 {
			t.Errorf("in memory after a write: %+v", got)
		}
		if a := b.engine.Execute(ctx, request(func(r *Request) { r.Implementation.Code = reads; withPath("a")(r) })); a.CacheHit != "" {
			t.Errorf("old answer while a run writes: %+v", a)
		}
		return json.RawMessage(`1`), nil
	}
	b.run(t, `await mcp.fs.read({}); await mcp.fs.write({});`, nil)
	if len(b.store.drops) != 1 || b.store.drops[0].Trigger != capability.DroppedByWrite || !slices.Equal(b.store.drops[0].Writers, []tool.ID{"fs:write"}) || b.store.drops[0].InMemory != 1 {
		t.Errorf("drops %+v", b.store.drops)
	}
	before := b.runs
	b.run(t, reads, withPath("a"))
	b.checkRuns(t, "after a write", before+1)
	if a := b.run(t, reads, withPath("a")); a.CacheHit == "" {
		t.Error("the cache stays off after a write")
	}
}

// TestAResultReadBeforeAWriteIsNotKept: a slow reader must not bring back what a write
// that came meanwhile has made old.
func TestAResultReadBeforeAWriteIsNotKept(t *testing.T) {
	b := setupCache(t, nil)
	b.also = func(ctx context.Context, _ sandbox.Host) (json.RawMessage, error) {
		b.also = func(ctx context.Context, h sandbox.Host) (json.RawMessage, error) { return call(ctx, h, "write", `{}`) }
		a := b.engine.Execute(ctx, request(func(r *Request) { r.Implementation.Code = `await mcp.fs.read({}); await mcp.fs.write({});` }))
		b.also = nil
		return json.RawMessage(`"old"`), asError(a)
	}
	b.run(t, reads, nil)
	b.engine.Stop()
	if len(b.cache.Entries()) != 0 || len(b.store.kept) != 0 {
		t.Errorf("kept in memory %v, in the store %v", b.cache.Entries(), b.store.kept)
	}
}

// asError is nil for an answer without an error.
func asError(a *Answer) error {
	if a.Error != nil {
		return a.Error
	}
	return nil
}

func TestADropThatFailsLeavesTheServerUncached(t *testing.T) {
	b := setupCache(t, nil)
	b.run(t, reads, nil)
	b.also = func(ctx context.Context, h sandbox.Host) (json.RawMessage, error) { return call(ctx, h, "write", `{}`) }
	b.store.err = errors.New("down")
	if a := b.run(t, `await mcp.fs.read({}); await mcp.fs.write({});`, nil); a.Status != StatusSuccess {
		t.Fatalf("the run failed with the cache: %+v", a.Error)
	}
	b.store.err, b.also = nil, nil
	b.run(t, reads, nil)
	if a := b.run(t, reads, nil); a.CacheHit != "" {
		t.Errorf("got %+v", a)
	}
}

func TestDrops(t *testing.T) {
	for name, c := range map[string]struct {
		drop capability.Drop
		goes bool
	}{
		"all":                {capability.Drop{Trigger: capability.DroppedDaily}, true},
		"its tool":           {capability.Drop{Trigger: capability.DroppedByTool, Tools: []tool.ID{"fs:read"}}, true},
		"another tool":       {capability.Drop{Trigger: capability.DroppedByTool, Tools: []tool.ID{"fs:write"}}, false},
		"another capability": {capability.Drop{Trigger: capability.DroppedByHand, Capability: uuid.New()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := setupCache(t, nil)
			b.run(t, reads, nil)
			if _, err := b.cache.Drop(t.Context(), c.drop); err != nil {
				t.Fatal(err)
			}
			if gone := len(b.cache.Entries()) == 0; gone != c.goes {
				t.Errorf("gone: %t", gone)
			}
		})
	}
}

func TestACapabilityThatFailsInARowIsDropped(t *testing.T) {
	b := setupCache(t, nil)
	b.run(t, reads, withPath("a"))
	b.also = func(context.Context, sandbox.Host) (json.RawMessage, error) {
		return nil, fault.New(fault.RuntimeError, "x")
	}
	b.run(t, reads, withPath("b"))
	if len(b.cache.Entries()) != 1 {
		t.Error("one failure has dropped")
	}
	b.store.failing = true
	b.run(t, reads, withPath("b"))
	if len(b.cache.Entries()) != 0 {
		t.Error("still there")
	}
}

// TestALostRunDropsEverything: its gateway may have ended between a write and the drop.
func TestALostRunDropsEverything(t *testing.T) {
	b := setupCache(t, nil)
	b.run(t, reads, nil)
	next := New(sameStore{b.bundle.store, []uuid.UUID{uuid.New()}}, b.upstream, nil, Config{Cache: b.cache})
	if err := next.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer next.Stop()
	if len(b.cache.Entries()) != 0 || len(b.store.kept) != 0 || b.store.drops[0].Trigger != capability.DroppedByLoss {
		t.Errorf("in memory %v, in the store %v, drops %v", b.cache.Entries(), b.store.kept, b.store.drops)
	}
}

func TestNothingIsInMemoryWhereOthersWrite(t *testing.T) {
	b := setupCache(t, func(o *CacheOptions) { o.Shared = true })
	b.run(t, reads, nil)
	if got := b.cache.Entries(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestCanonicalJSON(t *testing.T) {
	for in, want := range map[string]string{
		``:                                  `null`,
		`{"b":1, "a":{"d":[2,1],"c":null}}`: `{"a":{"c":null,"d":[2,1]},"b":1}`,
		`{"n":123456789012345678901234567}`: `{"n":123456789012345678901234567}`,
		`{"n":123456789012345678901234568}`: `{"n":123456789012345678901234568}`,
		`{broken`:                           `"{broken"`,
	} {
		if got := string(canonicalJSON(json.RawMessage(in))); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}
