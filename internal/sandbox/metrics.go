package sandbox

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics measures the pool. Labels are from closed lists of this package.
type metrics struct {
	spawn prometheus.Histogram
	kills *prometheus.CounterVec
}

func newMetrics(p *Pool, r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		spawn: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "pml_sandbox_spawn_seconds", Help: "Time from the start of a worker to its readiness.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 10),
		}),
		kills: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pml_sandbox_kills_total", Help: "Workers that ended, by reason: done or the code of the error.",
		}, []string{"reason"}),
	}
	if r == nil {
		return m, nil
	}
	gauge := func(name, help string, value func(Stats) int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pml_sandbox_" + name, Help: help},
			func() float64 { return float64(value(p.Stats())) })
	}
	return m, errors.Join(
		r.Register(m.spawn), r.Register(m.kills),
		r.Register(gauge("idle", "Warm workers.", func(s Stats) int { return s.Idle })),
		r.Register(gauge("busy", "Workers that run a program.", func(s Stats) int { return s.Busy })),
		r.Register(gauge("queued", "Programs that wait for a worker.", func(s Stats) int { return s.Queued })),
	)
}

func (m *metrics) killed(reason string) { m.kills.WithLabelValues(reason).Inc() }
