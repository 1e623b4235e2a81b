package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/migrations"
)

const (
	oldestPostgres = 15
	// With these the lock is looked at every second, for five minutes: the default
	// makes a second replica wait five seconds for a migration of milliseconds.
	lockProbeSeconds = 1
	lockProbes       = 300
)

// oldestVector is the first pgvector that has all that is used.
var oldestVector = [2]int{0, 7}

// migrate brings the schema up to date, on connections of its own.
func (s *Store) migrate(ctx context.Context, cfg *pgxpool.Config) (err error) {
	cfg = cfg.Copy()
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return unavailable(err)
	}
	defer pool.Close()
	if err := checkServer(ctx, pool); err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { err = errors.Join(err, db.Close()) }()
	var opts []goose.ProviderOption
	if s.server == nil {
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockProbeSeconds, lockProbes))
		if err != nil {
			return err
		}
		opts = append(opts, goose.WithSessionLocker(locker))
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS, opts...)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if err := refuseNewer(ctx, provider); err != nil {
		return err
	}
	up := func() error {
		done, err := provider.Up(ctx)
		for _, m := range done {
			s.log.InfoContext(ctx, "migrated", "file", m.Source.Path, "took", m.Duration)
		}
		return err
	}
	if s.server != nil {
		err = s.server.Unlimited(up)
	} else {
		err = up()
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", translate(ctx, err))
	}
	return nil
}

// refuseNewer stops an old binary from working on a schema that it does not know.
func refuseNewer(ctx context.Context, p *goose.Provider) error {
	have, known, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", translate(ctx, err))
	}
	if have > known {
		return fault.New(fault.StorageUnavailable, "the database has schema version %d, this binary knows %d", have, known).
			WithHint("use the release that wrote it, or a newer one")
	}
	return nil
}

// schemaVersion is the newest migration that this binary has.
func schemaVersion() (int64, error) {
	files, err := migrations.FS.ReadDir(".")
	if err != nil {
		return 0, err
	}
	var newest int64
	for _, f := range files {
		v, err := goose.NumericComponent(f.Name())
		if err != nil {
			return 0, err
		}
		newest = max(newest, v)
	}
	return newest, nil
}

// checkServer refuses what is too old, and offers a hint where pgvector is missing.
func checkServer(ctx context.Context, pool *pgxpool.Pool) error {
	var number int
	var vector string
	err := pool.QueryRow(ctx, `select current_setting('server_version_num')::int,
		coalesce((select coalesce(installed_version, default_version) from pg_available_extensions where name = 'vector'), '')`).Scan(&number, &vector)
	if err != nil {
		return unavailable(translate(ctx, err))
	}
	const perMajor = 10_000
	if major := number / perMajor; major < oldestPostgres {
		return fault.New(fault.StorageUnavailable, "the database is PostgreSQL %d, %d or newer is needed", major, oldestPostgres)
	}
	if vector == "" {
		return fault.New(fault.StorageUnavailable, "the database server has no pgvector").
			WithHint("install pgvector %d.%d or newer on the server (Debian: postgresql-NN-pgvector)", oldestVector[0], oldestVector[1])
	}
	if !newEnough(vector) {
		return fault.New(fault.StorageUnavailable, "the database server has pgvector %s, %d.%d or newer is needed", vector, oldestVector[0], oldestVector[1])
	}
	return nil
}

func newEnough(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (major > oldestVector[0] || major == oldestVector[0] && minor >= oldestVector[1])
}
