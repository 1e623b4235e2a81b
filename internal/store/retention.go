package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// retentionBatch is how many rows one statement of the retention deletes or
	// changes: others wait for an embedded database meanwhile.
	retentionBatch = 500
	// SurprisesKept is how many traces of a capability are kept for their priority.
	SurprisesKept = 50
)

// ended is the condition that a run is not open.
const ended = `status not in ('running', 'awaiting_approval', 'suspended')`

// A trace is kept for its age, as the best of its path (the fastest that succeeded,
// or that failed where none did), as a surprise, or because one that is kept was
// started by it. Of the others those go first that have started no further one.
const dropTraces = `
	with recursive ranked as (
		select id, parent_trace_id, created_at,
			capability_id is not null and cache_hit = '' as counts,
			row_number() over (partition by capability_id, capability_version, path_hash, cache_hit
				order by success desc, duration_ms, created_at, id) as place,
			row_number() over (partition by capability_id, cache_hit order by priority desc, created_at desc, id) as surprise
		from capability_trace where workspace_id = @ws
	), kept as (
		select id, parent_trace_id from ranked
		where created_at >= @before or counts and (place = 1 or surprise <= @surprises)
		union
		select r.id, r.parent_trace_id from ranked r join kept k on r.id = k.parent_trace_id
	)
	delete from capability_trace t where t.workspace_id = @ws and t.id in (
		select r.id from ranked r
		where not exists (select from kept k where k.id = r.id)
		  and not exists (select from capability_trace c where c.workspace_id = @ws and c.parent_trace_id = r.id)
		limit @batch)`

// DropTraces deletes the traces from before a moment, except, for each capability,
// the best of every path and the fifty of the highest priorities, and what those were
// started by. It returns how many went.
func (s *Store) DropTraces(ctx context.Context, before time.Time) (int64, error) {
	return s.inBatches(ctx, dropTraces, pgx.NamedArgs{"before": before, "surprises": SurprisesKept})
}

// DropRuns deletes the runs that ended before a moment and have no trace, with their
// calls and approvals; none that another run was started by. It returns how many went.
func (s *Store) DropRuns(ctx context.Context, before time.Time) (int64, error) {
	return s.inBatches(ctx, `
		delete from workflow_execution d where d.workspace_id = @ws and d.workflow_id in (
			select workflow_id from workflow_execution e
			where workspace_id = @ws and started_at < @before and coalesce(finished_at, started_at) < @before and `+ended+`
			  and not exists (select from capability_trace t where t.workspace_id = @ws and t.id = e.workflow_id)
			  and not exists (select from workflow_execution c where c.workspace_id = @ws and c.parent_workflow_id = e.workflow_id)
			order by started_at limit @batch) and d.`+ended, pgx.NamedArgs{"before": before})
}

// DropLogs empties what runs have logged that ended before a moment, and returns of
// how many.
func (s *Store) DropLogs(ctx context.Context, before time.Time) (int64, error) {
	return s.inBatches(ctx, `
		update workflow_execution set logs = '{}', updated_at = now()
		where workspace_id = @ws and workflow_id in (
			select workflow_id from workflow_execution
			where workspace_id = @ws and started_at < @before and finished_at < @before and logs <> '{}' and `+ended+`
			limit @batch)`, pgx.NamedArgs{"before": before})
}

// inBatches runs a statement until it finds nothing more to do.
func (s *Store) inBatches(ctx context.Context, sql string, args pgx.NamedArgs) (int64, error) {
	args["batch"] = retentionBatch
	var all int64
	for {
		n, err := s.exec(ctx, sql, args)
		all += n
		if err != nil || n == 0 {
			return all, err
		}
	}
}
