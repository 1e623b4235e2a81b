package upstream

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pml-run/pml/internal/fault"
)

// metrics of this package. The server label is bounded by the configuration.
type metrics struct {
	calls    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	restarts *prometheus.CounterVec
	noise    *prometheus.CounterVec
	ready    *prometheus.GaugeVec
}

// newMetrics registers on r; a nil r measures for nobody.
func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pml_upstream_calls_total", Help: "Calls of tools by server and outcome (ok or a fault code).",
		}, []string{"server", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pml_upstream_call_seconds", Help: "Time of a call, with the wait for the server.",
			Buckets: []float64{.005, .02, .1, .5, 2, 10, 60},
		}, []string{"server"}),
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pml_upstream_restarts_total", Help: "Sessions that were opened after the first.",
		}, []string{"server"}),
		noise: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pml_upstream_noise_lines_total", Help: "Lines on a server's stdout that were no JSON-RPC.",
		}, []string{"server"}),
		ready: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pml_upstream_ready", Help: "1 while a server has a session.",
		}, []string{"server"}),
	}
	if r != nil {
		r.MustRegister(m.calls, m.seconds, m.restarts, m.noise, m.ready)
	}
	return m
}

func (m *metrics) called(server string, began, ended time.Time, err error) {
	outcome := "ok"
	if err != nil {
		outcome = string(fault.CodeOf(err))
	}
	m.calls.WithLabelValues(server, outcome).Inc()
	m.seconds.WithLabelValues(server).Observe(ended.Sub(began).Seconds())
}
