package execute

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/tool"
)

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
	before := b.runs.Load()
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
		"all":                {capability.Drop{Trigger: capability.DroppedByHand}, true},
		"older ones":         {capability.Drop{Trigger: capability.DroppedDaily, Before: began}, false},
		"all until now":      {capability.Drop{Trigger: capability.DroppedDaily, Before: began.AddDate(0, 0, 1)}, true},
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

// TestNoAnswerIsOlderThanAWrite: readers and writers at once. A run that is asked for
// after a write was answered sees it, whether it is carried out or not.
func TestNoAnswerIsOlderThanAWrite(t *testing.T) {
	var value atomic.Int64
	store := newFakeCacheStore()
	ev := &events{}
	up := &fakeUpstream{events: ev, call: func(_ context.Context, id tool.ID) (json.RawMessage, error) {
		if id == "fs:write" {
			value.Add(1)
		}
		return mustJSON(map[string]any{"content": []any{}, "structuredContent": value.Load()}), nil
	}}
	program := byCode(func(ctx context.Context, code string, host sandbox.Host) (json.RawMessage, error) {
		if code == reads {
			return call(ctx, host, "read", `{}`)
		}
		return call(ctx, host, "write", `{}`)
	})
	cache := NewCache(store, CacheOptions{})
	e := New(sameStore{fakeStore: &fakeStore{events: ev}}, up, program, Config{Cache: cache})
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	ask := func(code string) (int64, string) {
		a := e.Execute(t.Context(), request(func(r *Request) { r.Implementation.Code = code }))
		n, err := strconv.ParseInt(string(a.Result), 10, 64)
		if err != nil {
			t.Errorf("%+v: %v", a, err)
		}
		return n, a.CacheHit
	}
	var wg sync.WaitGroup
	var answered, hits atomic.Int64 // the largest value that a write has answered
	for range 4 {
		wg.Go(func() {
			for range 300 {
				least := answered.Load()
				got, hit := ask(reads)
				if got < least {
					t.Errorf("read %d from %q after %d was written", got, hit, least)
				}
				if hit != "" {
					hits.Add(1)
				}
			}
		})
	}
	wg.Go(func() {
		for range 60 {
			n, _ := ask(`return await mcp.fs.write({});`)
			answered.Store(n)
		}
	})
	wg.Wait()
	ask(reads)
	if _, hit := ask(reads); hit == "" {
		t.Error("nothing is cached in the end")
	}
	t.Logf("%d of 1200 were hits", hits.Load())
}

// byCode is a sandbox that plays the program that it is given.
type byCode func(ctx context.Context, code string, host sandbox.Host) (json.RawMessage, error)

func (f byCode) Run(ctx context.Context, p sandbox.Program, host sandbox.Host) (sandbox.Outcome, error) {
	v, err := f(ctx, p.Original, host)
	return sandbox.Outcome{Result: v, Level: "fake"}, err
}

func (byCode) Level() string { return "fake" }
