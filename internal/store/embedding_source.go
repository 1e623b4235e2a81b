package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/tool"
)

// lateCommit is how long after its beginning a transaction may commit: rows carry the
// time of the beginning.
const lateCommit = time.Minute

// since is from when on rows are read that may have been committed after a time.
func since(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(-lateCommit)
}

// ChangedCapabilities returns the capabilities in every state that may have changed
// after a time, and some more; the zero time is before all.
func (s *Store) ChangedCapabilities(ctx context.Context, after time.Time) ([]capability.Capability, error) {
	return collect(ctx, s, selectCapability+atHead+` and p.updated_at >= @since order by p.pattern_id`,
		pgx.NamedArgs{"since": since(after)}, scanCapability)
}

// ToolRecord is what calls have shown about a tool.
type ToolRecord struct {
	ID              tool.ID
	Calls, Failures int64
	// Observed is the schema of its results; empty when none was seen.
	Observed json.RawMessage
}

// ChangedTools returns the records of the called tools that may have changed after a
// time, and some more; the zero time is before all.
func (s *Store) ChangedTools(ctx context.Context, after time.Time) ([]ToolRecord, error) {
	return collect(ctx, s, `
		select tool_id as id, calls, failures, case when observed_count > 0 then observed_schema end as observed from tool_schema
		where workspace_id = @ws and calls > 0 and updated_at >= @since order by tool_id`,
		pgx.NamedArgs{"since": since(after)}, pgx.RowToStructByName[ToolRecord])
}

// GraphMark is another text when the graph's edges are others.
func (s *Store) GraphMark(ctx context.Context) (string, error) {
	return collectOne(ctx, s, `
		select format('%s %s %s', count(*), sum(observed_count), sum(weight))
		from tool_dependency where workspace_id = @ws`, nil, pgx.RowTo[string])
}

// Examples returns the arguments of one successful call of each tool that has any.
func (s *Store) Examples(ctx context.Context, ids []tool.ID) (map[tool.ID]json.RawMessage, error) {
	type row struct {
		ID   tool.ID
		Args json.RawMessage
	}
	list, err := collect(ctx, s, `
		select distinct on (tool_id) tool_id as id, args from tool_example
		where workspace_id = @ws and tool_id = any(@ids::text[]) order by tool_id, slot`,
		pgx.NamedArgs{"ids": texts(ids)}, pgx.RowToStructByName[row])
	out := make(map[tool.ID]json.RawMessage, len(list))
	for _, r := range list {
		out[r.ID] = r.Args
	}
	return out, err
}

// Now is the database's clock, which rows are dated by.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	return collectOne(ctx, s, `select now()`, nil, pgx.RowTo[time.Time])
}
