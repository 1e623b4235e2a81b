package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pml-run/pml/internal/store/storetest"
)

// template is a data folder with an empty database: to make one takes seconds of both
// processors, to copy it next to nothing.
var template struct {
	once sync.Once
	home string
	err  error
}

// withTemplate runs tests and removes the template behind them.
type withTemplate struct{ *testing.M }

// Run runs the tests.
func (w withTemplate) Run() int {
	code := w.M.Run()
	_ = os.RemoveAll(template.home)
	return code
}

// databases has the URLs of the data folders whose memory is on a native Postgres.
var databases sync.Map

// isNative reports whether the tests run on a native Postgres.
func isNative() bool { return os.Getenv(storetest.URLVariable) != "" }

// newHome makes a data folder with an empty database: embedded, or on the native
// Postgres that the environment names.
func newHome(tb testing.TB, home string) {
	tb.Helper()
	if url := os.Getenv(storetest.URLVariable); url != "" {
		fresh, drop, err := storetest.Database(tb.Context(), url)
		if err != nil {
			tb.Fatal(err)
		}
		databases.Store(home, fresh)
		tb.Cleanup(func() {
			if err := drop(); err != nil {
				tb.Error(err)
			}
		})
		return
	}
	template.once.Do(func() { template.home, template.err = makeTemplate(tb) })
	if template.err != nil {
		tb.Fatal(template.err)
	}
	if out, err := exec.CommandContext(tb.Context(), "cp", "-R", "-p", template.home, home).CombinedOutput(); err != nil {
		tb.Fatalf("copy the empty database: %v\n%s", err, out)
	}
}

// makeTemplate lets a command without servers make the database.
func makeTemplate(tb testing.TB) (string, error) {
	tb.Helper()
	dir, err := os.MkdirTemp("", "pml-template-")
	if err != nil {
		return "", err
	}
	config := filepath.Join(dir, "pml.json")
	if err := os.WriteFile(config, []byte(`{"mcpServers": {}, "embedding": {"provider": "none"}}`), 0o600); err != nil {
		return dir, err
	}
	cmd := exec.CommandContext(tb.Context(), os.Args[0], "policy", "ls")
	cmd.Env, cmd.Dir = environment(tb, dir), dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("make an empty database: %w\n%s", err, out)
	}
	var gone error
	for _, name := range []string{"pml.json", "data.lock", "gateway.lock", "gateway.sock"} {
		if err := os.Remove(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			gone = errors.Join(gone, err)
		}
	}
	return dir, gone
}
