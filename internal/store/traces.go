package store

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/trace"
)

// Trace returns what a finished run did. Results over 10 KB are not in it (their
// Bytes are): CallResult has them.
func (s *Store) Trace(ctx context.Context, id uuid.UUID) (trace.Trace, error) {
	t, err := collectOne(ctx, s, `
		select capability_version, executed_path, path_hash, decisions, loops, task_results, tools_used, success, priority,
			exact, cache_hit, sandbox_level, arguments
		from capability_trace where workspace_id = @ws and id = @id`, pgx.NamedArgs{"id": id}, scanTrace)
	if errors.Is(err, errNoRow) {
		return t, fault.New(fault.NotFound, "there is no trace of run %s", id).WithHint("a run has a trace when it has ended")
	}
	if err != nil {
		return t, err
	}
	t.Run, err = s.Run(ctx, id)
	return t, err
}

func scanTrace(row pgx.CollectableRow) (trace.Trace, error) {
	var t trace.Trace
	var version *int
	var decisions, calls json.RawMessage
	var priority float32
	err := row.Scan(&version, &t.ExecutedPath, &t.PathHash, &decisions, &t.Loops, &calls, &t.ToolsUsed, &t.Success, &priority,
		&t.Exact, &t.CacheHit, &t.SandboxLevel, &t.Arguments)
	if err != nil {
		return t, err
	}
	t.CapabilityVersion, t.Priority = deref(version), float64(priority)
	if err := json.Unmarshal(decisions, &t.Decisions); err != nil {
		return t, err
	}
	t.Calls, err = uncutCalls(calls)
	return t, err
}

// marshalList is json.Marshal with an empty array for nothing.
func marshalList[T any](list []T) (json.RawMessage, error) {
	if list == nil {
		list = []T{}
	}
	return json.Marshal(list)
}
