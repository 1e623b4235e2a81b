package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// versionKey names a version of a capability; 0 is its head, whichever that is.
type versionKey struct {
	id      uuid.UUID
	version int
}

const (
	// no key update: rows that refer to the capability may be written meanwhile.
	lockEvidence = `
		select p.pattern_id, u.version, v.version, p.version, v.activated_at is not null, p.state, p.state_reason, p.partial,
			p.usage_count, p.success_count, p.failure_count, p.consecutive_failures, p.success_rate, p.avg_duration_ms,
			case when v.version = p.version then p.dag_structure -> 'learning' else v.learning end,
			p.dag_structure -> 'tools_used', case when v.version <> p.version then v.static_structure end
		from unnest(@ids::uuid[], @versions::int[]) as u (id, version)
		join workflow_pattern p on p.workspace_id = @ws and p.pattern_id = u.id
		join capability_version v on v.workspace_id = @ws and v.pattern_id = u.id
			and v.version = coalesce(nullif(u.version, 0), p.version)
		order by p.pattern_id for no key update of p`
	lockObserved = `
		select tool_id, observed_schema, observed_count,
			array(select args_hash from tool_example e where e.workspace_id = @ws and e.tool_id = t.tool_id)
		from tool_schema t where workspace_id = @ws and tool_id = any(@tools::text[])
		order by tool_id for update of t`
)

// queueRead queues what reads and locks all that the traces can teach about, in an
// order that is the same for every transaction.
func (t *Tx) queueRead(b *pgx.Batch, traces []trace.Trace) {
	t.evidence, t.observed, t.shown = map[versionKey]*capability.Evidence{}, map[tool.ID]tool.Observed{}, map[tool.ID][]string{}
	var keys []versionKey
	var tools []string
	for _, tr := range traces {
		if key := (versionKey{tr.Run.Capability, tr.CapabilityVersion}); key.id != uuid.Nil && !slices.Contains(keys, key) {
			keys = append(keys, key)
			t.evidence[key] = nil
		}
		for _, c := range tr.Calls {
			tools = append(tools, text(string(c.Tool)))
		}
	}
	if len(keys) > 0 {
		ids, versions := make([]uuid.UUID, len(keys)), make([]int, len(keys))
		for i, k := range keys {
			ids[i], versions[i] = k.id, k.version
		}
		b.Queue(lockEvidence, t.store.args(pgx.NamedArgs{"ids": ids, "versions": versions})).Query(t.scanEvidence)
	}
	if len(tools) > 0 {
		slices.Sort(tools)
		b.Queue(lockObserved, t.store.args(pgx.NamedArgs{"tools": slices.Compact(tools)})).Query(t.scanObserved)
	}
}

func (t *Tx) scanEvidence(rows pgx.Rows) error {
	for rows.Next() {
		var e capability.Evidence
		var asked int
		var learning, tools, graph json.RawMessage
		err := rows.Scan(&e.ID, &asked, &e.Version, &e.Head, &e.Proven, &e.State, &e.StateReason, &e.Partial,
			&e.UsageCount, &e.SuccessCount, &e.FailureCount, &e.ConsecutiveFailures, &e.SuccessRate, &e.AvgDurationMS,
			&learning, &tools, &graph)
		if err != nil {
			return err
		}
		if err := unmarshal(learning, &e.Learning); err != nil {
			return err
		}
		if err := unmarshal(tools, &e.ToolsUsed); err != nil {
			return err
		}
		if e.Version != e.Head { // those are the head's tools
			var s structure.Structure
			if err := unmarshal(graph, &s); err != nil {
				return err
			}
			e.ToolsUsed, _ = capability.Needs(s)
		}
		t.evidence[versionKey{e.ID, asked}] = &e
	}
	return rows.Err()
}

func (t *Tx) scanObserved(rows pgx.Rows) error {
	for rows.Next() {
		var id tool.ID
		var schema json.RawMessage
		var o tool.Observed
		var shown []string
		if err := rows.Scan(&id, &schema, &o.Count, &shown); err != nil {
			return err
		}
		if err := unmarshal(schema, &o.Shape); err != nil {
			return err
		}
		t.observed[id], t.shown[id] = o, shown
	}
	return rows.Err()
}

// unmarshal reads a jsonb column that may be null.
func unmarshal(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, into)
}

// Stored reports whether the run was stored by an earlier transaction.
func (t *Tx) Stored(run uuid.UUID) bool { return t.stored[run] }

// ReadLearning returns what is known of a version of a capability (0 for its head)
// and of the results of tools. Only what the traces given to FinishRuns name was
// locked and is known here; of anything else there is nothing.
func (t *Tx) ReadLearning(_ context.Context, id uuid.UUID, version int, tools []tool.ID) (*capability.Evidence, map[tool.ID]tool.Observed, error) {
	observed := map[tool.ID]tool.Observed{}
	for _, id := range tools {
		if o, ok := t.observed[id]; ok {
			observed[id] = o
		}
	}
	e, asked := t.evidence[versionKey{id, version}]
	switch {
	case id != uuid.Nil && !asked:
		return nil, nil, fmt.Errorf("no trace of the transaction names version %d of capability %s", version, id)
	case e == nil: // it is gone
		return nil, observed, nil
	}
	mine := *e
	return &mine, observed, nil
}

