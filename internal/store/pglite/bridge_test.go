package pglite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pml-run/pml/internal/store/pglite"
)

// TestBridge runs what many connections do to one backend, on one server.
func TestBridge(t *testing.T) {
	s := start(t, nil)
	// Not parallel: the tests share the backend, and transactions block each other.
	for name, test := range map[string]func(*testing.T, *pglite.Server){
		"statement names":          statementNames,
		"64 goroutines":            manyGoroutines,
		"listen and notify":        listenNotify,
		"copy":                     copyInAndOut,
		"big values":               bigValues,
		"answer over the buffer":   bigAnswer,
		"client dies in tx":        clientDies,
		"query inside a rows loop": nestedQuery,
		"abandoned unit":           abandonedUnit,
		"settings do not leak":     settingsStay,
		"failed batch":             failedBatch,
		"deep recursion":           deepRecursion,
		"vector index":             vectorIndex,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
	if s.Starts() != 1 {
		t.Errorf("the child was started %d times: something has killed it", s.Starts())
	}
}

// statementNames prepares other SQL under one name on every connection.
func statementNames(t *testing.T, s *pglite.Server) {
	var group sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		c := conn(t, s)
		group.Go(func() {
			_, err := c.Prepare(t.Context(), "same", fmt.Sprintf("select %d + $1::int", i*1000))
			for k := 0; k < 50 && err == nil; k++ {
				var got int
				if err = c.QueryRow(t.Context(), "same", k).Scan(&got); err == nil && got != i*1000+k {
					err = fmt.Errorf("connection %d got %d, another one's answer", i, got)
				}
			}
			errs[i] = err
		})
	}
	group.Wait()
	must(t, errors.Join(errs...))
}

func manyGoroutines(t *testing.T, s *pglite.Server) {
	p := pool(t, s)
	var group sync.WaitGroup
	errs := make([]error, 64)
	for i := range errs {
		group.Go(func() {
			errs[i] = pgx.BeginFunc(t.Context(), p, func(tx pgx.Tx) error {
				var got int
				err := tx.QueryRow(t.Context(), "select $1::int", i).Scan(&got)
				if err == nil && got != i {
					err = fmt.Errorf("got %d, want %d", got, i)
				}
				return err
			})
		})
	}
	group.Wait()
	must(t, errors.Join(errs...))
}

func listenNotify(t *testing.T, s *pglite.Server) {
	a, b, c := conn(t, s), conn(t, s), conn(t, s)
	for _, x := range []*pgx.Conn{a, b} {
		_, err := x.Exec(t.Context(), `listen "Some channel"`)
		must(t, err)
	}
	_, err := b.Exec(t.Context(), `unlisten "Some channel"`) // its own affair
	must(t, err)
	_, err = c.Exec(t.Context(), `select pg_notify('Some channel', 'hello')`)
	must(t, err)
	n, err := a.WaitForNotification(t.Context())
	must(t, err)
	if n.Payload != "hello" {
		t.Errorf("payload %q", n.Payload)
	}
}

func copyInAndOut(t *testing.T, s *pglite.Server) {
	const count = 5000
	c := conn(t, s)
	_, err := c.Exec(t.Context(), `create table copied (id int primary key, name text)`)
	must(t, err)
	rows := make([][]any, count)
	for i := range rows {
		rows[i] = []any{i, strings.Repeat("x", i%100)}
	}
	n, err := c.CopyFrom(t.Context(), pgx.Identifier{"copied"}, []string{"id", "name"}, pgx.CopyFromRows(rows))
	if err != nil || n != count {
		t.Fatalf("copied %d, %v", n, err)
	}
	_, err = c.CopyFrom(t.Context(), pgx.Identifier{"copied"}, []string{"id", "name"}, pgx.CopyFromRows(rows[:1]))
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "23505" {
		t.Errorf("second copy: %v, want a duplicate key", err)
	}
	var out bytes.Buffer
	tag, err := c.PgConn().CopyTo(t.Context(), &out, `copy copied to stdout`)
	if err != nil || tag.RowsAffected() != count {
		t.Errorf("copy to: %v, %v", tag, err)
	}
	if got := number(t, c, `select count(*) from copied`); got != count {
		t.Errorf("%d rows", got)
	}
}

func bigValues(t *testing.T, s *pglite.Server) {
	want := bytes.Repeat([]byte("0123456789"), 1<<20)
	var data []byte
	var str string
	must(t, conn(t, s).QueryRow(t.Context(), `select $1::bytea, $2::text`, want, string(want)).Scan(&data, &str))
	if !bytes.Equal(data, want) || str != string(want) {
		t.Error("big values came back changed")
	}
}

