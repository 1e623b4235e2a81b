package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// Tx is the transaction that a finished run is written in; learning joins it.
type Tx struct {
	tx    pgx.Tx
	store *Store

	// What follows is for learning: see learning.go.
	stored   map[uuid.UUID]bool
	evidence map[versionKey]*capability.Evidence
	observed map[tool.ID]tool.Observed
	shown    map[tool.ID][]string // the arguments' hashes of the tools' examples
	lessons  map[uuid.UUID]capability.Lesson
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
// may be nil, runs in the same transaction, before anything is written; what it
// gives to KeepLesson is written with the run. A run that was finished before is
// left as it is, so that a caller who lost the answer may repeat it.
func (s *Store) FinishRun(ctx context.Context, t trace.Trace, learn func(context.Context, *Tx) error) error {
	return s.FinishRuns(ctx, []trace.Trace{t}, learn)
}

// FinishRuns is FinishRun for a run together with the runs that it has started: a
// trace may name as parent one that is stored, or one before it.
func (s *Store) FinishRuns(ctx context.Context, traces []trace.Trace, learn func(context.Context, *Tx) error) error {
	for _, t := range traces {
		if t.Run.Status.Open() {
			return fault.New(fault.InvalidInput, "run %s is not finished: it is %s", t.Run.ID, t.Run.Status)
		}
	}
	return s.transaction(ctx, func(ctx context.Context, tx *Tx) error {
		if err := tx.open(ctx, traces); err != nil {
			return err
		}
		if len(tx.stored) == len(traces) {
			return nil
		}
		if learn != nil {
			if err := learn(ctx, tx); err != nil {
				return err
			}
		}
		return tx.write(ctx, traces)
	})
}

// write writes what is not stored yet, all in one round trip.
func (t *Tx) write(ctx context.Context, traces []trace.Trace) error {
	var b pgx.Batch
	for _, tr := range traces {
		id := tr.Run.ID
		if t.stored[id] {
			continue
		}
		if err := t.queueFinish(&b, tr); err != nil {
			return fmt.Errorf("run %s: %w", id, err)
		}
	}
	if err := t.tx.SendBatch(ctx, &b).Close(); err != nil {
		return fmt.Errorf("store run %s: %w", traces[0].Run.ID, err)
	}
	return nil
}

const lockRuns = `
	select e.workflow_id, exists (select from capability_trace c where c.workspace_id = @ws and c.id = e.workflow_id)
	from workflow_execution e where e.workspace_id = @ws and e.workflow_id = any(@ids)
	order by e.workflow_id for update`

// open locks the runs' rows and notes which of them have a trace already; in the
// same round trip it locks and reads all that the runs may change.
func (t *Tx) open(ctx context.Context, traces []trace.Trace) error {
	missing := make([]uuid.UUID, len(traces))
	for i := range traces {
		missing[i] = traces[i].Run.ID
	}
	t.stored, t.lessons = map[uuid.UUID]bool{}, map[uuid.UUID]capability.Lesson{}
	var b pgx.Batch
	b.Queue(lockRuns, t.store.args(pgx.NamedArgs{"ids": slices.Clone(missing)})).Query(func(rows pgx.Rows) error {
		var id uuid.UUID
		var traced bool
		_, err := pgx.ForEachRow(rows, []any{&id, &traced}, func() error {
			if traced {
				t.stored[id] = true
			}
			missing = slices.DeleteFunc(missing, func(want uuid.UUID) bool { return want == id })
			return nil
		})
		return err
	})
	t.queueRead(&b, traces)
	err := t.tx.SendBatch(ctx, &b).Close()
	if err == nil && len(missing) > 0 {
		err = fault.New(fault.NotFound, "there is no run %s", missing[0])
	}
	return err
}

// queueFinish queues the statements that write one finished run and its lesson.
func (t *Tx) queueFinish(b *pgx.Batch, tr trace.Trace) error {
	lesson, learnt := t.lessons[tr.Run.ID]
	if learnt {
		tr.Priority = lesson.Priority
	}
	t.store.queueRun(b, tr.Run)
	if err := t.store.queueTrace(b, tr); err != nil {
		return err
	}
	if len(tr.Calls) > 0 {
		b.Queue(upsertCalls, t.store.callArgs(tr.Run.ID, tr.Calls))
		if err := t.store.queueStatistics(b, tr, lesson.Observed, t.shown); err != nil {
			return err
		}
	}
	if !learnt {
		return nil
	}
	return t.store.queueLesson(b, tr, lesson)
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
		"args": jsonb(t.Arguments), "intent": text(t.Run.Intent), "success": t.Success, "ms": milliseconds(t.Run.Duration),
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
