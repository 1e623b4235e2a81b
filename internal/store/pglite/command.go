package pglite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/supervise"
)

const (
	// v8Stack, in KiB, and PostgreSQL's own limit on its depth belong together: with
	// them deep recursion ends in an error of PostgreSQL's and not in a dead process.
	v8Stack  = 6000
	maxStack = "max_stack_depth=1000kB"

	// startTimeout bounds a start with recovery on a loaded machine; normally 0.5 s.
	startTimeout = 2 * time.Minute
	// closeTimeout bounds the shutdown checkpoint.
	closeTimeout = 20 * time.Second
)

// settings of the server. There is one session: what would be a connection's
// parameter elsewhere is set here.
var settings = []string{
	maxStack, "shared_buffers=32MB", "min_wal_size=32MB", "max_wal_size=64MB",
	"timezone=UTC", "client_encoding=UTF8", "jit=off",
}

// spawn starts the child on dataDir and waits until it serves. The child may read
// and write its data, read its packages, and nothing else.
func (s *Server) spawn(ctx context.Context, dataDir string) (*child, error) {
	dir := packages(s.opts.RuntimeDir)
	if !Installed(s.opts.RuntimeDir) {
		return nil, fault.New(fault.StorageUnavailable, "the embedded database's packages are not installed in %s", s.opts.RuntimeDir).
			WithHint("run 'pml setup', or set DATABASE_URL to a PostgreSQL with pgvector")
	}
	if path := dataDir + dir; strings.Contains(path, ",") { // Deno would read two paths
		return nil, fault.New(fault.StorageUnavailable, "the embedded database cannot be in %s, with its packages in %s: a path has a comma", dataDir, dir).
			WithHint("choose a data folder without a comma, with --home or PML_HOME; or set DATABASE_URL to a PostgreSQL with pgvector")
	}
	if err := writeProgram(dir); err != nil {
		return nil, fmt.Errorf("write the embedded database's program: %w", err)
	}
	args := []string{
		"run", "--no-prompt", "--cached-only", "--no-config", "--no-lock", "--no-npm", "--no-remote",
		"--import-map=" + filepath.Join(dir, "map.json"),
		"--deny-net", "--deny-env", "--deny-run", "--deny-ffi", "--deny-sys", "--deny-import",
		"--allow-read=" + dataDir + "," + dir, "--allow-write=" + dataDir,
		"--v8-flags=--stack-size=" + strconv.Itoa(v8Stack),
		programPath(dir), dataDir, strconv.Itoa(s.opts.MemoryMB),
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not up after %s", startTimeout))
	defer cancel()
	proc, err := supervise.Start(supervise.Options{
		Command: s.opts.Deno, Args: append(args, settings...), Dir: dir,
		Env:        []string{"NO_COLOR=1", "DENO_NO_UPDATE_CHECK=1", "DENO_DIR=" + filepath.Join(dir, "cache")},
		ExtraFiles: []*os.File{s.lock},
		EOFGrace:   closeTimeout,
		Watchdog:   s.opts.Watchdog,
		OnStderr:   s.heard,
	})
	if err != nil {
		return nil, fault.New(fault.StorageUnavailable, "cannot run Deno at %q: %v", s.opts.Deno, err).
			WithHint("install Deno or set its path in the configuration, or set DATABASE_URL to a PostgreSQL with pgvector")
	}
	return newChild(ctx, proc, limits{hard: s.opts.HardLimit, idleInTx: s.opts.IdleInTx, unlimited: &s.unlimited})
}

// heard passes the database's own log on, for developers.
func (s *Server) heard(line string) {
	s.log.Debug("embedded database says", "line", line)
}
