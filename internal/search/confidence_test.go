package search

import (
	"testing"

	"pgregory.net/rapid"
)

func TestConfidenceIsMonotone(t *testing.T) {
	t.Parallel()
	number := rapid.Float64Range(-0.2, 1)
	rapid.Check(t, func(t *rapid.T) {
		m := Match{
			Cosine: number.Draw(t, "cosine"), Second: number.Draw(t, "second"),
			Reliability: rapid.Float64Range(0.4, maxReliability).Draw(t, "reliability"), Complete: rapid.Bool().Draw(t, "complete"),
		}
		c := Confidence(m)
		if c < 0 || c > 1 {
			t.Fatalf("a confidence of %g", c)
		}
		better := map[string]Match{"cosine": m, "lead": m, "reliability": m, "parameters": m}
		step := rapid.Float64Range(0, 0.5).Draw(t, "step")
		for name, b := range better {
			switch name {
			case "cosine":
				b.Cosine += step
			case "lead":
				b.Second -= step
			case "reliability":
				b.Reliability += step
			case "parameters":
				b.Complete = true
			}
			if Confidence(b) < c {
				t.Fatalf("a better %s: %g instead of %g", name, Confidence(b), c)
			}
		}
	})
}

func TestConfidenceAtTheThreshold(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		match Match
		runs  bool
	}{
		"the same words":                   {Match{Cosine: 0.95, Second: 0.3, Reliability: 1, Complete: true}, true},
		"nothing to compare with":          {Match{Cosine: 0.95, Reliability: 1, Complete: true}, true},
		"a like purpose":                   {Match{Cosine: 0.75, Second: 0.3, Reliability: 1, Complete: true}, false},
		"two that are the same":            {Match{Cosine: 0.8, Second: 0.8, Reliability: 1, Complete: true}, false},
		"one that fails":                   {Match{Cosine: 0.95, Second: 0.3, Reliability: 0.8, Complete: true}, false},
		"parameters are missing":           {Match{Cosine: 1, Reliability: 1.05}, false},
		"degraded":                         {Match{Cosine: 1, Reliability: 0.525, Complete: true}, false},
		"promoted does not make it likely": {Match{Cosine: 0.75, Second: 0.3, Reliability: 1.1, Complete: true}, false},
		"no match at all":                  {BestMatch(nil), false},
	}
	for name, c := range cases {
		if got := Confidence(c.match); got >= DefaultThreshold != c.runs {
			t.Errorf("%s: %g", name, got)
		}
	}
}

func TestBestMatch(t *testing.T) {
	t.Parallel()
	// The second by rank need not be the second by cosine.
	got := BestMatch([]Hit{{Cosine: 0.7, Reliability: 0.9}, {Cosine: 0.4}, {Cosine: 0.6}})
	if want := (Match{Cosine: 0.7, Second: 0.6, Reliability: 0.9, Complete: true}); got != want {
		t.Errorf("got %+v", got)
	}
}
