package store

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	pgxvector "github.com/pgvector/pgvector-go/pgx"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/store/pglite"
	"github.com/pml-run/pml/internal/supervise"
)

// DefaultWorkspace is the workspace of an installation that knows only one.
const DefaultWorkspace = "default"

// Options says where the data lives.
type Options struct {
	// URL of a PostgreSQL ≥ 15 with pgvector ≥ 0.7; empty means embedded.
	URL string
	// DataDir, Deno and RuntimeDir are for the embedded database: where it lives, the
	// Deno binary, and where pglite.Install has put the packages.
	DataDir, Deno, RuntimeDir string

	Logger    *slog.Logger
	Watchdog  *supervise.Watchdog
	Workspace string // default DefaultWorkspace

	Registerer prometheus.Registerer // nil measures for nobody

	// QueryTimeout bounds each statement or transaction; default 30 s. An embedded
	// database that starts again after a crash takes seconds, on a loaded machine ten.
	QueryTimeout time.Duration
	// ResultTTL is how long results are kept; default 1 h, negative means for ever.
	ResultTTL time.Duration
}

const (
	defaultQueryTimeout = 30 * time.Second
	defaultResultTTL    = time.Hour
	// The embedded backend does one thing at a time: more connections only queue.
	embeddedConns = 8
	nativeConns   = 10
	// statementCache is how many prepared statements a connection keeps.
	statementCache = 128
)

// Store is the open database.
type Store struct {
	pool      *pgxpool.Pool
	server    *pglite.Server // nil with a PostgreSQL of the user's own
	log       *slog.Logger
	workspace string
	timeout   time.Duration
	ttl       time.Duration
	now       func() time.Time
	spaces    *sync.Map // the numbers of dimensions that have a table, as keys
}

// Open connects, checks what is there, and brings the schema up to date.
func Open(ctx context.Context, opts Options) (*Store, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Workspace == "" {
		opts.Workspace = DefaultWorkspace
	}
	if opts.QueryTimeout == 0 {
		opts.QueryTimeout = defaultQueryTimeout
	}
	if opts.ResultTTL == 0 {
		opts.ResultTTL = defaultResultTTL
	}
	s := &Store{
		log: opts.Logger.With("system", "store"), workspace: opts.Workspace,
		timeout: opts.QueryTimeout, ttl: opts.ResultTTL, now: time.Now, spaces: &sync.Map{},
	}
	if err := s.connect(ctx, opts); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) connect(ctx context.Context, opts Options) error {
	cfg, err := poolConfig(opts.URL)
	if err != nil {
		return err
	}
	if opts.URL == "" {
		if err := s.startServer(ctx, opts, cfg); err != nil {
			return err
		}
	}
	if err := s.migrate(ctx, cfg); err != nil {
		return err
	}
	cfg.ConnConfig.Tracer = newLatency(opts.Registerer)
	// Only now: the types that a connection learns must exist.
	cfg.AfterConnect = pgxvector.RegisterTypes
	s.pool, err = pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return unavailable(err)
	}
	return s.Ping(ctx)
}

// startServer starts the embedded database and points cfg at it.
func (s *Store) startServer(ctx context.Context, opts Options, cfg *pgxpool.Config) error {
	server, err := pglite.New(pglite.Options{
		Deno: opts.Deno, RuntimeDir: opts.RuntimeDir, DataDir: opts.DataDir,
		Logger: opts.Logger, Watchdog: opts.Watchdog,
	})
	if err != nil {
		return err
	}
	if err := server.Start(ctx); err != nil {
		return err
	}
	s.server = server
	cfg.ConnConfig.DialFunc = server.Dial
	// What died with the child is thrown away before it costs somebody a statement.
	cfg.PrepareConn = func(_ context.Context, c *pgx.Conn) (bool, error) {
		conn, ok := c.PgConn().Conn().(*pglite.Conn)
		return !ok || !conn.Gone(), nil
	}
	return nil
}

