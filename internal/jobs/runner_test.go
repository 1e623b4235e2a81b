package jobs_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/jobs"
	"github.com/pml-run/pml/internal/store/storetest"
)

// long is a period that no test sees the end of.
const long = 10_000 * 24 * time.Hour

// newSchema makes a schema for the queue of one test.
func newSchema(t *testing.T) (*pgxpool.Pool, string) {
	t.Helper()
	pool := storetest.New(t).Pool()
	schema := "jobs_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	exec(t, pool, "create schema "+schema)
	t.Cleanup(func() {
		if _, err := pool.Exec(context.WithoutCancel(t.Context()), "drop schema "+schema+" cascade"); err != nil {
			t.Error(err)
		}
	})
	return pool, schema
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// start starts a runner; it is stopped at the end of the test at the latest.
func start(t *testing.T, pool *pgxpool.Pool, schema string, kinds ...jobs.Kind) *jobs.Runner {
	t.Helper()
	r, err := jobs.New(pool, kinds, jobs.Options{Schema: schema, Poll: 50 * time.Millisecond})
	if err != nil {
		t.Error(err)
		return nil
	}
	if err := r.Start(t.Context()); err != nil {
		t.Error(err)
		return nil
	}
	t.Cleanup(r.Stop)
	return r
}

// counted is a kind that counts how often it is done and tells each time.
type counted struct {
	kind jobs.Kind
	n    atomic.Int64
	done chan struct{}
}

func newCounted(name string) *counted {
	c := &counted{done: make(chan struct{}, 100)}
	c.kind = jobs.Kind{Name: name, About: "count", Every: long, Do: func(context.Context) (string, error) {
		c.n.Add(1)
		c.done <- struct{}{}
		return "counted", nil
	}}
	return c
}

func (c *counted) await(t *testing.T) {
	t.Helper()
	select {
	case <-c.done:
	case <-t.Context().Done():
		t.Fatal("the job was not done")
	}
}

func TestOnceInAPeriod(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	once, first := newCounted("once"), newCounted("first")
	a := start(t, pool, schema, first.kind, once.kind)
	once.await(t)
	first.await(t)
	b := start(t, pool, schema, once.kind) // two at a time
	a.Stop()
	b.Stop()
	// The next one leads, and queues what is due in one go: what comes after
	// "second" would be done by now.
	second := newCounted("second")
	c := start(t, pool, schema, once.kind, second.kind)
	second.await(t)
	c.Stop()
	var queued int
	err := pool.QueryRow(t.Context(), "select count(*) from "+schema+".river_job where kind = 'once'").Scan(&queued)
	if err != nil || queued != 1 || once.n.Load() != 1 {
		t.Errorf("queued %d times, done %d times, %v", queued, once.n.Load(), err)
	}
}

func TestTwoRunners(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	once := newCounted("once")
	var a, b *jobs.Runner
	var wg sync.WaitGroup
	wg.Go(func() { a = start(t, pool, schema, once.kind) }) // both make the tables
	wg.Go(func() { b = start(t, pool, schema, once.kind) })
	wg.Wait()
	if a == nil || b == nil {
		t.FailNow()
	}
	once.await(t)
	const byHand = 3
	for range byHand {
		if s, err := b.Run(t.Context(), "once"); err != nil || s.Outcome != jobs.Done || s.Detail != "counted" {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	a.Stop()
	b.Stop()
	if n := once.n.Load(); n != 1+byHand {
		t.Errorf("done %d times, want %d", n, 1+byHand)
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	var fail atomic.Bool
	fail.Store(true)
	due := make(chan struct{})
	once := sync.OnceFunc(func() { close(due) })
	r := start(t, pool, schema, jobs.Kind{Name: "moody", About: "fail", Every: long, Do: func(context.Context) (string, error) {
		once()
		if fail.Load() {
			return "", errors.New("no good")
		}
		return "all good", nil
	}})
	<-due // the one of the present period comes by itself; those by hand are later ones
	s, err := r.Run(t.Context(), "moody")
	if err != nil || s.Outcome != jobs.Failed || s.Detail != "no good" || s.At.IsZero() {
		t.Errorf("failed: %+v, %v", s, err)
	}
	fail.Store(false)
	if s, err = r.Run(t.Context(), "moody"); err != nil || s.Outcome != jobs.Done {
		t.Errorf("succeeded: %+v, %v", s, err)
	}
	list, err := r.States(t.Context())
	if err != nil || len(list) != 1 || list[0].Outcome != jobs.Done || list[0].Detail != "all good" || !list[0].Next.After(list[0].At) {
		t.Errorf("states: %+v, %v", list, err)
	}
	if _, err := r.Run(t.Context(), "other"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a kind that is none: %v", err)
	}
}

// TestPanic: a job that panics has failed, and the runner goes on.
func TestPanic(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	r := start(t, pool, schema, jobs.Kind{Name: "wild", Every: long, Do: func(context.Context) (string, error) { panic("ouch") }})
	for range 2 {
		if s, err := r.Run(t.Context(), "wild"); err != nil || s.Outcome != jobs.Failed || !strings.Contains(s.Detail, "ouch") {
			t.Errorf("%+v, %v", s, err)
		}
	}
}

func TestStopCancelsWhatRuns(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	began := make(chan struct{})
	var cause atomic.Value
	r := start(t, pool, schema, jobs.Kind{Name: "endless", Every: long, Do: func(ctx context.Context) (string, error) {
		close(began)
		<-ctx.Done()
		cause.Store(ctx.Err())
		return "", ctx.Err()
	}})
	<-began
	r.Stop()
	r.Stop() // twice is as good as once
	if cause.Load() == nil {
		t.Error("the job still runs")
	}
	var state string
	err := pool.QueryRow(t.Context(), "select state from "+schema+".river_job where kind = 'endless'", pgx.QueryExecModeSimpleProtocol).Scan(&state)
	if err != nil || state != "retryable" && state != "available" {
		t.Errorf("the job is %q, %v: it must be there for the next gateway", state, err)
	}
}
