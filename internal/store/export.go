package store

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"
)

// The export is a zstd stream of JSON lines. The first is an exportHeader; then each
// table comes as a tableHeader, its rows as objects, and null.
//
// It is logical because nothing else reads the embedded database's files: neither
// native PostgreSQL nor the next major release of PGlite.

// exportFormat is the version of that layout.
const exportFormat = 1

type exportHeader struct {
	Format    int       `json:"pml_export"`
	Schema    int64     `json:"schema_version"`
	Workspace string    `json:"workspace"`
	At        time.Time `json:"exported_at"`
}

type tableHeader struct {
	Table   string   `json:"table"`
	Columns []string `json:"columns"`
}

// table is a table in the order in which foreign keys let it be filled.
type table struct {
	name string
	key  string // order of the rows, for equal files from equal data
	// fetch is how many rows are read at once: few where they may be big.
	fetch int
	// travels, where it is set, is the condition of the rows that an export has: others
	// belong to the database that they are in.
	travels string
	// identity columns go on after the highest value that was imported.
	identity string
}

const (
	manyRows = 500
	fewRows  = 16
)

var tables = []table{
	{name: "setting", key: "key", fetch: manyRows, travels: "key <> '" + SigningKey + "'"},
	{name: "server", key: "name", fetch: manyRows},
	{name: "tool_schema", key: "tool_id", fetch: manyRows},
	{name: "tool_example", key: "tool_id, slot", fetch: manyRows},
	{name: "workflow_pattern", key: "pattern_id", fetch: manyRows},
	{name: "capability_version", key: "pattern_id, version", fetch: manyRows},
	{name: "capability_dependency", key: "from_pattern, to_pattern, edge_type", fetch: manyRows},
	{name: "workflow_execution", key: "workflow_id", fetch: fewRows},
	{name: "capability_trace", key: "id", fetch: fewRows},
	{name: "task_result", key: "workflow_id, task_id, occurrence", fetch: fewRows},
	{name: "approval", key: "id", fetch: manyRows},
	{name: "policy_rule", key: "id", fetch: manyRows, identity: "id"},
	{name: "tool_dependency", key: "from_id, to_id, edge_type", fetch: manyRows},
	{name: "embedding", key: "kind, ref_id, model", fetch: manyRows},
	{name: "graph_snapshot", key: "version", fetch: fewRows},
	{name: "capability_cache", key: "capability_id, version, params_hash", fetch: fewRows},
	{name: "cache_invalidation_log", key: "id", fetch: manyRows, identity: "id"},
}

// where selects the rows of the workspace that an export has.
func (t table) where() string {
	if t.travels == "" {
		return ` where workspace_id = @ws`
	}
	return ` where workspace_id = @ws and ` + t.travels
}

func tableNames() []string {
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.name
	}
	return names
}

// Export writes all rows of the workspace, as they were at one moment. The caller
// bounds it by ctx; other writes to an embedded database wait while it runs.
func (s *Store) Export(ctx context.Context, w io.Writer) error {
	version, err := schemaVersion()
	if err != nil {
		return err
	}
	packed, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	lines := json.NewEncoder(packed)
	lines.SetEscapeHTML(false)
	err = lines.Encode(exportHeader{Format: exportFormat, Schema: version, Workspace: s.workspace, At: s.now().UTC()})
	if err != nil {
		return err
	}
	err = pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		for _, t := range tables {
			if err := s.exportTable(ctx, tx, t, lines); err != nil {
				return fmt.Errorf("export %s: %w", t.name, err)
			}
		}
		return nil
	})
	if err != nil {
		return translate(ctx, err)
	}
	return packed.Close()
}

func (s *Store) exportTable(ctx context.Context, tx pgx.Tx, t table, lines *json.Encoder) error {
	columns, err := columnsOf(ctx, tx, t.name)
	if err != nil {
		return err
	}
	if err := lines.Encode(tableHeader{Table: t.name, Columns: columns}); err != nil {
		return err
	}
	// A cursor: the rows of a table may be more than memory holds.
	_, err = tx.Exec(ctx, `declare export_rows no scroll cursor for
		select (to_jsonb(t) - 'workspace_id')::text from `+t.name+` t`+t.where()+` order by `+t.key, s.args(nil))
	if err != nil {
		return err
	}
	for {
		rows, err := tx.Query(ctx, fmt.Sprintf("fetch %d from export_rows", t.fetch))
		if err != nil {
			return err
		}
		batch, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, row := range batch {
			if err := lines.Encode(json.RawMessage(row)); err != nil {
				return err
			}
		}
		if len(batch) < t.fetch {
			break
		}
	}
	if _, err := tx.Exec(ctx, `close export_rows`); err != nil {
		return err
	}
	return lines.Encode(nil)
}

// columnsOf returns a table's columns but for the workspace, which belongs to the
// database that a row is in.
func columnsOf(ctx context.Context, tx pgx.Tx, name string) ([]string, error) {
	rows, err := tx.Query(ctx, `
		select attname::text from pg_attribute
		where attrelid = to_regclass(@table) and attnum > 0 and not attisdropped and attname <> 'workspace_id'
		order by attnum`, pgx.NamedArgs{"table": name})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
