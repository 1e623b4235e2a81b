package search

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUses(t *testing.T) {
	t.Parallel()
	text, a, b := unit(1, 0, 0), unit(0, 1, 0), unit(0, 0, 1)
	near := cmp.Comparer(func(x, y float32) bool { return math.Abs(float64(x-y)) < 1e-6 })
	if diff := cmp.Diff(text, Uses{}.Vector(text), near); diff != "" {
		t.Errorf("nothing learnt: %s", diff)
	}
	u := Uses{}.Add(a).Add(b)
	if diff := cmp.Diff(unit(1, 1, 1), u.Vector(text), near); diff != "" {
		t.Errorf("the text and two uses weigh the same: %s", diff)
	}
	if diff := cmp.Diff(Uses{Mean: []float32{0, 0.5, 0.5}, Count: 2}, u, near); diff != "" {
		t.Errorf("what is stored: %s", diff)
	}
	if diff := cmp.Diff(u.Add(a), Restore(u.Mean, u.Count).Add(a), near); diff != "" {
		t.Errorf("restored: %s", diff)
	}
	if diff := cmp.Diff(Uses{}.Add(a), Uses{}.Add(unit(1, 2)).Add(a), near); diff != "" {
		t.Errorf("another model's vector came: %s", diff)
	}
	if diff := cmp.Diff(unit(1, 0), u.Vector(unit(1, 0)), near); diff != "" {
		t.Errorf("the text's vector is of another model: %s", diff)
	}
	if got := (Uses{}).Add(unit(-1, 0)).Vector(unit(1, 0)); got[0] != 1 {
		t.Errorf("opposites: %v", got)
	}
	for _, bad := range []Uses{Restore(nil, 3), Restore(a, 0), Restore(a, -1)} {
		if diff := cmp.Diff(Uses{}, bad); diff != "" {
			t.Errorf("restored from what is none: %s", diff)
		}
	}
}

// TestUsesKeepTheText: however many uses there were, the text counts for an eleventh,
// and what is asked for now for more than what was asked for long ago.
func TestUsesKeepTheText(t *testing.T) {
	t.Parallel()
	text, old, now := unit(1, 0, 0), unit(0, 1, 0), unit(0, 0, 1)
	u := Uses{}
	for range 500 {
		u = u.Add(old)
	}
	for range 20 {
		u = u.Add(now)
	}
	if u.Count != 10 {
		t.Errorf("count is %d", u.Count)
	}
	v := u.Vector(text)
	if v[2] < 3*v[1] {
		t.Errorf("the old intent weighs %g, the new one %g", v[1], v[2])
	}
	sum := 1 + 10*(u.Mean[1]+u.Mean[2])
	if share := 1 / sum; math.Abs(float64(share)-1.0/11) > 1e-3 {
		t.Errorf("the text's share is %g", share)
	}
	if length := v[0]*v[0] + v[1]*v[1] + v[2]*v[2]; math.Abs(float64(length)-1) > 1e-5 {
		t.Errorf("length² is %g", length)
	}
}

func TestUsesAreNotChanged(t *testing.T) {
	t.Parallel()
	a := Uses{}.Add(unit(1, 0))
	before := Uses{Mean: append([]float32(nil), a.Mean...), Count: a.Count}
	a.Add(unit(0, 1))
	if diff := cmp.Diff(before, a); diff != "" {
		t.Error(diff)
	}
}

// TestLearningFinds: a tool is found in the words of those who used it.
func TestLearningFinds(t *testing.T) {
	t.Parallel()
	texts := map[string][]float32{"a": unit(1, 0, 0), "b": unit(0.9, 0.5, 0)}
	x := newIndex(t, map[string]string{"a": "", "b": ""}, texts)
	intent := Query{Text: "x", Vectors: [][]float32{unit(0.3, 0.4, 0.9)}}
	if f := find(t, x, intent, Options{}); f.Hits[0].ID != "b" {
		t.Fatalf("before: %v", hitIDs(f))
	}
	learnt := Uses{}.Add(unit(0.2, 0.4, 0.9))
	if err := x.SetVectors(map[string][]float32{"a": learnt.Vector(texts["a"])}); err != nil {
		t.Fatal(err)
	}
	if f := find(t, x, intent, Options{}); f.Hits[0].ID != "a" {
		t.Errorf("after: %v", hitIDs(f))
	}
}
