package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// At returns a view of s whose clock stands at t.
func At(s *Store, t time.Time) *Store {
	view := *s
	view.now = func() time.Time { return t }
	return &view
}

// SchemaVersion is the newest migration.
var SchemaVersion = schemaVersion

// TableNames are the tables that an export holds.
var TableNames = tableNames

// Mend is for its fuzz test.
var Mend = mend

// Shape is for its test.
func Shape(raw []byte) []byte { _, shape := inline(raw); return shape }

// Exec runs a statement of a test's own.
func Exec(ctx context.Context, s *Store, sql string) error {
	_, err := s.exec(ctx, sql, nil)
	return err
}

// Query returns a column of text.
func Query(ctx context.Context, s *Store, sql string) ([]string, error) {
	return collect(ctx, s, sql, nil, pgx.RowTo[string])
}

// Workspace is the workspace that s sees.
func Workspace(s *Store) string { return s.workspace }

// Within runs f as a query of s with a deadline of a millisecond.
func Within(s *Store, f func(context.Context) error) error {
	view := *s
	view.timeout = time.Millisecond
	return view.idempotent(context.Background(), f)
}

// ServerPID is the embedded database's process.
func ServerPID(s *Store) int { return s.server.PID() }
