package store_test

import (
	"errors"
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/store/storetest"
	"github.com/pml-run/pml/internal/tool"
)

// toolKey names a tool's vector.
func toolKey(ref string) store.EmbeddingKey {
	return store.EmbeddingKey{Kind: store.ToolEmbedding, Ref: ref}
}

// direction is a unit vector at an angle in the plane of its first two dimensions.
func direction(dimensions int, degrees float64) []float32 {
	v := make([]float32, dimensions)
	v[0], v[1] = float32(math.Cos(degrees*math.Pi/180)), float32(math.Sin(degrees*math.Pi/180))
	return v
}

// put stores vectors, whatever is there.
func put(t *testing.T, s *store.Store, space store.EmbeddingSpace, list ...store.Embedding) {
	t.Helper()
	var keys []store.EmbeddingKey
	for _, e := range list {
		keys = append(keys, e.EmbeddingKey)
	}
	err := s.ChangeEmbeddings(t.Context(), space, keys, func(map[store.EmbeddingKey]store.Embedding) []store.Embedding { return list })
	if err != nil {
		t.Fatal(err)
	}
}

func TestEmbeddings(t *testing.T) {
	t.Parallel()
	for _, dimensions := range []int{384, 3, 2500, 5000} {
		t.Run(strconv.Itoa(dimensions), func(t *testing.T) {
			t.Parallel()
			s, ctx := storetest.New(t), t.Context()
			space := store.EmbeddingSpace{Model: "m", Dimensions: dimensions}
			a := store.Embedding{EmbeddingKey: toolKey("fs:a"), TextHash: "1", Vector: direction(dimensions, 0)}
			b := store.Embedding{
				EmbeddingKey: toolKey("fs:b"), TextHash: "2", Vector: direction(dimensions, 45),
				Text: direction(dimensions, 90), Used: direction(dimensions, 10), Uses: 3,
			}
			put(t, s, space, a, b)
			other := store.EmbeddingSpace{Model: "another", Dimensions: dimensions}
			put(t, s, other, store.Embedding{EmbeddingKey: a.EmbeddingKey, TextHash: "1", Vector: direction(dimensions, 20)})

			got, version, err := s.Embeddings(ctx, space, 0)
			if err != nil {
				t.Fatal(err)
			}
			listed := b
			listed.Text, listed.Used = nil, nil
			byRef := cmpopts.SortSlices(func(x, y store.Embedding) bool { return x.Ref < y.Ref })
			if diff := cmp.Diff([]store.Embedding{a, listed}, got, byRef); diff != "" {
				t.Errorf("vectors (-want +got):\n%s", diff)
			}
			// What was read once is not read again, what changed since is.
			a.Vector = direction(dimensions, 30)
			put(t, s, space, a)
			got, later, err := s.Embeddings(ctx, space, version)
			if diff := cmp.Diff([]store.Embedding{a}, got); err != nil || diff != "" || later <= version {
				t.Errorf("after %d: %d, %v, (-want +got):\n%s", version, later, err, diff)
			}
			if got, again, err := s.Embeddings(ctx, space, later); err != nil || len(got) != 0 || again != later {
				t.Errorf("nothing has changed, but got %v, %d, %v", got, again, err)
			}
			near, err := s.NearestEmbeddings(ctx, space, direction(dimensions, 40), 1)
			want := []store.NearEmbedding{{Ref: "fs:b", Cosine: float32(math.Cos(5 * math.Pi / 180))}}
			if diff := cmp.Diff(want, near, cmpopts.EquateApprox(0, 1e-3)); err != nil || diff != "" {
				t.Errorf("nearest: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// Changes see what is stored, and those made at the same time are not lost.
func TestChangeEmbeddings(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	space := store.EmbeddingSpace{Model: "m", Dimensions: 384}
	e := store.Embedding{EmbeddingKey: toolKey("fs:a"), TextHash: "1", Vector: direction(384, 0), Text: direction(384, 0), Used: direction(384, 0)}
	put(t, s, space, e)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			errs[i] = s.ChangeEmbeddings(ctx, space, []store.EmbeddingKey{e.EmbeddingKey, toolKey("fs:none")},
				func(present map[store.EmbeddingKey]store.Embedding) []store.Embedding {
					if len(present) != 1 {
						return nil
					}
					next := present[e.EmbeddingKey]
					next.Uses++
					return []store.Embedding{next}
				})
		})
	}
	wg.Wait()
	got, version, err := s.Embeddings(ctx, space, 0)
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Uses != len(errs) || version != int64(len(errs))+1 {
		t.Errorf("got %d vectors, version %d; want one with %d uses", len(got), version, len(errs))
	}
}

func TestEmbeddingsThatAreRefused(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	for _, space := range []store.EmbeddingSpace{{Model: "m"}, {Dimensions: 3}, {Model: "m", Dimensions: 20_000}} {
		if _, _, err := s.Embeddings(ctx, space, 0); fault.CodeOf(err) != fault.InvalidInput {
			t.Errorf("%+v gave %v", space, err)
		}
	}
	err := s.ChangeEmbeddings(ctx, store.EmbeddingSpace{Model: "m", Dimensions: 384}, nil,
		func(map[store.EmbeddingKey]store.Embedding) []store.Embedding {
			return []store.Embedding{{EmbeddingKey: toolKey("fs:a"), Vector: []float32{1}}}
		})
	if fault.CodeOf(err) != fault.InvalidInput {
		t.Errorf("a short vector gave %v", err)
	}
}

func TestPruneEmbeddings(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	space := store.EmbeddingSpace{Model: "m", Dimensions: 384}
	withTools(t, s, "kept", "removed")
	for _, ref := range []string{"fs:kept", "fs:removed", "fs:never"} {
		put(t, s, space, store.Embedding{EmbeddingKey: toolKey(ref), Vector: direction(384, 0)})
	}
	if _, err := s.SaveCatalog(ctx, "fs", []tool.Tool{{ID: "fs:kept", SchemaHash: "1"}}); err != nil {
		t.Fatal(err)
	}
	left := func() (refs []string) {
		list, _, err := s.Embeddings(ctx, space, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			refs = append(refs, e.Ref)
		}
		return refs
	}
	if n, err := s.PruneEmbeddings(ctx, space, time.Now().Add(-time.Hour)); err != nil || n != 1 {
		t.Errorf("%d went, %v; want the one of no tool, have %v", n, err, left())
	}
	if n, err := s.PruneEmbeddings(ctx, space, time.Now().Add(time.Hour)); err != nil || n != 1 {
		t.Errorf("%d went, %v; want the removed one", n, err)
	}
	if diff := cmp.Diff([]string{"fs:kept"}, left()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func TestChangedCapabilities(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	c := saved(t, s, "count_files", "1")
	if _, err := s.MoveCapability(ctx, c.Name, capability.Event{Kind: capability.PersonRetires}); err != nil {
		t.Fatal(err)
	}
	now, err := s.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		after time.Time
		want  int
	}{{time.Time{}, 1}, {now, 1}, {now.Add(2 * time.Minute), 0}} {
		got, err := s.ChangedCapabilities(ctx, tt.after)
		if err != nil || len(got) != tt.want {
			t.Errorf("after %v: %d capabilities, %v; want %d", tt.after, len(got), err, tt.want)
		}
		if len(got) == 1 && got[0].State != capability.Retired {
			t.Errorf("state %s; the retired ones must be among them", got[0].State)
		}
	}
}
