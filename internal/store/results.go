package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// isCall tells the entries of the journal that are calls from the payloads beside them,
// whose node is that of the call with their reference behind it.
const isCall = `task_id not like '%/blob:%'`

// head is what is known of a result that is not read.
type head struct {
	stored

	Status string
	Tool   tool.ID
	Error  json.RawMessage
}

// RunHead returns a run's id, state and error, and until when its result is kept (zero
// for ever). A result that is gone is a fault.Expired.
func (s *Store) RunHead(ctx context.Context, id uuid.UUID) (trace.Run, time.Time, error) {
	h, err := collectOne(ctx, s, `
		select result_bytes > 0 as done, null::bytea as packed, result_bytes as size, result_expires_at as expires,
			status, '' as tool, error
		from workflow_execution where workspace_id = @ws and workflow_id = @id`,
		pgx.NamedArgs{"id": id}, pgx.RowToStructByName[head])
	if err != nil {
		return trace.Run{}, time.Time{}, noRun(err, id)
	}
	r := trace.Run{ID: id, Status: trace.Status(h.Status)}
	if r.Error, err = faultOf(h.Error); err != nil || !h.Done {
		return r, time.Time{}, err
	}
	_, expires, err := h.value(s.now())
	return r, expires, err
}

// CallHead returns the state of one call of a run without its arguments and its
// result, and until when the result is kept (zero for ever). A call that is not there
// is a fault.NotFound, one whose result is gone a fault.Expired.
func (s *Store) CallHead(ctx context.Context, run uuid.UUID, node string, occurrence int) (trace.Call, time.Time, error) {
	h, err := collectOne(ctx, s, `
		select status = 'ok' as done, null::bytea as packed, bytes as size, expires_at as expires, status, tool, error
		from task_result
		where workspace_id = @ws and workflow_id = @id and task_id = @node and occurrence = @occurrence`,
		pgx.NamedArgs{"id": run, "node": text(node), "occurrence": occurrence}, pgx.RowToStructByName[head])
	if errors.Is(err, errNoRow) {
		return trace.Call{}, time.Time{}, fault.New(fault.NotFound, "run %s has no call %s #%d", run, node, occurrence)
	}
	if err != nil {
		return trace.Call{}, time.Time{}, err
	}
	c := trace.Call{NodeID: node, Occurrence: occurrence, Tool: h.Tool, Bytes: h.Size, Status: trace.CallStatus(h.Status)}
	if c.Error, err = faultOf(h.Error); err != nil || !h.Done {
		return c, time.Time{}, err
	}
	_, expires, err := h.value(s.now())
	return c, expires, err
}

// CallNodes lists at most limit nodes of a run that have called, in the order of their
// first calls, each as its latest call: with its node, its tool and how often it called.
func (s *Store) CallNodes(ctx context.Context, run uuid.UUID, limit int) ([]trace.Call, error) {
	return collect(ctx, s, `
		select task_id, max(tool), max(occurrence) from task_result
		where workspace_id = @ws and workflow_id = @id and `+isCall+`
		group by task_id order by min(seq), task_id limit @limit`,
		pgx.NamedArgs{"id": run, "limit": limit}, func(row pgx.CollectableRow) (trace.Call, error) {
			var c trace.Call
			return c, row.Scan(&c.NodeID, &c.Tool, &c.Occurrence)
		})
}

// maxInnerRuns is how many runs InnerRuns lists.
const maxInnerRuns = 5

// InnerRuns lists the runs of capabilities inside a run, at any depth, that have called
// at a node: the first five in the order of their ids.
func (s *Store) InnerRuns(ctx context.Context, run uuid.UUID, node string) ([]trace.Run, error) {
	return collect(ctx, s, `
		with recursive inside (workflow_id) as (
			select workflow_id from workflow_execution where workspace_id = @ws and parent_workflow_id = @id
			union
			select e.workflow_id from workflow_execution e join inside i on e.parent_workflow_id = i.workflow_id
			where e.workspace_id = @ws)
		select `+runColumns+` from workflow_execution e
		where workspace_id = @ws and workflow_id in (select workflow_id from inside)
		  and exists (select from task_result t
			where t.workspace_id = @ws and t.workflow_id = e.workflow_id and t.task_id = @node)
		order by workflow_id limit @limit`,
		pgx.NamedArgs{"id": run, "node": text(node), "limit": maxInnerRuns}, scanRun)
}

// EnforceQuota drops results of runs that have ended, the oldest first, until those
// that are left have together at most bytes as they are stored: compressed, and with
// those of open runs, which stay. What a run has left goes together. Less than 0 is no
// limit. It returns how many results went; each counts as expired from now on.
func (s *Store) EnforceQuota(ctx context.Context, bytes int64) (int64, error) {
	if bytes < 0 {
		return 0, nil
	}
	return collectOne(ctx, s, `
		with kept as (
			select workflow_id, '' as task_id, 0 as occurrence, octet_length(result) as size, started_at as since, false as open
			from workflow_execution where workspace_id = @ws and result is not null
			union all
			select t.workflow_id, t.task_id, t.occurrence, octet_length(t.result), e.started_at,
				e.status in ('running', 'awaiting_approval', 'suspended')
			from task_result t join workflow_execution e using (workspace_id, workflow_id)
			where t.workspace_id = @ws and t.result is not null
		), summed as (
			select *, sum(size) over (order by open desc, since desc, workflow_id desc) as together
			from kept
		), surplus as (
			select * from summed where together > @quota::bigint and not open
		), calls as (
			update task_result t set result = null, expires_at = @now, updated_at = now() from surplus x
			where t.workspace_id = @ws and t.workflow_id = x.workflow_id and t.task_id = x.task_id and t.occurrence = x.occurrence
			returning 1
		), runs as (
			update workflow_execution e set result = null, result_expires_at = @now, updated_at = now() from surplus x
			where e.workspace_id = @ws and e.workflow_id = x.workflow_id and x.task_id = ''
			returning 1
		)
		select (select count(*) from calls) + (select count(*) from runs)`,
		pgx.NamedArgs{"quota": bytes, "now": s.now()}, pgx.RowTo[int64])
}
