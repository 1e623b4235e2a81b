package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pml-run/pml/internal/fault"
)

// unit is a vector of length one.
func unit(values ...float32) []float32 {
	var squares float64
	for _, v := range values {
		squares += float64(v) * float64(v)
	}
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(float64(v) / math.Sqrt(squares))
	}
	return out
}

func toolDoc(id, text string) Document { return Document{ID: id, Kind: Tools, Lexical: text} }

// newIndex is an index of tools with texts and, where given, vectors.
func newIndex(t testing.TB, texts map[string]string, vectors map[string][]float32) *Index {
	t.Helper()
	x := NewIndex()
	for id, text := range texts {
		if err := x.Put(toolDoc(id, text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.SetVectors(vectors); err != nil {
		t.Fatal(err)
	}
	return x
}

func find(t testing.TB, x *Index, q Query, o Options) Found {
	t.Helper()
	f, err := x.Search(t.Context(), q, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func hitIDs(f Found) []string {
	out := make([]string, len(f.Hits))
	for i, h := range f.Hits {
		out[i] = h.ID
	}
	return out
}

// model is the state that an index should be in.
type model struct {
	documents map[string]Document
	vectors   map[string][]float32
	factors   map[string]float64
}

func (m model) rebuild(t *rapid.T) *Index {
	x := NewIndex()
	for _, d := range m.documents { // in any order
		must(t, x.Put(d))
	}
	must(t, x.SetVectors(m.vectors))
	must(t, x.SetReliability(m.factors))
	return x
}

func must(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

var vocabulary = strings.Fields("read write file weather forecast city send mail GitHub issue 天气 chart running")

func drawDocument(t *rapid.T, id string) Document {
	kind := rapid.SampledFrom([]Kind{Tools, Capabilities}).Draw(t, "kind")
	text := rapid.SliceOfN(rapid.SampledFrom(vocabulary), 0, 6).Draw(t, "text")
	return Document{ID: id, Kind: kind, Lexical: strings.Join(text, " ")}
}

func drawVector(t *rapid.T) []float32 {
	return unit(rapid.SliceOfN(rapid.Float32Range(-1, 1), 9, 9).
		Filter(func(v []float32) bool { return slices.Max(v)-slices.Min(v) > 0.01 }).Draw(t, "vector")...)
}

// TestIndexEqualsRebuilt: whatever came and went in whatever order, an index
// answers as one that was made of what is left, and a snapshot never changes.
func TestIndexEqualsRebuilt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := NewIndex()
		m := model{map[string]Document{}, map[string][]float32{}, map[string]float64{}}
		q := Query{Text: "read the weather of a city 天气", Vectors: [][]float32{drawVector(t), drawVector(t)}}
		ask := func(x *Index) []Found {
			var out []Found
			for _, o := range []Options{{Limit: 50}, {Limit: 3}, {Fusion: ZScore}, {Kind: Tools, Without: Vectors}, {Without: Words}} {
				f, err := x.Search(t.Context(), q, o)
				must(t, err)
				out = append(out, f)
			}
			return out
		}
		id := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("s:%02d", rapid.IntRange(0, 40).Draw(t, "id")) })
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				var batch []Document
				for range rapid.IntRange(1, 8).Draw(t, "count") {
					d := drawDocument(t, id.Draw(t, "id"))
					m.documents[d.ID] = d
					batch = append(batch, d)
				}
				must(t, x.Put(batch...))
			},
			"remove": func(t *rapid.T) {
				gone := id.Draw(t, "id")
				delete(m.documents, gone)
				delete(m.vectors, gone)
				delete(m.factors, gone)
				must(t, x.Remove(gone))
			},
			"vector": func(t *rapid.T) {
				of, v := id.Draw(t, "id"), drawVector(t)
				if _, ok := m.documents[of]; ok {
					m.vectors[of] = v
				}
				must(t, x.SetVectors(map[string][]float32{of: v}))
			},
			"no vector": func(t *rapid.T) {
				of := id.Draw(t, "id")
				delete(m.vectors, of)
				must(t, x.SetVectors(map[string][]float32{of: nil}))
			},
			"clear": func(t *rapid.T) {
				clear(m.vectors)
				must(t, x.ClearVectors())
			},
			"reliability": func(t *rapid.T) {
				of, f := id.Draw(t, "id"), rapid.Float64Range(0.4, 1.05).Draw(t, "factor")
				if _, ok := m.documents[of]; ok {
					m.factors[of] = f
				}
				must(t, x.SetReliability(map[string]float64{of: f}))
			},
			"": func(t *rapid.T) {
				if diff := cmp.Diff(ask(m.rebuild(t)), ask(x), equalWithin(1e-5)); diff != "" {
					t.Fatalf("rebuilt and incremental index differ (-rebuilt +incremental):\n%s", diff)
				}
			},
		})
	})
}

