package evaluate

import (
	"math"
	"testing"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	l := func(rank float64) float64 { return 1 / math.Log2(rank+1) }
	cases := map[string]struct {
		ranked   []string
		relevant []string
		ndcg, r2 float64
	}{
		"perfect":                  {[]string{"a", "b", "c"}, []string{"a", "b"}, 1, 1},
		"second and third":         {[]string{"x", "a", "b"}, []string{"a", "b"}, (l(2) + l(3)) / (l(1) + l(2)), 0.5},
		"one of two is missing":    {[]string{"a"}, []string{"a", "b"}, l(1) / (l(1) + l(2)), 0.5},
		"behind the third":         {[]string{"x", "y", "z", "a"}, []string{"a"}, 0, 0},
		"more relevant than asked": {[]string{"a", "b", "c"}, []string{"a", "b", "c", "d", "e"}, 1, 0.4},
		"nothing found":            {nil, []string{"a"}, 0, 0},
		"nothing relevant":         {[]string{"a"}, nil, 0, 0},
	}
	for name, c := range cases {
		relevant := map[string]bool{}
		for _, id := range c.relevant {
			relevant[id] = true
		}
		if got := NDCG(c.ranked, relevant, 3); math.Abs(got-c.ndcg) > 1e-12 {
			t.Errorf("%s: nDCG@3 %g, want %g", name, got, c.ndcg)
		}
		if got := Recall(c.ranked, relevant, 2); math.Abs(got-c.r2) > 1e-12 {
			t.Errorf("%s: R@2 %g, want %g", name, got, c.r2)
		}
	}
}
