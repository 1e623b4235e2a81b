package learn

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/tool"
)

func TestPriority(t *testing.T) {
	t.Parallel()
	path := func(hash string, count int64, rate float64) capability.PathStats {
		return capability.PathStats{Hash: hash, Count: count, SuccessRate: rate, AvgDurationMS: 100}
	}
	dominant := capability.Learning{Paths: []capability.PathStats{path("a", 90, 0.95), path("b", 5, 0.5)}}
	young := capability.Learning{Paths: []capability.PathStats{path("a", 5, 0.95)}}
	tests := map[string]struct {
		before  capability.Learning
		hash    string
		success bool
		ms      float64
		want    string
	}{
		"the dominant path succeeds": {dominant, "a", true, 100, "0.05"},
		"the dominant path fails":    {dominant, "a", false, 100, "0.95"},
		"a rare path succeeds":       {dominant, "b", true, 100, "0.60"},
		"a rare path fails":          {dominant, "b", false, 100, "0.60"},
		"a path never seen":          {dominant, "c", true, 100, "1.00"},
		"the first run of all":       {capability.Learning{}, "a", true, 100, "1.00"},
		"much slower":                {dominant, "a", true, 201, "0.25"},
		"twice as slow is usual":     {dominant, "a", true, 200, "0.05"},
		"much faster":                {dominant, "a", true, 49, "0.25"},
		"half is usual":              {dominant, "a", true, 50, "0.05"},
		"slow, but hardly known":     {young, "a", true, 900, "0.05"},
		"never above one":            {dominant, "a", false, 900, "1.00"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Priority(tt.before, Run{PathHash: tt.hash, Success: tt.success, DurationMS: tt.ms})
			if text := fmt.Sprintf("%.2f", got); text != tt.want {
				t.Errorf("got %s, want %s", text, tt.want)
			}
		})
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	var l capability.Learning
	yes, no := Outcome{"d1", "true"}, Outcome{"d1", "false"}
	before := l
	for _, r := range []Run{
		{PathHash: "a", Path: []string{"n1"}, Decisions: []Outcome{yes, no, yes}, Success: true, DurationMS: 100},
		{PathHash: "a", Path: []string{"n1"}, Decisions: []Outcome{yes}, Success: false, DurationMS: 200},
		{PathHash: "b", Path: []string{"n2"}, Success: false, DurationMS: 10},
	} {
		before = l
		l = Update(l, r)
	}
	want := capability.Learning{
		Paths: []capability.PathStats{
			{Hash: "a", Path: []string{"n1"}, Count: 2, SuccessRate: 0.495, AvgDurationMS: 110},
			{Hash: "b", Path: []string{"n2"}, Count: 1, SuccessRate: 0.45, AvgDurationMS: 10},
		},
		Decisions: []capability.DecisionStats{
			{NodeID: "d1", Outcome: "true", Count: 2, SuccessRate: 0.495},
			{NodeID: "d1", Outcome: "false", Count: 1, SuccessRate: 0.55},
		},
		DominantPath: "a",
	}
	if diff := cmp.Diff(want, l, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Error(diff)
	}
	if len(before.Paths) != 1 || before.Paths[0].Count != 2 {
		t.Errorf("the learning before was changed: %+v", before)
	}
}

func TestOutputsAreMerged(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		results []string // of one run each
		want    string
		count   int64
	}{
		"no run":              {nil, ``, 0},
		"one":                 {[]string{`{"lines":3}`}, `{"type":"object","properties":{"lines":{"type":"integer"}},"required":["lines"]}`, 1},
		"not always":          {[]string{`{"a":1,"b":2}`, `{"b":3}`}, `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["b"]}`, 2},
		"a failed run":        {[]string{`{"a":1}`, ``, `{"a":2}`}, `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, 2},
		"only failed runs":    {[]string{``, ``}, ``, 0},
		"nothing was found":   {[]string{`null`, `["x"]`}, `{"type":["array","null"],"items":{"type":"string"}}`, 2},
		"what is broken":      {[]string{`{`, `true`}, `{"type":"boolean"}`, 1},
		"values are not kept": {[]string{`"secret"`, `"other"`}, `{"type":"string"}`, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l capability.Learning
			for _, result := range tt.results {
				l = Update(l, Run{PathHash: "a", Success: result != "", Output: tool.Observe(json.RawMessage(result))})
			}
			if diff := cmp.Diff(tt.want, string(l.Output.Schema())); diff != "" || l.Output.Count != tt.count {
				t.Errorf("of %d runs, want %d: %s", l.Output.Count, tt.count, diff)
			}
		})
	}
}

func TestDominant(t *testing.T) {
	t.Parallel()
	path := func(hash string, count int64, rate float64) capability.PathStats {
		return capability.PathStats{Hash: hash, Count: count, SuccessRate: rate}
	}
	tests := map[string]struct {
		paths []capability.PathStats
		want  string
	}{
		"none":             {nil, ""},
		"too few runs":     {[]capability.PathStats{path("a", 1, 0.5), path("b", 2, 0.9)}, "a"},
		"one known":        {[]capability.PathStats{path("a", 2, 0.9), path("b", 3, 0.1)}, "b"},
		"successes count":  {[]capability.PathStats{path("a", 10, 0.2), path("b", 4, 0.9)}, "b"},
		"equals":           {[]capability.PathStats{path("a", 4, 0.5), path("b", 4, 0.5)}, "a"},
		"often beats well": {[]capability.PathStats{path("a", 4, 1), path("b", 20, 0.5)}, "b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Dominant(tt.paths); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestLearningStaysInBounds: whatever the runs, rates and priorities are between 0
// and 1, and no more is kept than may be.
func TestLearningStaysInBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var l capability.Learning
		var e capability.Evidence
		runs := rapid.IntRange(1, 200).Draw(t, "runs")
		for range runs {
			r := Run{
				PathHash: strconv.Itoa(rapid.IntRange(0, 100).Draw(t, "path")), Success: rapid.Bool().Draw(t, "success"),
				DurationMS: rapid.Float64Range(0, 1e6).Draw(t, "ms"),
			}
			if p := Priority(l, r); p < 0 || p > 1 {
				t.Fatalf("priority %f", p)
			}
			l, e = Update(l, r), count(e, r.Success, r.DurationMS)
			for _, p := range l.Paths {
				if p.SuccessRate < 0 || p.SuccessRate > 1 {
					t.Fatalf("success rate %f", p.SuccessRate)
				}
			}
		}
		if len(l.Paths) > MostPaths {
			t.Fatalf("%d paths", len(l.Paths))
		}
		if e.UsageCount != int64(runs) || e.SuccessCount+e.FailureCount != e.UsageCount || e.SuccessRate < 0 || e.SuccessRate > 1 {
			t.Fatalf("counts %+v", e)
		}
	})
}
