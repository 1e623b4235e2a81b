package execute

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/sandbox"
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

// fakeCacheStore keeps results in a map, and every drop. Its clock counts what it was
// asked to do.
type fakeCacheStore struct {
	mu      sync.Mutex
	clock   int64
	kept    map[capability.CacheKey]keptRow
	written map[string]time.Time // when a server was written to last
	drops   []capability.Drop
	configs map[uuid.UUID]capability.CacheConfig
	config  capability.CacheConfig // of every capability
	failing bool
	err     error
}

type keptRow struct {
	result json.RawMessage
	at     time.Time
}

func newFakeCacheStore() *fakeCacheStore {
	return &fakeCacheStore{kept: map[capability.CacheKey]keptRow{}, written: map[string]time.Time{}}
}

func (s *fakeCacheStore) tickLocked() time.Time {
	s.clock++
	return time.Unix(s.clock, 0)
}

func (s *fakeCacheStore) CachedResult(_ context.Context, k capability.CacheKey) (capability.Cached, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, ok := s.kept[k]
	return capability.Cached{Config: s.config, Found: ok, Result: row.result, At: row.at, Now: s.tickLocked()}, s.err
}

func (s *fakeCacheStore) KeepResult(_ context.Context, k capability.CacheKey, result json.RawMessage, servers []string, since time.Time, _ capability.CacheConfig) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range servers {
		if !s.written[server].Before(since) {
			return false, s.err
		}
	}
	s.kept[k] = keptRow{result, s.tickLocked()}
	return true, s.err
}

func (s *fakeCacheStore) DropCached(_ context.Context, d capability.Drop) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drops = append(s.drops, d)
	if s.err != nil {
		return 0, s.err
	}
	for _, id := range d.Writers {
		s.written[id.Server()] = s.tickLocked()
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
	runs     atomic.Int64
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

// began is when the tests of the cache begin.
var began = time.Unix(100, 0)

func setupCache(t *testing.T, edit func(*CacheOptions)) *cacheBundle {
	t.Helper()
	ev := &events{}
	b := &cacheBundle{now: began, policy: policy.New(nil, nil, policy.AlwaysAllow)}
	b.bundle = &bundle{events: ev, store: &fakeStore{events: ev}, upstream: &fakeUpstream{events: ev}}
	b.store = newFakeCacheStore()
	o := CacheOptions{Settings: func() CacheSettings { return b.settings }, Now: func() time.Time { return b.now }}
	if edit != nil {
		edit(&o)
	}
	b.cache = NewCache(b.store, o)
	program := fakeSandbox(func(ctx context.Context, host sandbox.Host) (json.RawMessage, error) {
		b.runs.Add(1)
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
func (b *cacheBundle) checkRuns(t *testing.T, what string, n int64) {
	t.Helper()
	if got := b.runs.Load(); got != n {
		t.Errorf("%s: carried out %d times, not %d", what, got, n)
	}
}
