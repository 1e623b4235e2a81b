package search

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		"another word":                     {Match{Cosine: 1, Reliability: 1.1, Complete: true, Swapped: true}, false},
		"no match at all":                  {Match{}, false},
	}
	for name, c := range cases {
		if got := Confidence(c.match); got >= DefaultThreshold != c.runs {
			t.Errorf("%s: %g", name, got)
		}
	}
}

func TestBest(t *testing.T) {
	t.Parallel()
	x := NewIndex()
	q := Query{Text: "zip", Vectors: [][]float32{unit(1, 0, 0), unit(0, 0, 1)}}
	if h, m, err := x.Best(t.Context(), q, Options{}); err != nil || h.ID != "" || Confidence(m) >= DefaultThreshold {
		t.Errorf("an empty index: %+v, %+v, %v", h, m, err)
	}
	for _, id := range []string{"best", "second", "sentence"} {
		if err := x.Put(Document{ID: id, Kind: Capabilities}); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Put(toolDoc("tool", "")); err != nil {
		t.Fatal(err)
	}
	err := x.SetVectors(map[string][]float32{"best": unit(1, 0.1, 0), "second": unit(1, 1, 0), "sentence": unit(0, 0, 1), "tool": unit(1, 0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.SetReliability(map[string]float64{"best": 0.9}); err != nil {
		t.Fatal(err)
	}
	h, m, err := x.Best(t.Context(), q, Options{Limit: 1, Kind: Tools})
	if err != nil || h.ID != "best" {
		t.Fatalf("got %+v, %v", h, err)
	}
	want := Match{Cosine: 0.99504, Second: 0.70711, Reliability: 0.9, Complete: true}
	if diff := cmp.Diff(want, m, equalWithin(1e-4)); diff != "" {
		t.Error(diff)
	}
	if err := x.Put(Document{ID: "new", Kind: Capabilities, Lexical: strings.Repeat("zip ", 9)}); err != nil {
		t.Fatal(err)
	}
	if h, m, err = x.Best(t.Context(), q, Options{Keep: func(id string) bool { return id == "new" }}); err != nil || h.ID != "new" || m.Cosine != 0 {
		t.Errorf("one without a vector: %+v, %+v, %v", h, m, err)
	}
}

func TestSwapped(t *testing.T) {
	t.Parallel()
	const known = "count the words of a text file"
	for intent, want := range map[string]bool{
		known:                                  false,
		"Count words in the text files":        false, // the same, but for stop words and endings
		"count the characters of a text file":  true,
		"count the lines of a text file":       true,
		"read the words of a text file":        true,
		"count words in a file":                false, // says less
		"count the words of a large text file": false, // says more
		"count the words of a document":        false, // more than a word is another: its vector tells
		"delete everything":                    false,
		"":                                     false,
	} {
		if got := swapped(intent, known); got != want {
			t.Errorf("%q: %t", intent, got)
		}
	}
	if swapped("read", "write") {
		t.Error("nothing is the same")
	}
}
