package store

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
)

// latency measures how long the database takes to answer, with the wait for its turn
// where it is embedded.
type latency struct{ seconds *prometheus.HistogramVec }

// The kinds of statements. Those of the queue of jobs come every second and would hide
// the others.
const (
	queryKind = "query"
	batchKind = "batch"
	queueKind = "queue"
	// queuePrefix begins the names of the queue's tables.
	queuePrefix = "river_"
)

// newLatency registers on r; a nil r measures for nobody.
func newLatency(r prometheus.Registerer) *latency {
	l := &latency{seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "pml_store_seconds", Help: "Time of a statement or batch, by kind (query, batch, or queue for the jobs').",
		Buckets: []float64{.0002, .0005, .001, .002, .005, .01, .02, .05, .2, 1, 5},
	}, []string{"kind"})}
	if r != nil {
		r.MustRegister(l.seconds)
	}
	return l
}

// began is the key and the value that a statement's context carries.
type (
	beganKey struct{}
	began    struct {
		at   time.Time
		kind string
	}
)

// TraceQueryStart is called by pgx before a statement.
func (*latency) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	kind := queryKind
	if strings.Contains(q.SQL, queuePrefix) {
		kind = queueKind
	}
	return context.WithValue(ctx, beganKey{}, began{time.Now(), kind})
}

// TraceQueryEnd is called by pgx when the rows of a statement are read.
func (l *latency) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	l.ended(ctx)
}

// TraceBatchStart is called by pgx before a batch.
func (*latency) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return context.WithValue(ctx, beganKey{}, began{time.Now(), batchKind})
}

// TraceBatchQuery is called by pgx for each statement of a batch.
func (*latency) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd is called by pgx when a batch is read.
func (l *latency) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) {
	l.ended(ctx)
}

func (l *latency) ended(ctx context.Context) {
	if b, ok := ctx.Value(beganKey{}).(began); ok {
		l.seconds.WithLabelValues(b.kind).Observe(time.Since(b.at).Seconds())
	}
}
