package pglite_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/store/pglite"
)

// TestKillLosesNothing kills the child under load, again and again: what was
// acknowledged is there, and what was not has got an error.
func TestKillLosesNothing(t *testing.T) {
	t.Parallel()
	const writers, kills, between = 6, 3, 200
	s := start(t, nil)
	p := pool(t, s)
	_, err := p.Exec(t.Context(), `create table acked (writer int, n int, primary key (writer, n))`)
	must(t, err)
	progress := make(chan struct{})
	stop := make(chan struct{})
	last := make([]int, writers)
	failed := make([]int, writers)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for n := 1; ; {
				_, err := p.Exec(t.Context(), `insert into acked values ($1, $2) on conflict do nothing`, w, n)
				if err != nil {
					failed[w]++
					continue // the same again: its answer may have been lost
				}
				last[w] = n
				n++
				select {
				case progress <- struct{}{}:
				case <-stop:
					return
				}
			}
		})
	}
	for range kills {
		for range between {
			<-progress
		}
		must(t, syscall.Kill(s.PID(), syscall.SIGKILL))
	}
	for range between {
		<-progress
	}
	close(stop)
	group.Wait()
	for w, n := range last {
		if got := number(t, p, `select count(*) from acked where writer = $1 and n <= $2`, w, n); got != int64(n) {
			t.Errorf("writer %d: %d rows of %d acknowledged", w, got, n)
		}
	}
	if s.Starts() != kills+1 {
		t.Errorf("started %d times, want %d", s.Starts(), kills+1)
	}
	t.Logf("rows %v, failed statements %v", last, failed)
}

// TestKillInFlight: the statement that was running gets a clear error at once.
func TestKillInFlight(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *pglite.Options) { o.HardLimit = time.Second })
	_, err := conn(t, s).Exec(t.Context(), `select count(*) from generate_series(1, 3000000000)`)
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || pg.Code != "57P01" || !strings.Contains(pg.Message, "longer than 1s") {
		t.Fatalf("got %v", err)
	}
	if n := number(t, conn(t, s), `select 1`); n != 1 {
		t.Error("the next statement does not work")
	}
	// With the limit off, the same second passes.
	must(t, s.Unlimited(func() error {
		_, err := conn(t, s).Exec(t.Context(), `select pg_sleep(1.2)`)
		return err
	}))
}

func TestIdleInTransactionIsCut(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *pglite.Options) { o.IdleInTx = 100 * time.Millisecond })
	idle, other := conn(t, s), conn(t, s)
	_, err := idle.Exec(t.Context(), `begin; create table forgotten ()`)
	must(t, err)
	if n := number(t, other, `select count(*) from pg_class where relname = 'forgotten'`); n != 0 {
		t.Error("the forgotten transaction was not rolled back")
	}
	if _, err := idle.Exec(t.Context(), `select 1`); err == nil {
		t.Error("the connection that was cut still works")
	}
}

// TestOutOfMemoryReplacesTheChild: WASM memory never shrinks.
func TestOutOfMemoryReplacesTheChild(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *pglite.Options) { o.MemoryMB = 256 })
	_, err := conn(t, s).Exec(t.Context(), `select length(string_agg(repeat('x', 100000000), '')) from generate_series(1, 5)`)
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "53200" {
		t.Fatalf("got %v, want out of memory", err)
	}
	p := pool(t, s)
	for s.Starts() < 2 { // until it was replaced every statement is answered, or says why not
		_, _ = p.Exec(t.Context(), `select 1`)
		must(t, t.Context().Err())
	}
	must(t, pgx.BeginFunc(t.Context(), conn(t, s), func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), `select 1`); return err }))
}

