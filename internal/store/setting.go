package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/pml-run/pml/internal/fault"
)

// SigningKey is the setting with the key that the gateways of a database sign with.
// It is a secret, and is in no export.
const SigningKey = "signing_key"

// Setting returns a setting of the data folder; fault.NotFound when it was never set.
func (s *Store) Setting(ctx context.Context, key string) (string, error) {
	v, err := collectOne(ctx, s, `select value from setting where workspace_id = @ws and key = @key`,
		pgx.NamedArgs{"key": key}, pgx.RowTo[string])
	if errors.Is(err, errNoRow) {
		return "", fault.New(fault.NotFound, "there is no setting %q", key)
	}
	return v, err
}

// SettingOnce writes a setting that is not there yet, and returns what is there then.
func (s *Store) SettingOnce(ctx context.Context, key, value string) (string, error) {
	_, err := s.exec(ctx, `insert into setting (workspace_id, key, value) values (@ws, @key, @value) on conflict do nothing`,
		pgx.NamedArgs{"key": key, "value": text(value)})
	if err != nil {
		return "", err
	}
	return s.Setting(ctx, key)
}

// SetSetting writes a setting.
func (s *Store) SetSetting(ctx context.Context, key, value string) error {
	_, err := s.exec(ctx, `
		insert into setting (workspace_id, key, value) values (@ws, @key, @value)
		on conflict (workspace_id, key) do update set value = excluded.value, updated_at = now()`,
		pgx.NamedArgs{"key": key, "value": text(value)})
	return err
}

// TableSize is the room that a table takes, indexes and all, for all workspaces.
// Rows is the database's estimate.
type TableSize struct {
	Name  string
	Bytes int64
	Rows  int64
}

// Sizes is the room that the data takes.
type Sizes struct {
	Database int64
	Tables   []TableSize // the largest first
}

// Sizes measures the database.
func (s *Store) Sizes(ctx context.Context) (Sizes, error) {
	var out Sizes
	var err error
	out.Database, err = collectOne(ctx, s, `select pg_database_size(current_database())`, nil, pgx.RowTo[int64])
	if err != nil {
		return out, err
	}
	out.Tables, err = collect(ctx, s, `
		select c.relname::text as name, pg_total_relation_size(c.oid) as bytes,
			greatest(c.reltuples, pg_stat_get_live_tuples(c.oid), 0)::bigint as rows
		from pg_class c
		where c.relkind = 'r' and c.relname = any(@names) and pg_table_is_visible(c.oid)
		order by bytes desc, name`, pgx.NamedArgs{"names": tableNames()}, pgx.RowToStructByName[TableSize])
	return out, err
}