func bigAnswer(t *testing.T, s *pglite.Server) {
	const row = 1 << 20
	rows, err := conn(t, s).Query(t.Context(), `select repeat('x', $1) from generate_series(1, $2)`, row, pglite.MaxAnswer/row+5)
	must(t, err)
	n := 0
	for rows.Next() {
		n += len(rows.RawValues()[0])
	}
	must(t, rows.Err())
	if n != pglite.MaxAnswer+5*row {
		t.Errorf("%d bytes", n)
	}
}

func clientDies(t *testing.T, s *pglite.Server) {
	c, other := conn(t, s), conn(t, s)
	_, err := c.Exec(t.Context(), `create table dying (n int)`)
	must(t, err)
	_, err = c.Exec(t.Context(), `begin`)
	must(t, err)
	_, err = c.Exec(t.Context(), `insert into dying values (1)`)
	must(t, err)
	must(t, c.PgConn().Conn().Close())
	if n := number(t, other, `select count(*) from dying`); n != 0 {
		t.Errorf("%d rows of a transaction that was never committed", n)
	}
}

func nestedQuery(t *testing.T, s *pglite.Server) {
	a, b := conn(t, s), conn(t, s)
	rows, err := a.Query(t.Context(), `select generate_series(1, 3)`)
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		if number(t, b, `select 1`) != 1 {
			t.Error("wrong answer")
		}
	}
	must(t, rows.Err())
}

// abandonedUnit: what nobody waits for any more when its turn comes is not run.
func abandonedUnit(t *testing.T, s *pglite.Server) {
	holder, waiter, after := conn(t, s), conn(t, s), conn(t, s)
	_, err := holder.Exec(t.Context(), `create table abandoned (n int)`)
	must(t, err)
	_, err = holder.Exec(t.Context(), `begin`)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := waiter.Exec(ctx, `insert into abandoned values (1)`, pgx.QueryExecModeSimpleProtocol); err == nil {
		t.Fatal("the statement ran inside another connection's transaction")
	}
	<-waiter.PgConn().CleanupDone() // its cancel request has arrived
	_, err = holder.Exec(t.Context(), `commit`)
	must(t, err)
	if n := number(t, after, `select count(*) from abandoned`); n != 0 {
		t.Errorf("%d rows", n)
	}
}

func settingsStay(t *testing.T, s *pglite.Server) {
	c := conn(t, s)
	_, err := c.Exec(t.Context(), `set work_mem = '7MB'`)
	must(t, err)
	must(t, c.Close(t.Context()))
	// The old connection's clean-up comes before anything that is asked later.
	var got string
	for got != "4MB" {
		must(t, conn(t, s).QueryRow(t.Context(), `show work_mem`).Scan(&got))
	}
}

func failedBatch(t *testing.T, s *pglite.Server) {
	c := conn(t, s)
	_, err := c.Exec(t.Context(), `create table batched (n int primary key)`)
	must(t, err)
	var b pgx.Batch
	for _, n := range []int{1, 2, 1, 3} {
		b.Queue(`insert into batched values ($1)`, n)
	}
	if err := c.SendBatch(t.Context(), &b).Close(); err == nil {
		t.Error("a batch with a duplicate key succeeded")
	}
	if n := number(t, c, `select count(*) from batched`); n != 0 {
		t.Errorf("%d rows of a failed batch", n)
	}
}

func deepRecursion(t *testing.T, s *pglite.Server) {
	c := conn(t, s)
	_, err := c.Exec(t.Context(), `create function deeper(n int) returns int language plpgsql as $$ begin return deeper(n + 1); end $$`)
	must(t, err)
	_, err = c.Exec(t.Context(), `select deeper(1)`)
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "54001" {
		t.Errorf("got %v, want PostgreSQL's own stack depth error", err)
	}
}

func vectorIndex(t *testing.T, s *pglite.Server) {
	c := conn(t, s)
	_, err := c.Exec(t.Context(), `create extension vector;
		create table vecs (id int, v vector(3));
		create index on vecs using hnsw (v vector_cosine_ops);
		insert into vecs values (1, '[1,0,0]'), (2, '[0,1,0]')`)
	must(t, err)
	if n := number(t, c, `select id from vecs order by v <=> '[0.1,0.9,0]' limit 1`); n != 2 {
		t.Errorf("nearest is %d", n)
	}
}