// equalWithin compares numbers that were summed in another order.
func equalWithin(tolerance float64) cmp.Option {
	return cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= tolerance })
}

func TestSnapshotStays(t *testing.T) {
	t.Parallel()
	x := newIndex(t, map[string]string{"a": "read file", "b": "write file"}, map[string][]float32{"a": unit(1, 0), "b": unit(0, 1)})
	before := x.now.Load()
	q := Query{Text: "read file", Vectors: [][]float32{unit(1, 0)}}
	want := find(t, x, q, Options{})
	if err := x.SetVectors(map[string][]float32{"a": unit(0, 1), "b": unit(1, 0)}); err != nil {
		t.Fatal(err)
	}
	if err := x.Put(toolDoc("c", "read file read"), toolDoc("a", "nothing")); err != nil {
		t.Fatal(err)
	}
	if err := x.Remove("b"); err != nil {
		t.Fatal(err)
	}
	old := NewIndex()
	old.now.Store(before)
	if diff := cmp.Diff(want, find(t, old, q, Options{})); diff != "" {
		t.Errorf("a published snapshot has changed:\n%s", diff)
	}
}

func TestIndexConcurrently(t *testing.T) {
	t.Parallel()
	x := NewIndex()
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for w := range 3 {
		writers.Go(func() {
			for i := range 60 {
				id := fmt.Sprintf("s:%d-%d", w, i%10)
				if x.Put(toolDoc(id, "read file "+id)) != nil || x.SetVectors(map[string][]float32{id: unit(1, float32(i))}) != nil {
					t.Error("a change failed")
				}
				if i%3 == 0 && x.Remove(id) != nil {
					t.Error("a removal failed")
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				q := Query{Text: "read a file"}
				if x.now.Load().vectors > 0 {
					q.Vectors = [][]float32{unit(1, 1)}
				}
				if f, err := x.Search(t.Context(), q, Options{}); err != nil || len(f.Hits) > 30 {
					t.Errorf("search: %d hits, %v", len(f.Hits), err)
					return
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
}

func TestIndexRefuses(t *testing.T) {
	t.Parallel()
	x := newIndex(t, map[string]string{"a": "read"}, map[string][]float32{"a": unit(1, 2, 3)})
	cases := map[string]error{
		"a document without id":   x.Put(toolDoc("", "text")),
		"a document of no kind":   x.Put(Document{ID: "b"}),
		"a vector of other size":  x.SetVectors(map[string][]float32{"a": unit(1, 2)}),
		"an empty vector":         x.SetVectors(map[string][]float32{"a": {}}),
		"a reliability of zero":   x.SetReliability(map[string]float64{"a": 0}),
		"a reliability too large": x.SetReliability(map[string]float64{"a": 2}),
	}
	_, cases["a query's vector of other size"] = x.Search(t.Context(), Query{Text: "x", Vectors: [][]float32{unit(1, 2)}}, Options{})
	for name, err := range cases {
		if fault.CodeOf(err) != fault.InvalidInput {
			t.Errorf("%s: got %v", name, err)
		}
	}
	f := find(t, x, Query{Text: "read", Vectors: [][]float32{unit(1, 2, 3)}}, Options{})
	if len(f.Hits) != 1 || f.Hits[0].Cosine < 0.999 || x.Len() != 1 {
		t.Errorf("a refused change was made: %+v", f)
	}
}

// randomIndex has documents with 384 dimensions and descriptions of 40 words of a
// vocabulary with a long tail.
func randomIndex(t testing.TB, documents int) (*Index, Query) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string { return fmt.Sprintf("word%c%c", 'a'+int(r.ExpFloat64()*4)%26, 'a'+r.IntN(26)) }
	vector := func() []float32 {
		v := make([]float32, 384)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return unit(v...)
	}
	docs, vectors := make([]Document, documents), make(map[string][]float32, documents)
	for i := range docs {
		words := make([]string, 40)
		for j := range words {
			words[j] = word()
		}
		docs[i] = toolDoc(fmt.Sprintf("server:tool%d", i), strings.Join(words, " "))
		vectors[docs[i].ID] = vector()
	}
	x := NewIndex()
	if err := x.Put(docs...); err != nil {
		t.Fatal(err)
	}
	if err := x.SetVectors(vectors); err != nil {
		t.Fatal(err)
	}
	words := make([]string, 10)
	for j := range words {
		words[j] = word()
	}
	return x, Query{Text: strings.Join(words, " "), Vectors: [][]float32{vector()}}
}
