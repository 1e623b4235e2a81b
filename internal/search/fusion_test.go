package search

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSum(t *testing.T) {
	t.Parallel()
	x := newIndex(t, map[string]string{"far": "red fox", "near": "dog"}, map[string][]float32{"far": unit(0, 1), "near": unit(1, 1)})
	f := find(t, x, Query{Text: "fox", Vectors: [][]float32{unit(1, 0)}}, Options{})
	if f.Mode != Hybrid || f.Missing != 0 {
		t.Fatalf("got %+v", f)
	}
	for _, h := range f.Hits {
		if want := h.Cosine + 0.02*h.BM25; math.Abs(h.Score-want) > 1e-6 || h.Rank != h.Score {
			t.Errorf("%s: score %g and rank %g, want %g", h.ID, h.Score, h.Rank, want)
		}
	}
	if diff := cmp.Diff([]string{"near", "far"}, hitIDs(f)); diff != "" {
		t.Error(diff)
	}
}

// TestSentencesCount: each sentence finds what is like it, and the whole text neither.
func TestSentencesCount(t *testing.T) {
	t.Parallel()
	x := newIndex(t, map[string]string{"a": "", "b": "", "c": ""}, map[string][]float32{"a": unit(1, 0, 0), "b": unit(0, 1, 0), "c": unit(1, 1, 3)})
	q := Query{Text: "x", Vectors: [][]float32{unit(1, 1, 1), unit(1, 0, 0), unit(0, 1, 0)}}
	if diff := cmp.Diff([]string{"a", "b", "c"}, hitIDs(find(t, x, q, Options{}))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"c", "a", "b"}, hitIDs(find(t, x, q, Options{Without: Sentences}))); diff != "" {
		t.Error(diff)
	}
}

// TestWithoutVectorYet: a document that is not encoded yet stands where its words put
// it: before those with vectors that match less, behind one that matches as well and
// is nearer than could be expected, and far before what has none of the words.
func TestWithoutVectorYet(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"new": "zip archive extract", "best": "zip archive extract"}
	vectors := map[string][]float32{"best": unit(1, 0.1)}
	for _, id := range []string{"w1", "w2", "w3", "w4", "w5", "w6"} {
		texts[id] = "zip " + id
		vectors[id] = unit(1, 1.2)
	}
	for _, id := range []string{"n1", "n2", "n3", "n4", "n5", "n6"} {
		texts[id] = "weather " + id
		vectors[id] = unit(1, 5)
	}
	x := newIndex(t, texts, vectors)
	q := Query{Text: "extract a zip archive", Vectors: [][]float32{unit(1, 0)}}
	f := find(t, x, q, Options{Limit: 3})
	if f.Mode != Partial || f.Missing != 1 {
		t.Errorf("mode %s, %d missing", f.Mode, f.Missing)
	}
	if diff := cmp.Diff([]string{"best", "new", "w1"}, hitIDs(f)); diff != "" {
		t.Error(diff)
	}
	if h := f.Hits[1]; !h.Guessed || h.Cosine > f.Hits[0].Cosine || h.Cosine < f.Hits[2].Cosine {
		t.Errorf("guessed %v: %g between %g and %g", h.Guessed, h.Cosine, f.Hits[2].Cosine, f.Hits[0].Cosine)
	}
	f = find(t, x, Query{Text: "submarine", Vectors: q.Vectors}, Options{Limit: 50})
	if len(f.Hits) != len(texts)-1 {
		t.Errorf("%d hits: what has neither words nor a vector cannot be found", len(f.Hits))
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	x := newIndex(t, map[string]string{"a": "red", "b": "red"}, nil)
	vectors := [][]float32{unit(1, 0)}
	if f := find(t, x, Query{Text: "red", Vectors: vectors}, Options{}); f.Mode != Lexical || f.Missing != 2 || len(f.Hits) != 2 {
		t.Errorf("no document has a vector: %+v", f)
	}
	if err := x.SetVectors(map[string][]float32{"a": unit(1, 0), "b": unit(0, 1)}); err != nil {
		t.Fatal(err)
	}
	if f := find(t, x, Query{Text: "red"}, Options{}); f.Mode != Lexical {
		t.Errorf("the query has no vector: %+v", f)
	}
	if f := find(t, x, Query{Text: "red", Vectors: vectors}, Options{Without: Vectors}); f.Mode != Lexical {
		t.Errorf("vectors are switched off: %+v", f)
	}
	if f := find(t, x, Query{Text: "blue", Vectors: vectors}, Options{}); f.Mode != Hybrid || len(f.Hits) != 2 || f.Hits[0].ID != "a" {
		t.Errorf("no word matches: %+v", f)
	}
	if f := find(t, x, Query{Text: "red", Vectors: vectors}, Options{Without: Words}); f.Hits[0].BM25 != 0 || f.Hits[0].ID != "a" {
		t.Errorf("words are switched off: %+v", f)
	}
}

func TestZScore(t *testing.T) {
	t.Parallel()
	// All cosines are close together, as some models have them: words decide in a sum.
	x := newIndex(t, map[string]string{"meant": "beta gamma", "words": "alpha beta", "neither": "delta"},
		map[string][]float32{"meant": unit(1, 0.02), "words": unit(1, 0.175), "neither": unit(1, 0.18)})
	q := Query{Text: "alpha beta", Vectors: [][]float32{unit(1, 0)}}
	if f := find(t, x, q, Options{Fusion: Sum}); f.Hits[0].ID != "words" {
		t.Errorf("sum: %v", hitIDs(f))
	}
	f := find(t, x, q, Options{Fusion: ZScore})
	if diff := cmp.Diff([]string{"meant", "words", "neither"}, hitIDs(f)); diff != "" {
		t.Error(diff)
	}
	for _, h := range f.Hits {
		if h.Score <= 0 || h.Score >= 1 {
			t.Errorf("%s: a score of %g", h.ID, h.Score)
		}
	}
}

func TestFusionFor(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]Fusion{"all-MiniLM-L6-v2": Sum, "text-embedding-3-small": ZScore, "bge-small-en-v1.5": ZScore, "": ZScore} {
		if got := FusionFor(model); got != want {
			t.Errorf("%s: %v", model, got)
		}
	}
}
