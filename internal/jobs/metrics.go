package jobs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of this package; the label is from the list of kinds.
type metrics struct {
	runs    *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pml_jobs_total", Help: "Background jobs that this gateway has done, by kind and outcome (ok or failed).",
		}, []string{"kind", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pml_job_seconds", Help: "Time of a background job.", Buckets: []float64{.005, .02, .1, .5, 2, 10, 60},
		}, []string{"kind"}),
	}
	if r != nil {
		r.MustRegister(m.runs, m.seconds)
	}
	return m
}

func (m *metrics) ended(kind string, took time.Duration, err error) {
	outcome := Done
	if err != nil {
		outcome = Failed
	}
	m.runs.WithLabelValues(kind, string(outcome)).Inc()
	m.seconds.WithLabelValues(kind).Observe(took.Seconds())
}
