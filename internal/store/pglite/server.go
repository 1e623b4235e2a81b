package pglite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/supervise"
)

// Options says where the database lives and what it may use.
// Deno, RuntimeDir and DataDir are required.
type Options struct {
	Deno       string // path of the Deno binary
	RuntimeDir string // where Install has put the packages
	DataDir    string // made on the first start
	Logger     *slog.Logger
	Watchdog   *supervise.Watchdog

	MemoryMB  int           // cap on the database's memory; default 512
	HardLimit time.Duration // for one statement or batch; default 30 s
	IdleInTx  time.Duration // for a transaction without a statement; default 15 s
	LockWait  time.Duration // for another gateway to let go of DataDir; default 5 s
	// MaintenanceEvery is how often the need for a checkpoint is looked at; default 30 s.
	MaintenanceEvery time.Duration
}

func (o Options) withDefaults() (Options, error) {
	var errs []error
	for _, required := range []struct{ name, value string }{{"Deno", o.Deno}, {"RuntimeDir", o.RuntimeDir}, {"DataDir", o.DataDir}} {
		if required.value == "" {
			errs = append(errs, fmt.Errorf("%s is not set", required.name))
		}
	}
	for _, path := range []*string{&o.RuntimeDir, &o.DataDir} {
		abs, err := filepath.Abs(*path)
		*path, errs = abs, append(errs, err)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MemoryMB == 0 {
		o.MemoryMB = 512
	}
	for _, d := range []struct {
		value *time.Duration
		is    time.Duration
	}{{&o.HardLimit, 30 * time.Second}, {&o.IdleInTx, 15 * time.Second}, {&o.LockWait, 5 * time.Second}, {&o.MaintenanceEvery, 30 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.is
		}
	}
	return o, errors.Join(errs...)
}

// Server keeps one child running for one data directory. A child that dies is
// started again; its connections are lost, what it had committed is not.
type Server struct {
	opts Options
	log  *slog.Logger
	lock *os.File

	unlimited atomic.Int32
	cancel    context.CancelFunc // nil before Start
	running   sync.WaitGroup
	stopOnce  sync.Once
	upkeep    upkeep

	mu      sync.Mutex
	child   *child        // nil while there is none
	down    error         // why there is none; nil while one is being started
	changed chan struct{} // closed when child or down has changed
	starts  int
}

// New makes a server; Start starts it.
func New(opts Options) (*Server, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("embedded database: %w", err)
	}
	return &Server{opts: opts, log: opts.Logger.With("system", "pglite"), changed: make(chan struct{})}, nil
}

// Start locks the data directory, makes the database on the first start, and
// returns when it serves. The lifetime of ctx does not bound the server's.
func (s *Server) Start(ctx context.Context) error {
	dir := s.opts.DataDir
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	lock, err := lockDirectory(ctx, dir, s.opts.LockWait)
	if err != nil {
		return err
	}
	s.lock = lock
	c, err := s.first(ctx)
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	s.set(c, nil)
	owned, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.upkeep.lastVacuum = time.Now() // from here on for the goroutine of maintain alone
	s.running.Go(func() { s.run(owned, c) })
	s.running.Go(func() { s.maintain(owned) })
	return nil
}

// first makes the database if there is none, and starts the first child on it.
func (s *Server) first(ctx context.Context) (*child, error) {
	initialised, err := checkDirectory(s.opts.DataDir)
	if err != nil {
		return nil, err
	}
	if !initialised {
		began := time.Now()
		err := initialise(s.opts.DataDir, func(dir string) error {
			c, err := s.spawn(ctx, dir)
			if err == nil {
				c.end(ctx)
				err = c.proc.Err()
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("make the embedded database: %w", err)
		}
		s.log.InfoContext(ctx, "made the embedded database", "data_dir", s.opts.DataDir, "took", time.Since(began))
	}
	return s.up(ctx)
}

// up starts a child on the data directory and proves that its fsync is real: a
// release of PGlite that works otherwise inside would lose commits in a power cut.
func (s *Server) up(ctx context.Context) (*child, error) {
	c, err := s.spawn(ctx, s.opts.DataDir)
	if err != nil {
		return nil, err
	}
	stats := Stats{}
	if _, err = c.exec(ctx, "CHECKPOINT"); err == nil {
		stats, err = c.stats(ctx)
	}
	if err == nil && stats.Syncs == 0 {
		err = fault.New(fault.StorageUnavailable, "the embedded database does not write through to the disk").
			WithHint("this release of PGlite is not supported; run 'pml setup' with the packages of this binary, or set DATABASE_URL")
	}
	if err != nil {
		c.end(ctx)
		return nil, err
	}
	s.mu.Lock()
	s.starts++
	s.mu.Unlock()
	return c, nil
}

// Stop closes all connections and the database, and lets go of the directory.
func (s *Server) Stop() {
	if s.cancel == nil {
		return
	}
	s.stopOnce.Do(func() {
		s.cancel()
		s.running.Wait()
		_ = s.lock.Close()
	})
}

// Dial makes a connection; it is a DialFunc for pgx. While a dead child is being
// replaced it waits; when that has failed it says so at once.
func (s *Server) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	c, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	return c.dial()
}

func (s *Server) current(ctx context.Context) (*child, error) {
	for {
		s.mu.Lock()
		c, down, changed := s.child, s.down, s.changed
		s.mu.Unlock()
		if c != nil && !c.gone.Load() {
			return c, nil
		}
		if down != nil {
			return nil, down
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *Server) set(c *child, down error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.child, s.down = c, down
	close(s.changed)
	s.changed = make(chan struct{})
}

// Unlimited runs f with the hard limit off, for migrations and index builds.
func (s *Server) Unlimited(f func() error) error {
	s.unlimited.Add(1)
	defer s.unlimited.Add(-1)
	return f()
}

// Stats asks the running child about itself.
func (s *Server) Stats(ctx context.Context) (Stats, error) {
	c, err := s.current(ctx)
	if err != nil {
		return Stats{}, err
	}
	return c.stats(ctx)
}

// PID is the running child's process id, 0 when there is none.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child == nil {
		return 0
	}
	return s.child.proc.PID()
}

// Starts says how often a child was started.
func (s *Server) Starts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starts
}
