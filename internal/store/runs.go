package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/trace"
)

// BeginRun writes the row of a run that is about to start. It may be repeated.
func (s *Store) BeginRun(ctx context.Context, r trace.Run) error {
	status := r.Status
	if status == "" {
		status = trace.Running
	}
	_, err := s.exec(ctx, `
		insert into workflow_execution (workspace_id, workflow_id, parent_workflow_id, pattern_id, intent,
			implementation, args, options, status, owner, lease_until, started_at, gateway_version, client, seed)
		values (@ws, @id, @parent, @pattern, @intent,
			@implementation, @args, @options, @status, @owner, @lease, @started, @version, @client, @seed)
		on conflict (workspace_id, workflow_id) do nothing`,
		pgx.NamedArgs{
			"id": r.ID, "parent": nullID(r.Parent), "pattern": nullID(r.Capability), "intent": text(r.Intent),
			"implementation": jsonb(r.Implementation), "args": jsonb(r.Args), "options": jsonb(r.Options), "client": jsonb(r.Client),
			"status": status, "owner": text(r.Owner), "lease": nullTime(r.LeaseUntil), "started": r.StartedAt, "version": r.GatewayVersion, "seed": int64(r.Seed),
		})
	return err
}

const runColumns = `workflow_id, parent_workflow_id, pattern_id, intent, implementation, args, options, client,
	gateway_version, owner, lease_until, started_at, status, error, logs, finished_at, duration_ms, seed`

// scanRun reads runColumns.
func scanRun(row pgx.CollectableRow) (trace.Run, error) {
	var r trace.Run
	var parent, pattern *uuid.UUID
	var lease, finished *time.Time
	var failure json.RawMessage
	var ms float64
	err := row.Scan(&r.ID, &parent, &pattern, &r.Intent, &r.Implementation, &r.Args, &r.Options, &r.Client,
		&r.GatewayVersion, &r.Owner, &lease, &r.StartedAt, &r.Status, &failure, &r.Logs, &finished, &ms, &r.Seed)
	if err != nil {
		return r, err
	}
	r.Parent, r.Capability = deref(parent), deref(pattern)
	r.LeaseUntil, r.FinishedAt = deref(lease), deref(finished)
	r.Duration = duration(ms)
	r.Error, err = faultOf(failure)
	return r, err
}

// Run returns a run without its result.
func (s *Store) Run(ctx context.Context, id uuid.UUID) (trace.Run, error) {
	r, err := collectOne(ctx, s, `select `+runColumns+` from workflow_execution where workspace_id = @ws and workflow_id = @id`,
		pgx.NamedArgs{"id": id}, scanRun)
	return r, noRun(err, id)
}

// noRun says which run it was that a look-up did not find.
func noRun(err error, id uuid.UUID) error {
	if errors.Is(err, errNoRow) {
		return fault.New(fault.NotFound, "there is no run %s", id)
	}
	return err
}

// RunFilter selects runs; the zero value means the newest fifty.
type RunFilter struct {
	Status trace.Status
	Since  time.Time
	Query  string // part of the intent
	Limit  int    // default 50, at most 1000
	Offset int
}

const (
	defaultRuns = 50
	mostRuns    = 1000
)

// Runs lists runs, newest first.
func (s *Store) Runs(ctx context.Context, f RunFilter) ([]trace.Run, error) {
	if f.Limit <= 0 {
		f.Limit = defaultRuns
	}
	return collect(ctx, s, `
		select `+runColumns+` from workflow_execution
		where workspace_id = @ws
		  and (@status = '' or status = @status)
		  and (@since::timestamptz is null or started_at >= @since)
		  and (@query = '' or position(lower(@query) in lower(intent)) > 0)
		order by started_at desc, workflow_id desc
		limit @limit offset @offset`,
		pgx.NamedArgs{
			"status": string(f.Status), "since": nullTime(f.Since), "query": text(f.Query),
			"limit": min(f.Limit, mostRuns), "offset": max(f.Offset, 0),
		}, scanRun)
}

// ExtendLeases tells that an owner still works on its running runs, but for those that
// it has released.
func (s *Store) ExtendLeases(ctx context.Context, owner string, until time.Time) error {
	_, err := s.exec(ctx, `
		update workflow_execution set lease_until = @until, updated_at = now()
		where workspace_id = @ws and owner = @owner and status = 'running' and lease_until is not null`,
		pgx.NamedArgs{"owner": owner, "until": until})
	return err
}
