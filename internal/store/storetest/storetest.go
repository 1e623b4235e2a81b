// Package storetest gives the tests of other packages a migrated store. One
// embedded server, or one database on a native PostgreSQL when
// PML_TEST_DATABASE_URL is set, serves all tests of a test binary; each test has a
// workspace of its own. A package that uses it has
//
//	func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }
package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/pml-run/pml/internal/deno/denotest"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/store/pglite"
)

// URLVariable names the environment variable that chooses a native PostgreSQL.
const URLVariable = "PML_TEST_DATABASE_URL"

const advice = "run make setup, or set PML_DENO and PML_TEST_RUNTIME"

// shared is the one database of this test binary.
var shared struct {
	once    sync.Once
	inMain  bool
	store   *store.Store
	err     error
	cleanup []func() error
}

// Main runs the tests, then stops the shared database and looks for goroutines
// that were left. It returns the exit code.
func Main(m *testing.M) int {
	shared.inMain = true
	code := m.Run()
	if shared.store != nil {
		shared.store.Close()
	}
	var err error
	for _, v := range slices.Backward(shared.cleanup) {
		err = errors.Join(err, v())
	}
	err = errors.Join(err, goleak.Find())
	if err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "storetest:", err)
		code = 1
	}
	return code
}

// New returns a store with an empty workspace of its own. It must not be closed.
func New(tb testing.TB) *store.Store {
	tb.Helper()
	if !shared.inMain {
		tb.Fatal("storetest: this package needs: func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }")
	}
	// The database outlives the test that happens to come first.
	ctx := context.WithoutCancel(tb.Context())
	shared.once.Do(func() { shared.store, shared.err = open(ctx) })
	if shared.err != nil {
		tb.Fatalf("storetest: %v", shared.err)
	}
	return shared.store.WithWorkspace(uuid.NewString())
}

func open(ctx context.Context) (*store.Store, error) {
	opts, err := options(ctx)
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, opts)
}

// options chooses the database: a fresh one on the native server, or embedded.
func options(ctx context.Context) (store.Options, error) {
	if url := os.Getenv(URLVariable); url != "" {
		fresh, drop, err := Database(ctx, url)
		if err == nil {
			shared.cleanup = append(shared.cleanup, drop)
		}
		return store.Options{URL: fresh}, err
	}
	opts, err := Embedded()
	if err != nil {
		return opts, err
	}
	dir, err := os.MkdirTemp("", "pml-storetest-")
	if err != nil {
		return opts, err
	}
	shared.cleanup = append(shared.cleanup, func() error { return os.RemoveAll(dir) })
	opts.DataDir = filepath.Join(dir, "data")
	return opts, nil
}

// patience bounds a statement in tests. A database that starts again after a crash may
// take a minute where a dozen of them share two processors.
const patience = 2 * time.Minute

// Embedded returns the options of an embedded store, all but DataDir.
func Embedded() (store.Options, error) {
	deno, err := denotest.Find()
	if err != nil {
		return store.Options{}, err
	}
	dir, err := findPackages()
	if err != nil {
		return store.Options{}, err
	}
	return store.Options{Deno: deno, RuntimeDir: dir, QueryTimeout: patience}, nil
}

// findPackages looks in PML_TEST_RUNTIME, where 'pml setup' has put them for the
// repository's own runs, and where make setup puts them.
func findPackages() (string, error) {
	dirs := []string{os.Getenv("PML_TEST_RUNTIME"), filepath.Join(root(), ".pml", "runtime"), filepath.Join(root(), ".tools", "runtime")}
	if home := os.Getenv("PML_HOME"); home != "" {
		dirs = append(dirs, filepath.Join(home, "runtime"))
	}
	for _, dir := range dirs {
		if dir != "" && pglite.Installed(dir) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("the embedded database's packages are in none of %v; %s", dirs, advice)
}

// root is the repository's folder.
func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}

// Database makes an empty database on the server of url and returns its URL and
// what drops it.
func Database(ctx context.Context, url string) (fresh string, drop func() error, err error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return "", nil, err
	}
	name := "pml_test_" + uuid.NewString()[:8]
	run := func(ctx context.Context, sql string) error {
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			return fmt.Errorf("%s: %w", URLVariable, err)
		}
		_, err = conn.Exec(ctx, sql)
		return errors.Join(err, conn.Close(ctx))
	}
	if err := run(ctx, "create database "+name); err != nil {
		return "", nil, err
	}
	drop = func() error { return run(context.WithoutCancel(ctx), "drop database "+name+" with (force)") }
	fresh, err = withDatabase(url, name)
	return fresh, drop, err
}
