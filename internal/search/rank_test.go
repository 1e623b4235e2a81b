package search

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func three(t *testing.T) (*Index, Query) {
	t.Helper()
	x := newIndex(t, map[string]string{"a:x": "", "b:x": "", "c:x": ""},
		map[string][]float32{"a:x": unit(1, 0.1), "b:x": unit(1, 0.2), "c:x": unit(1, 3)})
	return x, Query{Text: "x", Vectors: [][]float32{unit(1, 0)}}
}

func TestReliabilityRanks(t *testing.T) {
	t.Parallel()
	x, q := three(t)
	if err := x.SetReliability(map[string]float64{"a:x": 0.8, "unknown": 1}); err != nil {
		t.Fatal(err)
	}
	f := find(t, x, q, Options{})
	if diff := cmp.Diff([]string{"b:x", "a:x", "c:x"}, hitIDs(f)); diff != "" {
		t.Error(diff)
	}
	if h := f.Hits[1]; math.Abs(h.Rank-0.8*h.Score) > 1e-6 {
		t.Errorf("rank %g of score %g", h.Rank, h.Score)
	}
	if f := find(t, x, q, Options{Without: Reliability}); f.Hits[0].ID != "a:x" {
		t.Errorf("switched off: %v", hitIDs(f))
	}
}

// TestBelowZero: a reliability must not lift what is no match at all.
func TestBelowZero(t *testing.T) {
	t.Parallel()
	x := newIndex(t, map[string]string{"a": "", "b": ""}, map[string][]float32{"a": unit(-1, 2), "b": unit(-1, 2.1)})
	if err := x.SetReliability(map[string]float64{"a": 0.8}); err != nil {
		t.Fatal(err)
	}
	if f := find(t, x, Query{Text: "x", Vectors: [][]float32{unit(1, 0)}}, Options{}); f.Hits[0].ID != "b" {
		t.Errorf("got %v", hitIDs(f))
	}
}

func TestBoost(t *testing.T) {
	t.Parallel()
	x, q := three(t)
	by := func(id string) float64 {
		if strings.HasPrefix(id, "c") {
			return 10
		}
		return 1
	}
	if f := find(t, x, q, Options{Limit: 1, Boost: by}); f.Hits[0].ID != "c:x" {
		t.Errorf("got %v", hitIDs(f))
	}
	if f := find(t, x, q, Options{Limit: 1, Boost: by, Without: Boost}); f.Hits[0].ID != "a:x" {
		t.Errorf("switched off: %v", hitIDs(f))
	}
}

func TestPagesAndFilters(t *testing.T) {
	t.Parallel()
	x, q := three(t)
	if err := x.Put(Document{ID: "d", Kind: Capabilities, Lexical: "x"}); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		o     Options
		want  []string
		total int
	}{
		"second page":   {Options{Limit: 2, Offset: 1, Kind: Tools}, []string{"b:x", "c:x"}, 3},
		"behind all":    {Options{Offset: 9}, []string{}, 4},
		"only one kind": {Options{Kind: Capabilities}, []string{"d"}, 1},
		"only some":     {Options{Keep: func(id string) bool { return id > "b" }, Kind: Tools}, []string{"b:x", "c:x"}, 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := find(t, x, q, c.o)
			if diff := cmp.Diff(c.want, hitIDs(f)); diff != "" || f.Total != c.total {
				t.Errorf("total %d\n%s", f.Total, diff)
			}
		})
	}
}

// neighbours answers as a database with an index would: exactly, for its rows.
type neighbours struct {
	vectors map[string][]float32
	err     error
	asked   int
}

func (n *neighbours) Nearest(ctx context.Context, vector []float32, count int) ([]Neighbour, error) {
	n.asked++
	if n.err != nil {
		return nil, n.err
	}
	x := NewIndex()
	for id := range n.vectors {
		if err := x.Put(toolDoc(id, "")); err != nil {
			return nil, err
		}
	}
	if err := x.SetVectors(n.vectors); err != nil {
		return nil, err
	}
	f, err := x.Search(ctx, Query{Text: "-", Vectors: [][]float32{vector}}, Options{Limit: count})
	out := make([]Neighbour, len(f.Hits))
	for i, h := range f.Hits {
		out[i] = Neighbour{ID: h.ID, Cosine: float32(h.Cosine)}
	}
	return out, err
}

// TestAboveTheThreshold: with candidates from elsewhere the best are the same as with
// all cosines computed.
func TestAboveTheThreshold(t *testing.T) {
	t.Parallel()
	exact, q := randomIndex(t, 600)
	q.Vectors = append(q.Vectors, exact.now.Load().vectorOf(7))
	s := exact.now.Load()
	elsewhere := &neighbours{vectors: map[string][]float32{}}
	for at := range s.rows {
		elsewhere.vectors[s.rows[at].id] = s.vectorOf(at)
	}
	want := find(t, exact, q, Options{})
	got := find(t, exact, q, Options{Neighbours: elsewhere, ExactRows: 599})
	if elsewhere.asked != 2 {
		t.Errorf("asked %d times", elsewhere.asked)
	}
	want.Total, got.Total = 0, 0 // of fewer candidates
	if diff := cmp.Diff(want, got, equalWithin(1e-5)); diff != "" {
		t.Error(diff)
	}
	find(t, exact, q, Options{Neighbours: elsewhere, ExactRows: 600})
	if elsewhere.asked != 2 {
		t.Error("asked although all can be computed")
	}
	elsewhere.err = errors.New("gone")
	if _, err := exact.Search(t.Context(), q, Options{Neighbours: elsewhere, ExactRows: 1}); !errors.Is(err, elsewhere.err) {
		t.Errorf("got %v", err)
	}
}

// TestNeighboursOfLexicalHits: what is found by words alone and has no vector here is
// not taken for nearer than the nearest.
func TestNeighboursOfLexicalHits(t *testing.T) {
	t.Parallel()
	x := newIndex(t, map[string]string{"near": "", "word": "zip", "other": ""}, map[string][]float32{"near": unit(1, 0)})
	elsewhere := &neighbours{vectors: map[string][]float32{"near": unit(1, 0), "gone": unit(1, 0.5)}}
	f := find(t, x, Query{Text: "zip", Vectors: [][]float32{unit(1, 0)}}, Options{Neighbours: elsewhere, ExactRows: 2})
	if diff := cmp.Diff([]string{"near", "word"}, hitIDs(f)); diff != "" {
		t.Error(diff)
	}
	if h := f.Hits[1]; !h.Guessed || math.Abs(h.Cosine-0.894) > 0.01 {
		t.Errorf("got %+v", h)
	}
}

// TestVectorsOnlyElsewhere: the index need not hold the vectors that others have.
func TestVectorsOnlyElsewhere(t *testing.T) {
	t.Parallel()
	x := newIndex(t, map[string]string{"near": "", "far": "zip", "word": "zip"}, nil)
	elsewhere := &neighbours{vectors: map[string][]float32{"near": unit(1, 0), "far": unit(1, 2)}}
	f := find(t, x, Query{Text: "zip", Vectors: [][]float32{unit(1, 0)}}, Options{Neighbours: elsewhere, ExactRows: 2})
	if f.Mode != Hybrid || f.Missing != 0 {
		t.Errorf("mode %s, %d missing", f.Mode, f.Missing)
	}
	if diff := cmp.Diff([]string{"near", "far", "word"}, hitIDs(f)); diff != "" {
		t.Error(diff)
	}
	for _, h := range f.Hits {
		if h.Guessed != (h.ID == "word") {
			t.Errorf("%s: guessed %v", h.ID, h.Guessed)
		}
	}
}
