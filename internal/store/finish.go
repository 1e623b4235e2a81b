package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/trace"
)

// Tx is the transaction that a finished run is written in; learning joins it.
type Tx struct {
	tx    pgx.Tx
	store *Store
}

// transaction runs f in a transaction under the store's deadline, once more when
// the database asks for it or the connection was lost. f must bear a second run.
// Inside f nothing but the transaction may be used: embedded, any other connection
// waits for its end.
func (s *Store) transaction(ctx context.Context, f func(context.Context, *Tx) error) error {
	return s.idempotent(ctx, func(ctx context.Context) error {
		attempt := func() error {
			return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return f(ctx, &Tx{tx: tx, store: s}) })
		}
		err := attempt()
		if transient(err) {
			err = attempt()
		}
		return err
	})
}

// FinishRun writes all that a run has left, in one transaction: its final state and
// result, its trace, the journal, the tools' statistics and examples. learn, which
// may be nil, runs in the same transaction after them. A run that was finished
// before is left as it is, so that a caller who lost the answer may repeat it.
func (s *Store) FinishRun(ctx context.Context, t trace.Trace, learn func(context.Context, *Tx) error) error {
	return s.FinishRuns(ctx, []trace.Trace{t}, learn)
}

// FinishRuns is FinishRun for a run together with the runs that it has started: a
// trace may name as parent one that is stored, or one beside it.
func (s *Store) FinishRuns(ctx context.Context, traces []trace.Trace, learn func(context.Context, *Tx) error) error {
	writes := make([]pgx.Batch, len(traces))
	for i, t := range traces {
		if err := s.queueFinish(&writes[i], t); err != nil {
			return err
		}
	}
	return s.transaction(ctx, func(ctx context.Context, tx *Tx) error {
		done, err := tx.lockOpen(ctx, traces)
		if err != nil {
			return err
		}
		for i, t := range traces {
			if done[t.Run.ID] {
				continue
			}
			if err := tx.tx.SendBatch(ctx, &writes[i]).Close(); err != nil {
				return fmt.Errorf("store run %s: %w", t.Run.ID, err)
			}
		}
		if len(done) == len(traces) || learn == nil {
			return nil
		}
		return learn(ctx, tx)
	})
}

// lockOpen locks the runs' rows and says which of them have a trace already.
func (t *Tx) lockOpen(ctx context.Context, traces []trace.Trace) (map[uuid.UUID]bool, error) {
	ids := make([]uuid.UUID, len(traces))
	for i := range traces {
		ids[i] = traces[i].Run.ID
	}
	rows, err := t.tx.Query(ctx, `
		select e.workflow_id, exists (select from capability_trace c where c.workspace_id = @ws and c.id = e.workflow_id)
		from workflow_execution e where e.workspace_id = @ws and e.workflow_id = any(@ids)
		order by e.workflow_id for update`, t.store.args(pgx.NamedArgs{"ids": ids}))
	if err != nil {
		return nil, err
	}
	var id uuid.UUID
	var traced bool
	found, done := 0, map[uuid.UUID]bool{}
	_, err = pgx.ForEachRow(rows, []any{&id, &traced}, func() error {
		found++
		if traced {
			done[id] = true
		}
		ids = slices.DeleteFunc(ids, func(want uuid.UUID) bool { return want == id })
		return nil
	})
	if err == nil && len(ids) > 0 {
		err = fault.New(fault.NotFound, "there is no run %s", ids[0])
	}
	return done, err
}

// queueFinish queues the statements that write one finished run.
func (s *Store) queueFinish(b *pgx.Batch, t trace.Trace) error {
	if t.Run.Status.Open() {
		return fault.New(fault.InvalidInput, "run %s is not finished: it is %s", t.Run.ID, t.Run.Status)
	}
	s.queueRun(b, t.Run)
	if err := s.queueTrace(b, t); err != nil {
		return fmt.Errorf("trace of run %s: %w", t.Run.ID, err)
	}
	if len(t.Calls) > 0 {
		b.Queue(upsertCalls, s.callArgs(t.Run.ID, t.Calls))
		s.queueStatistics(b, t)
	}
	return nil
}

func (s *Store) queueRun(b *pgx.Batch, r trace.Run) {
	args := pgx.NamedArgs{
		"id": r.ID, "status": r.Status, "error": faultJSON(r.Error), "result": pack(r.Result), "bytes": len(r.Result),
		"logs": texts(r.Logs), "finished": nullTime(r.FinishedAt), "ms": milliseconds(r.Duration),
		"pattern": nullID(r.Capability), "expires": s.expiry(),
	}
	b.Queue(`
		update workflow_execution
		set status = @status, error = @error, result = @result, result_bytes = @bytes::bigint,
			result_expires_at = case when @bytes::bigint > 0 then @expires::timestamptz end,
			logs = @logs, finished_at = @finished, duration_ms = @ms, lease_until = null,
			pattern_id = coalesce(@pattern, pattern_id), updated_at = now()
		where workspace_id = @ws and workflow_id = @id`, s.args(args))
}

func (s *Store) queueTrace(b *pgx.Batch, t trace.Trace) error {
	calls, err := cutCalls(t.Calls)
	if err != nil {
		return err
	}
	decisions, err := marshalList(t.Decisions)
	if err != nil {
		return err
	}
	var version *int
	if t.CapabilityVersion > 0 {
		version = &t.CapabilityVersion
	}
	args := pgx.NamedArgs{
		"id": t.Run.ID, "capability": nullID(t.Run.Capability), "version": version, "path": texts(t.ExecutedPath),
		"path_hash": t.PathHash, "decisions": jsonb(decisions), "loops": jsonb(t.Loops), "calls": jsonb(calls), "tools": texts(t.ToolsUsed),
		"args": jsonb(t.Run.Args), "intent": text(t.Run.Intent), "success": t.Success, "ms": milliseconds(t.Run.Duration),
		"error": faultJSON(t.Run.Error), "priority": t.Priority, "parent": nullID(t.Run.Parent), "exact": t.Exact,
		"cache_hit": text(t.CacheHit), "level": text(t.SandboxLevel),
	}
	b.Queue(`
		insert into capability_trace (workspace_id, id, capability_id, capability_version, executed_path, path_hash,
			decisions, loops, task_results, tools_used, arguments, intent, success, duration_ms, error, priority,
			parent_trace_id, exact, cache_hit, sandbox_level)
		values (@ws, @id, @capability, @version, @path, @path_hash,
			@decisions, @loops, @calls, @tools, @args, @intent, @success, @ms, @error, @priority,
			@parent, @exact, @cache_hit, @level)`, s.args(args))
	return nil
}

// violates reports whether err is the database's refusal with this code.
func violates(err error, code string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == code
}
