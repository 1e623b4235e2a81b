package pglite_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/store/pglite"
	"github.com/pml-run/pml/internal/store/storetest"
)

// gatewayVariable makes the test binary a gateway on the directory that it names.
const gatewayVariable = "PML_TEST_GATEWAY"

func TestMain(m *testing.M) {
	if dir := os.Getenv(gatewayVariable); dir != "" {
		os.Exit(gateway(dir))
	}
	code := m.Run()
	err := goleak.Find()
	if template.dir != "" {
		err = errors.Join(err, os.RemoveAll(filepath.Dir(template.dir)))
	}
	if err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// gateway opens dir, stores a row and waits for its own death.
func gateway(dir string) int {
	ctx := context.Background()
	opts, err := options(dir)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	opts.LockWait = time.Millisecond
	s, err := pglite.New(opts)
	if err == nil {
		err = s.Start(ctx)
	}
	if err != nil {
		fmt.Println(fault.CodeOf(err))
		return 1
	}
	pool, err := connect(ctx, s)
	if err == nil {
		_, err = pool.Exec(ctx, `create table survivor as select 1 as n`)
	}
	fmt.Println("serving", err)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func options(dir string) (pglite.Options, error) {
	o, err := storetest.Embedded()
	return pglite.Options{Deno: o.Deno, RuntimeDir: o.RuntimeDir, DataDir: dir}, err
}

// template is a data directory that was made once; tests get copies of it.
var template struct {
	once sync.Once
	dir  string
	err  error
}

func makeTemplate() (string, error) {
	parent, err := os.MkdirTemp("", "pml-pglite-")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(parent, "data")
	opts, err := options(dir)
	if err != nil {
		return dir, err
	}
	s, err := pglite.New(opts)
	if err != nil {
		return dir, err
	}
	defer s.Stop()
	return dir, s.Start(context.Background())
}

// dataDir returns a directory with an empty database.
func dataDir(tb testing.TB) string {
	tb.Helper()
	template.once.Do(func() { template.dir, template.err = makeTemplate() })
	if template.err != nil {
		tb.Fatal(template.err)
	}
	dir := filepath.Join(tb.TempDir(), "data")
	if err := errors.Join(os.CopyFS(dir, os.DirFS(template.dir)), os.Chmod(dir, 0o700)); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// start starts a server on a fresh database; edit may change its options.
func start(tb testing.TB, edit func(*pglite.Options)) *pglite.Server {
	tb.Helper()
	opts, err := options(dataDir(tb))
	if err != nil {
		tb.Fatal(err)
	}
	if edit != nil {
		edit(&opts)
	}
	s, err := pglite.New(opts)
	if err != nil {
		tb.Fatal(err)
	}
	if err := s.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Stop)
	return s
}

const embeddedDSN = "host=/embedded user=postgres dbname=postgres sslmode=disable"

func connect(ctx context.Context, s *pglite.Server) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(embeddedDSN)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = 8
	cfg.ConnConfig.DialFunc = s.Dial
	return pgxpool.NewWithConfig(ctx, cfg)
}

func pool(tb testing.TB, s *pglite.Server) *pgxpool.Pool {
	tb.Helper()
	p, err := connect(tb.Context(), s)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}

// conn is one connection without a pool.
func conn(tb testing.TB, s *pglite.Server) *pgx.Conn {
	tb.Helper()
	cfg, err := pgx.ParseConfig(embeddedDSN)
	if err != nil {
		tb.Fatal(err)
	}
	cfg.DialFunc = s.Dial
	c, err := pgx.ConnectConfig(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

type execer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func number(tb testing.TB, db execer, sql string, args ...any) int64 {
	tb.Helper()
	var n int64
	if err := db.QueryRow(tb.Context(), sql, args...).Scan(&n); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return n
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
