package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// TestMetrics scrapes a real gateway before and after runs: each number that the runs
// touch must be there and move.
func TestMetrics(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	url := f.serveHTTP(t)
	l := learner{f, connect(t, url)}
	const program = `const list = await mcp.filesystem.list_allowed_directories({});
		return await mcp.everything.echo({message: "hello"});`
	if o := l.run(t, program, nil); o.Status != "success" {
		t.Fatalf("%+v", o)
	}
	before := scrape(t, url)
	for range 3 {
		if o := l.run(t, program, nil); o.Status != "success" {
			t.Fatalf("%+v", o)
		}
	}
	if _, err := f.pml(t.Context(), t, "jobs", "run", "promote"); err != nil {
		t.Fatal(err)
	}
	after := scrape(t, url)
	for name, least := range map[string]float64{
		"pml_capabilities_executed_total":   3,
		"pml_execute_graph_updates_total":   3,
		"pml_execute_tools_tracked_total":   6,
		"pml_patterns_detected_total":       1,
		"pml_capabilities_promoted_total":   1,
		"pml_jobs_total":                    1,
		"pml_job_seconds":                   1,
		"pml_store_seconds":                 10,
		"pml_upstream_calls_total":          6,
		"pml_upstream_call_seconds":         6,
		"pml_sandbox_spawn_seconds":         1,
		"pml_sandbox_kills_total":           3,
		"pml_capability_cache_misses_total": 0,
	} {
		if moved := after[name] - before[name]; moved < least {
			t.Errorf("%s went from %v to %v, want %v more", name, before[name], after[name], least)
		}
	}
	for name, want := range map[string]float64{"pml_capability_success_ratio": 1, "pml_approvals_waiting": 0, "pml_sandbox_busy": 0, "pml_sandbox_queued": 0} {
		if got, there := after[name]; !there || got != want {
			t.Errorf("%s is %v (%v), want %v", name, got, there, want)
		}
	}
	for _, name := range []string{"pml_sandbox_idle", "pml_capabilities_searched_total", "pml_capabilities_matched_total", "pml_suggestions_generated_total", "pml_suggestions_accepted_total", "pml_upstream_ready"} {
		if _, there := after[name]; !there {
			t.Errorf("%s is not there", name)
		}
	}
}

// scrape reads the metrics of a gateway: by name the sum over all labels, of
// histograms the counts.
func scrape(t *testing.T, url string) map[string]float64 {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(url, "/mcp")+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = io.Copy(io.Discard, resp.Body); _ = resp.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			out[name] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}
