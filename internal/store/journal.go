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

// upsertCalls writes journal entries. One that is there already only gets further:
// an outcome is never replaced by a start, nor a result by its absence.
const upsertCalls = `
	insert into task_result as t (workspace_id, workflow_id, task_id, occurrence, seq, iteration, parent_task, tool,
		args_hash, args, status, result, bytes, content_type, error, started_at, duration_ms, expires_at)
	select @ws, @id, u.task_id, u.occurrence, u.seq, u.iteration, u.parent_task, u.tool,
		u.args_hash, u.args::jsonb, u.status, u.result, u.bytes, u.content_type, u.error::jsonb, u.started_at, u.duration_ms,
		case when u.result is not null then @expires::timestamptz end
	from unnest(@node::text[], @occurrence::int[], @seq::int[], @iteration::int[], @parent::text[], @tool::text[],
		@args_hash::text[], @args::text[], @status::text[], @result::bytea[], @bytes::bigint[], @type::text[],
		@error::text[], @started::timestamptz[], @ms::float8[])
		as u (task_id, occurrence, seq, iteration, parent_task, tool, args_hash, args, status, result, bytes,
			content_type, error, started_at, duration_ms)
	on conflict (workspace_id, workflow_id, task_id, occurrence) do update
	set status = excluded.status, result = excluded.result, bytes = excluded.bytes, content_type = excluded.content_type,
		error = excluded.error, duration_ms = excluded.duration_ms, expires_at = excluded.expires_at, updated_at = now()
	where t.status = 'started' and excluded.status <> 'started'`

// callArgs lays calls out as the columns of upsertCalls. A call that is named twice
// stands in it once, with its last state: one statement cannot touch a row twice.
func (s *Store) callArgs(run uuid.UUID, calls []trace.Call) pgx.NamedArgs {
	calls = lastStates(calls)
	n := len(calls)
	var (
		node, parent, tools, hashes, status, types = make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
		occurrence, seq                            = make([]int, n), make([]int, n)
		iteration                                  = make([]*int, n)
		args, failures                             = make([]*string, n), make([]*string, n)
		results                                    = make([][]byte, n)
		sizes                                      = make([]int64, n)
		started                                    = make([]time.Time, n)
		ms                                         = make([]float64, n)
	)
	for i, c := range calls {
		node[i], occurrence[i], seq[i], iteration[i], parent[i] = text(c.NodeID), c.Occurrence, c.Seq, c.Iteration, text(c.ParentNode)
		tools[i], hashes[i], args[i], status[i] = text(string(c.Tool)), c.ArgsHash, jsonb(c.Args), string(c.Status)
		if c.Status == trace.CallOK {
			results[i] = pack(c.Result)
		}
		sizes[i], types[i], failures[i] = resultSize(c), text(c.ContentType), faultJSON(c.Error)
		started[i], ms[i] = c.StartedAt, milliseconds(c.Duration)
	}
	return s.args(pgx.NamedArgs{
		"id": run, "node": node, "occurrence": occurrence, "seq": seq, "iteration": iteration, "parent": parent, "tool": tools,
		"args_hash": hashes, "args": args, "status": status, "result": results, "bytes": sizes, "type": types,
		"error": failures, "started": started, "ms": ms, "expires": s.expiry(),
	})
}

func lastStates(calls []trace.Call) []trace.Call {
	type key struct {
		node       string
		occurrence int
	}
	at := make(map[key]int, len(calls))
	out := make([]trace.Call, 0, len(calls))
	for _, c := range calls {
		k := key{c.NodeID, c.Occurrence}
		i, seen := at[k]
		if seen {
			out[i] = c
			continue
		}
		at[k] = len(out)
		out = append(out, c)
	}
	return out
}

// expiry is when a result that is stored now may go; nil for never.
func (s *Store) expiry() *time.Time {
	if s.ttl < 0 {
		return nil
	}
	t := s.now().Add(s.ttl)
	return &t
}

// RecordCalls writes journal entries of a run. It may be repeated.
func (s *Store) RecordCalls(ctx context.Context, run uuid.UUID, calls []trace.Call) error {
	if len(calls) == 0 {
		return nil
	}
	args := s.callArgs(run, calls)
	err := s.idempotent(ctx, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, upsertCalls, args)
		return err
	})
	if violates(err, codeForeignKey) {
		return fault.New(fault.NotFound, "there is no run %s", run)
	}
	return err
}

