package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/trace"
)

// park says that an open run waits and that nobody works on it.
func (t *Tx) park(ctx context.Context, run uuid.UUID, status trace.Status) error {
	_, err := t.tx.Exec(ctx, `
		update workflow_execution set status = @status, lease_until = null, updated_at = now()
		where workspace_id = @ws and workflow_id = @run and status in ('running', 'awaiting_approval', 'suspended')`,
		t.store.args(pgx.NamedArgs{"run": run, "status": status}))
	return err
}

// ParkRun says that an open run waits and that nobody works on it.
func (s *Store) ParkRun(ctx context.Context, run uuid.UUID, status trace.Status) error {
	return s.transaction(ctx, func(ctx context.Context, tx *Tx) error { return tx.park(ctx, run, status) })
}

// ReleaseRun says that owner works no more on a run, which goes on: it may be claimed
// at once. A run that another has claimed meanwhile stays with that one.
func (s *Store) ReleaseRun(ctx context.Context, id uuid.UUID, owner string) error {
	_, err := s.exec(ctx, `
		update workflow_execution set lease_until = null, updated_at = now()
		where workspace_id = @ws and workflow_id = @id and owner = @owner and status = 'running'`,
		pgx.NamedArgs{"id": id, "owner": owner})
	return err
}

// ClaimRun makes owner the one who works on a run that waits, or whose owner was
// lost: has not extended its lease beyond a time. It reports whether it got the run:
// of several, one does.
func (s *Store) ClaimRun(ctx context.Context, id uuid.UUID, owner string, now, lost, lease time.Time) (bool, error) {
	n, err := s.exec(ctx, `
		update workflow_execution set status = 'running', owner = @owner, lease_until = @lease, updated_at = now(),
			started_at = case when status = 'awaiting_approval' then @now else started_at end
		where workspace_id = @ws and workflow_id = @id
		  and (status in ('awaiting_approval', 'suspended') or status = 'running' and (lease_until is null or lease_until < @lost)
		    or status = 'running' and owner = @owner and lease_until = @lease)`, // our own claim, repeated
		pgx.NamedArgs{"id": id, "owner": owner, "now": now, "lost": lost, "lease": lease})
	return n == 1, err
}

// LostRuns returns the running runs whose owner has released them, or has not extended
// their lease beyond a time, but none of owner's, and those that were allowed to go on
// and that nobody has taken up. Runs of capabilities are not among them: they go with
// the one that called them.
func (s *Store) LostRuns(ctx context.Context, before time.Time, owner string) ([]uuid.UUID, error) {
	return collect(ctx, s, `
		select workflow_id from workflow_execution e
		where workspace_id = @ws and parent_workflow_id is null and (
			status = 'running' and (lease_until is null or lease_until < @before) and owner <> @owner
			or status in ('awaiting_approval', 'suspended')
				and exists (select from approval a where a.workspace_id = @ws and a.workflow_id = e.workflow_id and a.status = 'approved')
				and not exists (select from approval a where a.workspace_id = @ws and a.workflow_id = e.workflow_id and a.status = 'pending'))
		order by started_at`, pgx.NamedArgs{"before": before, "owner": owner}, pgx.RowTo[uuid.UUID])
}

// InterruptRun ends an open run, with all that it has started, whose outcome nobody
// will know.
func (s *Store) InterruptRun(ctx context.Context, id uuid.UUID, reason *fault.Error) error {
	_, err := s.exec(ctx, `
		with recursive mine as (
			select workflow_id from workflow_execution where workspace_id = @ws and workflow_id = @id
			union select e.workflow_id from workflow_execution e join mine m on e.parent_workflow_id = m.workflow_id where e.workspace_id = @ws)
		update workflow_execution set status = 'interrupted', error = @error, finished_at = now(), lease_until = null, updated_at = now(),
			duration_ms = greatest(0, extract(epoch from now() - started_at)) * 1000
		where workspace_id = @ws and workflow_id in (select workflow_id from mine)
		  and status in ('running', 'awaiting_approval', 'suspended')`,
		pgx.NamedArgs{"id": id, "error": faultJSON(reason)})
	return err
}

// ChildRuns returns the runs that a run has started, the oldest first.
func (s *Store) ChildRuns(ctx context.Context, parent uuid.UUID) ([]trace.Run, error) {
	return collect(ctx, s, `
		select `+runColumns+` from workflow_execution where workspace_id = @ws and parent_workflow_id = @parent
		order by started_at, workflow_id`, pgx.NamedArgs{"parent": parent}, scanRun)
}
