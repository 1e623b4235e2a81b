package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/store/storetest"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
)

// cached looks a result up.
func cached(tb testing.TB, s *store.Store, k capability.CacheKey) capability.Cached {
	tb.Helper()
	c, err := s.CachedResult(tb.Context(), k)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// keep keeps a result that was read just now on the server fs.
func keep(tb testing.TB, s *store.Store, k capability.CacheKey, result string) {
	tb.Helper()
	since := cached(tb, s, capability.CacheKey{Capability: k.Capability}).Now
	ok, err := s.KeepResult(tb.Context(), k, json.RawMessage(result), []string{"fs"}, since, capability.CacheConfig{})
	if err != nil || !ok {
		tb.Fatalf("kept %t, %v", ok, err)
	}
}

func dropped(tb testing.TB, s *store.Store, d capability.Drop) int64 {
	tb.Helper()
	n, err := s.DropCached(tb.Context(), d)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func TestCachedResults(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	c := saved(t, s, "it", "a")
	k := capability.CacheKey{Capability: c.ID, Version: 1, Hash: "h"}
	if got := cached(t, s, k); got.Found || got.Now.IsZero() || got.Config != (capability.CacheConfig{}) {
		t.Errorf("before: %+v", got)
	}
	large := `"` + strings.Repeat("long ", 1000) + `"`
	keep(t, s, k, large)
	for name, other := range map[string]capability.CacheKey{
		"version": {Capability: c.ID, Version: 2, Hash: "h"}, "hash": {Capability: c.ID, Version: 1, Hash: "x"}, "no hash": {Capability: c.ID, Version: 1},
	} {
		if cached(t, s, other).Found {
			t.Errorf("found by another %s", name)
		}
	}
	if got := cached(t, s, k); !got.Found || string(got.Result) != large || got.At.IsZero() {
		t.Errorf("got %+v", got)
	}
	if cached(t, store.At(s, time.Now().Add(1801*time.Second)), k).Found {
		t.Error("found after its time to live")
	}
	list, err := s.CachedResults(ctx)
	if err != nil || len(list) != 1 || list[0].Name != "it" || list[0].Hits != 1 || list[0].Level != "capability" || list[0].Bytes == 0 || list[0].Bytes >= len(large) {
		t.Errorf("list %+v, %v", list, err)
	}
	keep(t, s, k, `"new"`)
	if got := cached(t, s, k); string(got.Result) != `"new"` {
		t.Errorf("replaced by %s", got.Result)
	}
	_, err = s.CachedResult(ctx, capability.CacheKey{Capability: uuid.New()})
	if err == nil {
		t.Error("no error for a capability that is not there")
	}
}

func TestOnlyTheNewestResultsStay(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	c, other := saved(t, s, "it", "a"), saved(t, s, "other", "b")
	keep(t, s, capability.CacheKey{Capability: other.ID, Version: 1, Hash: "0"}, `0`)
	key := func(i int) capability.CacheKey {
		return capability.CacheKey{Capability: c.ID, Version: 1, Hash: fmt.Sprint(i)}
	}
	for i := range 13 {
		keep(t, s, key(i), fmt.Sprint(i))
	}
	var there []int
	for i := range 13 {
		if cached(t, s, key(i)).Found {
			there = append(there, i)
		}
	}
	if want := []int{3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; !slices.Equal(there, want) {
		t.Errorf("there are %v", there)
	}
	if !cached(t, s, capability.CacheKey{Capability: other.ID, Version: 1, Hash: "0"}).Found {
		t.Error("another capability's result went")
	}
}

func TestDropCached(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	reader, sum := saved(t, s, "reader", "read"), program("sum", "outer")
	sum.Structure.Nodes = []structure.Node{{ID: "c1", Type: structure.Capability, CapabilityID: "reader"}, {ID: "n1", Type: structure.Task, Tool: "math:add"}}
	outer, _, err := s.UpsertCandidate(ctx, sum)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		drop          capability.Drop
		reader, outer bool // they go
		log           []string
	}{
		"all":               {capability.Drop{Trigger: capability.DroppedDaily}, true, true, []string{"daily 2"}},
		"older ones":        {capability.Drop{Trigger: capability.DroppedDaily, Before: time.Now().AddDate(0, 0, -1)}, false, false, []string{}},
		"all until now":     {capability.Drop{Trigger: capability.DroppedDaily, Before: time.Now().AddDate(0, 0, 1)}, true, true, []string{"daily 2"}},
		"its server":        {capability.Drop{Trigger: capability.DroppedByWrite, Writers: []tool.ID{"fs:write"}, InMemory: 3}, true, true, []string{"write fs:write 5"}},
		"another server":    {capability.Drop{Trigger: capability.DroppedByWrite, Writers: []tool.ID{"web:post"}}, false, true, []string{"write web:post 1"}},
		"two servers":       {capability.Drop{Trigger: capability.DroppedByWrite, Writers: []tool.ID{"fs:write", "web:post"}}, true, true, []string{"write fs:write 2", "write web:post 0"}},
		"its tool":          {capability.Drop{Trigger: capability.DroppedByTool, Tools: []tool.ID{"fs:read", "x:y"}}, true, true, []string{"tool_changed fs:read 2"}},
		"another tool":      {capability.Drop{Trigger: capability.DroppedByTool, Tools: []tool.ID{"fs:reader"}}, false, true, []string{"tool_changed fs:reader 1"}},
		"capability":        {capability.Drop{Trigger: capability.DroppedByHand, Capability: reader.ID}, true, false, []string{"manual 1"}},
		"not there":         {capability.Drop{Trigger: capability.DroppedByFailure, Capability: uuid.New()}, false, false, []string{}},
		"by hand, for none": {capability.Drop{Trigger: capability.DroppedByHand, Capability: uuid.New()}, false, false, []string{"manual 0"}},
	} {
		t.Run(name, func(t *testing.T) { // one after the other: they share the log
			if err := store.Exec(ctx, s, `delete from cache_invalidation_log where workspace_id = '`+store.Workspace(s)+`'`); err != nil {
				t.Fatal(err)
			}
			a, b := capability.CacheKey{Capability: reader.ID, Version: 1, Hash: "h"}, capability.CacheKey{Capability: outer.ID, Version: 1, Hash: "h"}
			keep(t, s, a, `1`)
			keep(t, s, b, `2`)
			want := int64(0)
			for _, goes := range []bool{c.reader, c.outer} {
				if goes {
					want++
				}
			}
			if n := dropped(t, s, c.drop); n != want {
				t.Errorf("dropped %d, not %d", n, want)
			}
			if cached(t, s, a).Found == c.reader || cached(t, s, b).Found == c.outer {
				t.Errorf("there: reader %t, outer %t", cached(t, s, a).Found, cached(t, s, b).Found)
			}
			log, err := store.Query(ctx, s, `select trigger_type || coalesce(' ' || tool_id, '') || ' ' || entries_invalidated
				from cache_invalidation_log where workspace_id = '`+store.Workspace(s)+`' order by id`)
			if diff := cmp.Diff(c.log, log); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
}

// TestAResultFromBeforeAWriteIsNotKept: whichever gateway has written.
func TestAResultFromBeforeAWriteIsNotKept(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	c := saved(t, s, "it", "a")
	k := capability.CacheKey{Capability: c.ID, Version: 1, Hash: "h"}
	since := cached(t, s, k).Now
	dropped(t, s, capability.Drop{Trigger: capability.DroppedByWrite, Writers: []tool.ID{"fs:write"}})
	for servers, want := range map[string]bool{"fs": false, "web": true} {
		kept, err := s.KeepResult(ctx, k, json.RawMessage(`1`), []string{servers}, since, capability.CacheConfig{})
		if err != nil || kept != want {
			t.Errorf("of the server %s: kept %t, %v", servers, kept, err)
		}
	}
	if kept, err := s.KeepResult(ctx, k, json.RawMessage(`2`), []string{"fs"}, cached(t, s, k).Now, capability.CacheConfig{}); err != nil || !kept {
		t.Errorf("read after the write: kept %t, %v", kept, err)
	}
	if err := store.At(s, time.Now().Add(31*24*time.Hour)).PruneCacheLog(ctx); err != nil {
		t.Fatal(err)
	}
	left, err := store.Query(ctx, s, `select trigger_type from cache_invalidation_log where workspace_id = '`+store.Workspace(s)+`'`)
	if err != nil || len(left) != 0 {
		t.Errorf("left of the log: %v, %v", left, err)
	}
}

func TestCacheConfig(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	c := saved(t, s, "it", "a")
	k := capability.CacheKey{Capability: c.ID, Version: 1, Hash: "h"}
	on := true
	want := capability.CacheConfig{Cacheable: &on, TTLSeconds: 60, MaxEntries: 1}
	id, got, err := s.ChangeCacheConfig(ctx, "it", func(c *capability.CacheConfig) { *c = want })
	if diff := cmp.Diff(want, got); diff != "" || err != nil || id != c.ID {
		t.Error(diff, id, err)
	}
	_, got, err = s.ChangeCacheConfig(ctx, "it", func(c *capability.CacheConfig) { c.TTLSeconds = 90 })
	want.TTLSeconds = 90
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if diff := cmp.Diff(want, cached(t, s, k).Config); diff != "" {
		t.Error(diff)
	}
	if all, err := s.CacheConfigs(ctx); err != nil || len(all) != 1 || !all[c.ID].Trusted() {
		t.Errorf("all: %v, %v", all, err)
	}
	_, _, err = s.ChangeCacheConfig(ctx, "it", func(c *capability.CacheConfig) { c.TTLSeconds = -1 })
	wantCode(t, err, fault.InvalidInput)
	_, _, err = s.ChangeCacheConfig(ctx, "other", func(*capability.CacheConfig) {})
	wantCode(t, err, fault.UnknownCapability)
}

func TestDropFailing(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	c := saved(t, s, "it", "a")
	k := capability.CacheKey{Capability: c.ID, Version: 1, Hash: "h"}
	keep(t, s, k, `1`)
	for failures, want := range []bool{false, false, false, true} {
		sql := fmt.Sprintf(`update workflow_pattern set consecutive_failures = %d where pattern_id = '%s'`, failures, c.ID)
		if err := store.Exec(ctx, s, sql); err != nil {
			t.Fatal(err)
		}
		failing, err := s.DropFailing(ctx, c.ID)
		if err != nil || failing != want || cached(t, s, k).Found == want {
			t.Errorf("after %d failures: %t, %v", failures, failing, err)
		}
	}
}

// BenchmarkCache measures what the cache adds to a run: the look-up before, the keeping
// after, and the drop of a run that writes, with 200 results in the store.
func BenchmarkCache(b *testing.B) {
	s, ctx := storetest.New(b), context.WithoutCancel(b.Context())
	var k capability.CacheKey
	result := json.RawMessage(`"` + string(bytes.Repeat([]byte("x"), 2000)) + `"`)
	for i := range 200 {
		k = capability.CacheKey{Capability: saved(b, s, fmt.Sprint("c", i), fmt.Sprint("h", i)).ID, Version: 1, Hash: "h"}
		keep(b, s, k, string(result))
	}
	b.Run("find", func(b *testing.B) {
		for b.Loop() {
			cached(b, s, k)
		}
	})
	b.Run("keep", func(b *testing.B) {
		since := cached(b, s, k).Now
		for b.Loop() {
			if _, err := s.KeepResult(ctx, k, result, []string{"fs"}, since, capability.CacheConfig{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			dropped(b, s, capability.Drop{Trigger: capability.DroppedByWrite, Writers: []tool.ID{"web:post"}})
		}
	})
}