// TestOneGatewayPerDirectory: the second one is refused, in this process and in
// another; after a kill -9 of the first its child lets go and nothing is lost.
func TestOneGatewayPerDirectory(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	opts, err := options(dir)
	must(t, err)
	binary, err := os.Executable()
	must(t, err)
	holder := exec.CommandContext(t.Context(), binary)
	holder.Env = append(os.Environ(), gatewayVariable+"="+dir)
	_, err = holder.StdinPipe()
	must(t, err)
	out, err := holder.StdoutPipe()
	must(t, err)
	must(t, holder.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "serving <nil>\n" {
		t.Fatalf("the other gateway says %q, %v", line, err)
	}
	impatient := opts
	impatient.LockWait = time.Millisecond
	s, err := pglite.New(impatient)
	must(t, err)
	if err := s.Start(t.Context()); fault.CodeOf(err) != fault.StorageUnavailable {
		t.Fatalf("two gateways on one directory: %v", err)
	}
	s.Stop()
	must(t, holder.Process.Kill())
	_ = holder.Wait()
	opts.LockWait = time.Minute // its child still makes its last checkpoint
	s, err = pglite.New(opts)
	must(t, err)
	must(t, s.Start(t.Context()))
	t.Cleanup(s.Stop)
	if n := number(t, conn(t, s), `select n from survivor`); n != 1 {
		t.Error("the row is not there")
	}
	second := exec.CommandContext(t.Context(), binary)
	second.Env = append(os.Environ(), gatewayVariable+"="+dir)
	said, err := second.Output()
	if err == nil || string(said) != string(fault.StorageUnavailable)+"\n" {
		t.Errorf("the second process says %q, %v", said, err)
	}
}

func TestTornInitialisationIsRepeated(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	torn := dir + ".new-99999"
	must(t, os.MkdirAll(filepath.Join(torn, "base"), 0o700))
	must(t, os.Mkdir(dir, 0o700)) // an empty directory may be there
	opts, err := options(dir)
	must(t, err)
	s, err := pglite.New(opts)
	must(t, err)
	must(t, s.Start(t.Context()))
	s.Stop()
	if _, err := os.Stat(torn); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was left is still there: %v", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("data directory: %v, %v", info.Mode(), err)
	}
}

func TestStopAndStartAgain(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	opts, err := options(dir)
	must(t, err)
	for range 2 {
		s, err := pglite.New(opts)
		must(t, err)
		s.Stop() // without Start
		must(t, s.Start(t.Context()))
		c := conn(t, s)
		stats, err := s.Stats(t.Context())
		if err != nil || stats.Syncs == 0 || stats.RSS == 0 {
			t.Errorf("stats %+v, %v", stats, err)
		}
		_, err = c.Exec(t.Context(), `create table if not exists kept (); begin`) // open at the stop
		must(t, err)
		s.Stop()
		s.Stop()
		if _, err := s.Dial(t.Context(), "", ""); fault.CodeOf(err) != fault.StorageUnavailable {
			t.Errorf("dial after stop: %v", err)
		}
	}
}

func TestMaintenance(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *pglite.Options) { o.MaintenanceEvery = time.Hour })
	c := conn(t, s)
	_, err := c.Exec(t.Context(), `create table churned as select g, 0 as n from generate_series(1, 5000) g; update churned set n = 1`)
	must(t, err)
	must(t, s.MaintainOnce(t.Context(), time.Now().Add(time.Hour)))
	if n := number(t, c, `select count(*) from pg_stat_user_tables where relname = 'churned' and last_vacuum is not null and last_analyze is not null`); n != 1 {
		t.Error("the table was not vacuumed")
	}
}

func TestMissingParts(t *testing.T) {
	t.Parallel()
	good, err := options(filepath.Join(t.TempDir(), "data"))
	must(t, err)
	for name, edit := range map[string]func(*pglite.Options){
		"no deno":     func(o *pglite.Options) { o.Deno = "/no/such/deno" },
		"no packages": func(o *pglite.Options) { o.RuntimeDir = t.TempDir() },
		"a comma":     func(o *pglite.Options) { o.DataDir = filepath.Join(t.TempDir(), "work, private") },
	} {
		opts := good
		edit(&opts)
		s, err := pglite.New(opts)
		must(t, err)
		err = s.Start(t.Context())
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != fault.StorageUnavailable || f.Hint == "" {
			t.Errorf("%s: %v, want a fault with a hint", name, err)
		}
	}
	if _, err := pglite.New(pglite.Options{}); err == nil {
		t.Error("options without paths were accepted")
	}
}

func TestStartIsInterrupted(t *testing.T) {
	t.Parallel()
	opts, err := options(dataDir(t))
	must(t, err)
	s, err := pglite.New(opts)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