func poolConfig(url string) (*pgxpool.Config, error) {
	conns, text := int32(nativeConns), url
	if url == "" {
		// A folder as host and no encryption: pgx then only calls DialFunc.
		conns, text = embeddedConns, "host=/embedded user=postgres dbname=postgres sslmode=disable"
	}
	cfg, err := pgxpool.ParseConfig(text)
	if err != nil {
		// The cause is not wrapped: it may hold the password.
		return nil, fault.New(fault.StorageUnavailable, "DATABASE_URL is not a PostgreSQL URL").
			WithHint("use postgres://user:password@host:5432/database")
	}
	if !strings.Contains(url, "pool_max_conns") {
		cfg.MaxConns = conns
	}
	if !strings.Contains(url, "statement_cache_capacity") {
		cfg.ConnConfig.StatementCacheCapacity = statementCache
	}
	if url != "" {
		cfg.ConnConfig.RuntimeParams["timezone"] = "UTC"
	}
	return cfg, nil
}

// Close closes all connections and, embedded, the database.
func (s *Store) Close() {
	if s.pool != nil {
		s.pool.Close()
	}
	if s.server != nil {
		s.server.Stop()
	}
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	return s.idempotent(ctx, func(ctx context.Context) error { return s.pool.Ping(ctx) })
}

// Backend names the database with its version.
func (s *Store) Backend(ctx context.Context) (string, error) {
	version, err := s.one(ctx, `show server_version`)
	if s.server != nil {
		return "embedded PGlite " + version, err
	}
	version, _, _ = strings.Cut(version, " ") // what follows names the distribution
	return "PostgreSQL " + version, err
}

// VectorVersion is the version of pgvector.
func (s *Store) VectorVersion(ctx context.Context) (string, error) {
	return s.one(ctx, `select extversion from pg_extension where extname = 'vector'`)
}

// one reads a single text.
func (s *Store) one(ctx context.Context, sql string) (string, error) {
	var v string
	err := s.idempotent(ctx, func(ctx context.Context) error { return s.pool.QueryRow(ctx, sql).Scan(&v) })
	return v, err
}

// args completes named arguments with the workspace, which every statement has.
func (s *Store) args(a pgx.NamedArgs) pgx.NamedArgs {
	if a == nil {
		a = pgx.NamedArgs{}
	}
	a["ws"] = s.workspace
	return a
}

// idempotent runs f under the store's deadline, once more when the connection was
// lost. f must do the same when it runs a second time.
func (s *Store) idempotent(ctx context.Context, f func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err := f(bounded)
	if lostConnection(err) && bounded.Err() == nil {
		err = f(bounded)
	}
	return translate(ctx, err)
}

// exec runs one statement that may run twice.
func (s *Store) exec(ctx context.Context, sql string, args pgx.NamedArgs) (int64, error) {
	var affected int64
	err := s.idempotent(ctx, func(ctx context.Context) error {
		tag, err := s.pool.Exec(ctx, sql, s.args(args))
		affected = tag.RowsAffected()
		return err
	})
	return affected, err
}

// collect reads all rows of one query.
func collect[T any](ctx context.Context, s *Store, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) ([]T, error) {
	var out []T
	err := s.idempotent(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, sql, s.args(args))
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, scan)
		return err
	})
	return out, err
}

// errNoRow is what a look-up that found nothing is turned into by its method.
var errNoRow = errors.New("no such row")

// collectOne reads exactly one row; errNoRow when there is none.
func collectOne[T any](ctx context.Context, s *Store, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) (T, error) {
	rows, err := collect(ctx, s, sql, args, scan)
	if err == nil && len(rows) == 0 {
		err = errNoRow
	}
	if err != nil {
		var none T
		return none, err
	}
	return rows[0], nil
}

// WithWorkspace returns a view of the same database for another workspace. Only
// the store that was opened is closed.
func (s *Store) WithWorkspace(workspace string) *Store {
	view := *s
	view.workspace = workspace
	return &view
}