// KeepLesson keeps a lesson to be written with its run. A later run of the same
// transaction learns on top of it.
func (t *Tx) KeepLesson(l capability.Lesson) {
	t.lessons[l.Run] = l
	maps.Copy(t.observed, l.Observed)
	if l.Evidence == nil {
		return
	}
	for key, e := range t.evidence {
		switch {
		case e == nil || key.id != l.Evidence.ID:
		case e.Version == l.Evidence.Version:
			mine := *l.Evidence
			t.evidence[key] = &mine
		default: // what all versions share
			mine := *e
			*e = *l.Evidence
			e.Version, e.Proven, e.Learning, e.ToolsUsed = mine.Version, mine.Proven, mine.Learning, mine.ToolsUsed
		}
	}
}

// queueLesson queues what writes a lesson.
func (s *Store) queueLesson(b *pgx.Batch, t trace.Trace, l capability.Lesson) error {
	if l.Evidence != nil {
		if err := s.queueEvidence(b, l); err != nil {
			return err
		}
	}
	if len(l.Edges) > 0 {
		args, err := s.edgeArgs(l.Edges)
		if err != nil {
			return err
		}
		b.Queue(upsertObservedEdges, args)
	}
	if t.Run.Parent != uuid.Nil && t.Run.Capability != uuid.Nil {
		s.queueContained(b, t)
	}
	return nil
}

const updateEvidence = `
	update workflow_pattern
	set state = @state, state_reason = @reason, partial = @partial, usage_count = @usage, success_count = @successes,
		failure_count = @failures, consecutive_failures = @in_a_row, success_rate = @rate, avg_duration_ms = @ms,
		dag_structure = dag_structure || @patch::jsonb, updated_at = now()
	where workspace_id = @ws and pattern_id = @id`

func (s *Store) queueEvidence(b *pgx.Batch, l capability.Lesson) error {
	e := *l.Evidence
	learning, err := json.Marshal(e.Learning)
	if err != nil {
		return err
	}
	patch := map[string]any{}
	if e.Version == e.Head {
		patch["learning"] = json.RawMessage(learning)
		patch["tools_used"] = orEmpty(e.ToolsUsed)
	}
	if l.Invocations != nil {
		patch["tool_invocations"], patch["tool_invocations_dropped"] = l.Invocations, l.InvocationsDropped
	}
	patched, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	key := pgx.NamedArgs{"id": e.ID, "version": e.Version, "learning": jsonb(learning)}
	switch {
	case l.Activate:
		s.queueActivate(b, e.ID, e.Version)
	case e.Version != e.Head:
		b.Queue(`update capability_version set learning = @learning, updated_at = now()
			where workspace_id = @ws and pattern_id = @id and version = @version`, s.args(key))
		return nil
	case l.Proves:
		b.Queue(`update capability_version set activated_at = now(), updated_at = now()
			where workspace_id = @ws and pattern_id = @id and version = @version and activated_at is null`, s.args(key))
	}
	b.Queue(updateEvidence, s.args(pgx.NamedArgs{
		"id": e.ID, "state": e.State, "reason": text(e.StateReason), "partial": e.Partial, "usage": e.UsageCount,
		"successes": e.SuccessCount, "failures": e.FailureCount, "in_a_row": e.ConsecutiveFailures,
		"rate": e.SuccessRate, "ms": e.AvgDurationMS, "patch": jsonb(patched),
	}))
	return nil
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// queueContained counts that a capability was called by another one, where the
// dependency was accepted when the caller was analysed.
func (s *Store) queueContained(b *pgx.Batch, t trace.Trace) {
	args := s.args(pgx.NamedArgs{"parent": t.Run.Parent, "child": t.Run.Capability})
	b.Queue(`
		update capability_dependency d set count = d.count + 1, updated_at = now()
		from workflow_execution e
		where d.workspace_id = @ws and e.workspace_id = @ws and e.workflow_id = @parent
		  and d.from_pattern = e.pattern_id and d.to_pattern = @child and d.edge_type = 'contains'`, args)
	b.Queue(`
		update tool_dependency d
		set observed_count = d.observed_count + 1, source = 'observed', weight = @weight, last_observed_at = now(), updated_at = now()
		from workflow_execution e
		where d.workspace_id = @ws and e.workspace_id = @ws and e.workflow_id = @parent
		  and d.from_id = e.pattern_id::text and d.to_id = @child::uuid::text and d.edge_type = 'contains'`,
		s.args(pgx.NamedArgs{"parent": t.Run.Parent, "child": t.Run.Capability, "weight": capability.Weight(capability.Contains, capability.ObservedEdge)}))
}
