package search

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	cases := map[string][]string{
		"The weather in a city":    {"weather", "citi"},
		"running runs run":         {"run", "run", "run"},
		"get_currentTime":          {"get", "current", "time", "currenttim"},
		"GitHub":                   {"git", "hub", "github"},
		"HTTPServer2":              {"http", "server2", "httpserver2"},
		"天气预报 tool":                {"天气", "气预", "预报", "tool"},
		"图":                        {"图"},
		"mail天气":                   {"mail", "天气"},
		"don't":                    {"don"},
		"...":                      nil,
		string(make([]byte, 50)):   nil,
		"x" + string(longWord(60)): nil,
		"naïve Café":               {"naïv", "café"},
		"up off not":               {"up", "off", "not"},
		"what is the status of PR": {"status", "pr"},
	}
	for text, want := range cases {
		if diff := cmp.Diff(want, tokens(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func longWord(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = 'x'
	}
	return out
}

// TestBM25 compares with the formula worked out by hand: three documents of 2, 4 and
// 3 terms, so 3 on average.
func TestBM25(t *testing.T) {
	t.Parallel()
	x := newIndex(t, map[string]string{"a": "red fox", "b": "red red blue dog", "c": "green cow field"}, nil)
	idf := math.Log(1 + (3-2+0.5)/(2+0.5))
	term := func(count, length float64) float64 { return count * 2.2 / (count + 1.2*(0.25+0.75*length/3)) }
	want := map[string]float64{
		"a": idf*term(1, 2) + math.Log(1+2.5/1.5)*term(1, 2),
		"b": idf * term(2, 4),
	}
	f := find(t, x, Query{Text: "a red, red fox"}, Options{})
	if f.Mode != Lexical || f.Total != 2 || len(f.Hits) != 2 {
		t.Fatalf("got %+v", f)
	}
	for _, h := range f.Hits {
		if math.Abs(h.BM25-want[h.ID]) > 1e-5 {
			t.Errorf("%s: %g, want %g", h.ID, h.BM25, want[h.ID])
		}
	}
	if diff := cmp.Diff([]string{"a", "b"}, hitIDs(f)); diff != "" {
		t.Error(diff)
	}
}

func TestNoTermMatches(t *testing.T) {
	t.Parallel()
	x := newIndex(t, map[string]string{"a": "red fox"}, nil)
	for _, text := range []string{"", "the of", "submarine"} {
		if f := find(t, x, Query{Text: text}, Options{}); len(f.Hits) != 0 || f.Total != 0 || f.Hits == nil {
			t.Errorf("%q: got %+v", text, f)
		}
	}
	if f := find(t, NewIndex(), Query{Text: "fox", Vectors: [][]float32{unit(1, 0)}}, Options{}); len(f.Hits) != 0 || f.Mode != Lexical {
		t.Errorf("an empty index: got %+v", f)
	}
}