// scanCall reads a journal entry with its result, where that was asked for.
func scanCall(row pgx.CollectableRow) (trace.Call, error) {
	var c trace.Call
	var failure json.RawMessage
	var packed []byte
	var ms float64
	err := row.Scan(&c.NodeID, &c.Occurrence, &c.Seq, &c.Iteration, &c.ParentNode, &c.Tool, &c.ArgsHash, &c.Args,
		&c.Status, &packed, &c.Bytes, &c.ContentType, &failure, &c.StartedAt, &ms)
	if err != nil {
		return c, err
	}
	c.Duration = duration(ms)
	if c.Error, err = faultOf(failure); err != nil {
		return c, err
	}
	c.Result, err = unpack(packed)
	return c, err
}

// Calls returns a run's journal in the order of the calls, with the results that
// have not expired.
func (s *Store) Calls(ctx context.Context, run uuid.UUID) ([]trace.Call, error) {
	return collect(ctx, s, `
		select task_id, occurrence, seq, iteration, parent_task, tool, args_hash, args, status,
			case when expires_at is null or expires_at > @now then result end, bytes, content_type, error, started_at, duration_ms
		from task_result where workspace_id = @ws and workflow_id = @id and `+isCall+`
		order by seq, started_at, task_id, occurrence`,
		pgx.NamedArgs{"id": run, "now": s.now()}, scanCall)
}

// Journal is Calls with every result: that of an open run is kept past its time.
func (s *Store) Journal(ctx context.Context, run uuid.UUID) ([]trace.Call, error) {
	return collect(ctx, s, `
		select task_id, occurrence, seq, iteration, parent_task, tool, args_hash, args, status, result, bytes, content_type, error,
			started_at, duration_ms
		from task_result where workspace_id = @ws and workflow_id = @id and `+isCall+`
		order by seq, started_at, task_id, occurrence`, pgx.NamedArgs{"id": run}, scanCall)
}

// stored is a result column with what decides whether it may be given out.
type stored struct {
	Done    bool
	Packed  []byte
	Size    int64
	Expires *time.Time
}

// value returns the result, or the fault that says why there is none.
func (r stored) value(now time.Time) (json.RawMessage, time.Time, error) {
	switch {
	case !r.Done:
		return nil, time.Time{}, fault.New(fault.NotFound, "it has no result")
	case r.Expires != nil && !now.Before(*r.Expires):
		return nil, *r.Expires, fault.New(fault.Expired, "the result of %d bytes was kept until %s", r.Size, r.Expires.UTC().Format(time.RFC3339)).
			WithHint("run it again; how long results are kept is a setting")
	}
	value, err := unpack(r.Packed)
	return value, deref(r.Expires), err
}

// CallResult returns the whole result of one call.
func (s *Store) CallResult(ctx context.Context, run uuid.UUID, node string, occurrence int) (json.RawMessage, time.Time, error) {
	r, err := collectOne(ctx, s, `
		select status = 'ok' as done, result as packed, bytes as size, expires_at as expires from task_result
		where workspace_id = @ws and workflow_id = @id and task_id = @node and occurrence = @occurrence`,
		pgx.NamedArgs{"id": run, "node": text(node), "occurrence": occurrence}, pgx.RowToStructByName[stored])
	if errors.Is(err, errNoRow) {
		return nil, time.Time{}, fault.New(fault.NotFound, "run %s has no call %s #%d", run, node, occurrence)
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	return r.value(s.now())
}

// RunResult returns the result of a run and when it expires (zero for never).
func (s *Store) RunResult(ctx context.Context, id uuid.UUID) (json.RawMessage, time.Time, error) {
	r, err := collectOne(ctx, s, `
		select result_bytes > 0 as done, result as packed, result_bytes as size, result_expires_at as expires
		from workflow_execution where workspace_id = @ws and workflow_id = @id`,
		pgx.NamedArgs{"id": id}, pgx.RowToStructByName[stored])
	if err != nil {
		return nil, time.Time{}, noRun(err, id)
	}
	return r.value(s.now())
}

// PurgeExpired drops results past their time, but none of a run that is open: its
// program may be replayed from them. It returns how many went.
func (s *Store) PurgeExpired(ctx context.Context, now time.Time) (int64, error) {
	var gone int64
	for _, sql := range []string{
		`
		update task_result t set result = null, updated_at = now()
		from workflow_execution e
		where t.workspace_id = @ws and t.result is not null and t.expires_at <= @now
		  and e.workspace_id = t.workspace_id and e.workflow_id = t.workflow_id
		  and e.status not in ('running', 'awaiting_approval', 'suspended')`, `
		update workflow_execution set result = null, updated_at = now()
		where workspace_id = @ws and result is not null and result_expires_at <= @now`, `
		delete from capability_cache where workspace_id = @ws and expires_at <= @now`,
	} {
		n, err := s.exec(ctx, sql, pgx.NamedArgs{"now": now})
		if err != nil {
			return gone, err
		}
		gone += n
	}
	return gone, nil
}
