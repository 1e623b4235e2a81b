package search

import "github.com/prometheus/client_golang/prometheus"

// metrics of this package.
type metrics struct {
	searched, matched, suggested, accepted prometheus.Counter
	encoding, searching                    prometheus.Histogram
}

// newMetrics registers on r; a nil r measures for nobody.
func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		searched:  counter("pml_capabilities_searched_total", "Searches in which capabilities could be found."),
		matched:   counter("pml_capabilities_matched_total", "Capabilities among the results of searches."),
		suggested: counter("pml_suggestions_generated_total", "Suggestions that were given."),
		accepted:  counter("pml_suggestions_accepted_total", "Suggestions whose tool or capability was used within an hour."),
		encoding: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "pml_query_embedding_seconds", Help: "Time to make vectors of an intent that was not in the cache.",
			Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .2, 1},
		}),
		searching: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "pml_search_seconds", Help: "Time of a search, without making the intent's vectors.",
			Buckets: []float64{.0002, .0005, .001, .002, .005, .01, .02, .05, .2, 1},
		}),
	}
	if r != nil {
		r.MustRegister(m.searched, m.matched, m.suggested, m.accepted, m.encoding, m.searching)
	}
	return m
}
