package daemon

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/trace"
)

// scrapeTimeout bounds what a scrape asks of the database.
const scrapeTimeout = 2 * time.Second

// learnt counts what finished runs leave behind.
type learnt struct {
	executed, edges, calls prometheus.Counter

	runs, successes atomic.Int64 // of capabilities
}

// newLearnt registers on r. ctx is the gateway's life: what scrapes ask of the database
// ends with it.
func newLearnt(ctx context.Context, s *store.Store, r prometheus.Registerer) *learnt {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	l := &learnt{
		executed: counter("pml_capabilities_executed_total", "Runs of capabilities that succeeded or failed, without those answered from a cache."),
		edges:    counter("pml_execute_graph_updates_total", "Edges between tools and capabilities that runs have shown."),
		calls:    counter("pml_execute_tools_tracked_total", "Calls of tools that went into the tools' statistics."),
	}
	ratio := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pml_capability_success_ratio", Help: "Share of the executed capabilities that succeeded, since the start; 0 before the first.",
	}, func() float64 { return float64(l.successes.Load()) / float64(max(l.runs.Load(), 1)) })
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pml_approvals_waiting", Help: "Questions that wait for a person, at most 1000; -1 while the database does not answer.",
	}, func() float64 {
		ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
		defer cancel()
		list, err := s.PendingApprovals(ctx)
		if err != nil {
			return -1
		}
		return float64(len(list))
	})
	r.MustRegister(l.executed, l.edges, l.calls, ratio, waiting)
	return l
}

// noted is the transaction of finished runs; it notes the lessons that are kept.
type noted struct {
	*store.Tx

	list []capability.Lesson
}

// KeepLesson has the lesson written with its run.
func (n *noted) KeepLesson(l capability.Lesson) {
	n.list = append(n.list, l)
	n.Tx.KeepLesson(l)
}

// count counts the runs from which lessons were written: not those stored before. A
// nil learnt counts nothing.
func (l *learnt) count(runs []trace.Trace, lessons []capability.Lesson) {
	if l == nil {
		return
	}
	for _, t := range runs {
		at := slices.IndexFunc(lessons, func(k capability.Lesson) bool { return k.Run == t.Run.ID })
		if at < 0 {
			continue
		}
		l.edges.Add(float64(len(lessons[at].Edges)))
		for _, c := range t.Calls {
			if c.Status != trace.CallStarted {
				l.calls.Inc()
			}
		}
		ended := t.Run.Status == trace.Succeeded || t.Run.Status == trace.Failed
		if t.Run.Capability == uuid.Nil || t.CacheHit != "" || !ended {
			continue
		}
		l.executed.Inc()
		l.runs.Add(1)
		if t.Success {
			l.successes.Add(1)
		}
	}
}
