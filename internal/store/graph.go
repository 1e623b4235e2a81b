package store

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

const (
	insertEdges = `
		insert into tool_dependency as d (workspace_id, from_id, to_id, edge_type, observed_count, weight, source, coverage,
			field_mapping, last_observed_at)
		select @ws, u.from_id, u.to_id, u.edge_type, u.count, u.weight, u.source, u.coverage, u.mapping::jsonb,
			case when u.source = 'observed' then now() end
		from unnest(@from::text[], @to::text[], @type::text[], @count::bigint[], @weight::float8[], @source::text[],
			@coverage::text[], @mapping::text[]) as u (from_id, to_id, edge_type, count, weight, source, coverage, mapping)
		order by u.from_id, u.to_id, u.edge_type
		on conflict (workspace_id, from_id, to_id, edge_type) do update `
	// What was seen outranks what was guessed: a guess about the fields is replaced.
	upsertObservedEdges = insertEdges + `
		set observed_count = d.observed_count + excluded.observed_count, weight = excluded.weight, source = 'observed',
			coverage = case
				when d.source <> 'observed' or d.coverage = '' or excluded.coverage = 'strict' then excluded.coverage
				when d.coverage = 'optional' and excluded.coverage = 'partial' then excluded.coverage
				else d.coverage end,
			field_mapping = case
				when excluded.field_mapping <> '[]' then excluded.field_mapping
				when d.source <> 'observed' then '[]'
				else d.field_mapping end,
			last_observed_at = now(), updated_at = now()`
	upsertGuessedEdges = insertEdges + `
		set weight = excluded.weight, source = excluded.source, coverage = excluded.coverage,
			field_mapping = excluded.field_mapping, updated_at = now()
		where d.source <> 'observed'`
)

func (s *Store) edgeArgs(edges []capability.Edge) (pgx.NamedArgs, error) {
	n := len(edges)
	from, to, types, sources := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	coverages, mappings := make([]string, n), make([]*string, n)
	counts, weights := make([]int64, n), make([]float64, n)
	for i, e := range edges {
		mapping, err := marshalList(e.FieldMapping)
		if err != nil {
			return nil, err
		}
		from[i], to[i], types[i], sources[i] = text(e.From), text(e.To), string(e.Type), string(e.Source)
		coverages[i], mappings[i], counts[i], weights[i] = string(e.Coverage), jsonb(mapping), e.Count, e.Weight
	}
	return s.args(pgx.NamedArgs{
		"from": from, "to": to, "type": types, "source": sources, "coverage": coverages, "mapping": mappings,
		"count": counts, "weight": weights,
	}), nil
}

// Edges returns the graph of tools and capabilities: all edges, in the order of
// their ends.
func (s *Store) Edges(ctx context.Context) ([]capability.Edge, error) {
	return collect(ctx, s, `
		select from_id, to_id, edge_type, source, observed_count, weight, coverage, field_mapping
		from tool_dependency where workspace_id = @ws order by from_id, to_id, edge_type`, nil,
		func(row pgx.CollectableRow) (capability.Edge, error) {
			var e capability.Edge
			var mapping json.RawMessage
			if err := row.Scan(&e.From, &e.To, &e.Type, &e.Source, &e.Count, &e.Weight, &e.Coverage, &mapping); err != nil {
				return e, err
			}
			err := unmarshal(mapping, &e.FieldMapping)
			if len(e.FieldMapping) == 0 {
				e.FieldMapping = nil
			}
			return e, err
		})
}

// SaveGuesses stores edges that were inferred or come from a template. An edge that
// was observed stays as it is. Each edge must be there once, and none may be of an
// acyclic type: AddEdge takes those.
func (s *Store) SaveGuesses(ctx context.Context, edges []capability.Edge) error {
	for _, e := range edges {
		if e.Type.Acyclic() || e.Source == capability.ObservedEdge {
			return fault.New(fault.InvalidInput, "the edge %s of %s to %s is no guess", e.Type, e.From, e.To)
		}
	}
	args, err := s.edgeArgs(edges)
	if err != nil || len(edges) == 0 {
		return err
	}
	_, err = s.exec(ctx, upsertGuessedEdges, args)
	return err
}

// AddEdge stores one edge, observed once more. One of an acyclic type that would
// close a circle is refused, with the circle.
func (s *Store) AddEdge(ctx context.Context, e capability.Edge) error {
	return s.changeCapabilities(ctx, func(ctx context.Context, tx *Tx) error { return tx.addEdge(ctx, e) })
}

func (t *Tx) addEdge(ctx context.Context, e capability.Edge) error {
	if e.From == e.To || e.Type.Acyclic() {
		if err := t.refuseCycle(ctx, e.From, e.To, e.Type); err != nil {
			return err
		}
	}
	args, err := t.store.edgeArgs([]capability.Edge{e})
	if err != nil {
		return err
	}
	sql := upsertGuessedEdges
	if e.Source == capability.ObservedEdge {
		sql = upsertObservedEdges
	}
	_, err = t.tx.Exec(ctx, sql, args)
	return err
}

// refuseCycle looks at both acyclic types together: what contains something
// depends on it too.
func (t *Tx) refuseCycle(ctx context.Context, from, to string, kind capability.EdgeType) error {
	rows, err := t.tx.Query(ctx, `
		select from_id, to_id from tool_dependency
		where workspace_id = @ws and edge_type in ('dependency', 'contains') order by from_id, to_id`, t.store.args(nil))
	if err != nil {
		return err
	}
	next := map[string][]string{}
	var a, b string
	if _, err := pgx.ForEachRow(rows, []any{&a, &b}, func() error { next[a] = append(next[a], b); return nil }); err != nil {
		return err
	}
	circle := capability.Cycle(from, to, func(id string) []string { return next[id] })
	if circle == nil {
		return nil
	}
	if err := t.nameAll(ctx, circle); err != nil {
		return err
	}
	return fault.New(fault.InvalidInput, "an edge %q from %s to %s would close a circle: %s", kind, circle[0], circle[1], strings.Join(circle, " → "))
}

// nameAll puts the names of capabilities in the place of their ids.
func (t *Tx) nameAll(ctx context.Context, ids []string) error {
	rows, err := t.tx.Query(ctx, `
		select pattern_id::text, name from workflow_pattern where workspace_id = @ws and pattern_id::text = any(@ids::text[])`,
		t.store.args(pgx.NamedArgs{"ids": ids}))
	if err != nil {
		return err
	}
	names := map[string]string{}
	var id, name string
	if _, err := pgx.ForEachRow(rows, []any{&id, &name}, func() error { names[id] = name; return nil }); err != nil {
		return err
	}
	for i, id := range ids {
		if name, ok := names[id]; ok {
			ids[i] = name
		}
	}
	return nil
}

// AddDependency notes that one capability's program refers to another. A circle is
// refused for contains and dependency.
func (s *Store) AddDependency(ctx context.Context, from, to uuid.UUID, kind capability.EdgeType) error {
	return s.changeCapabilities(ctx, func(ctx context.Context, tx *Tx) error {
		e := capability.NewEdge(from.String(), to.String(), kind, capability.ObservedEdge)
		e.Count = 0 // it was seen in a program, not in a run
		if err := tx.addEdge(ctx, e); err != nil {
			return err
		}
		_, err := tx.tx.Exec(ctx, `
			insert into capability_dependency (workspace_id, from_pattern, to_pattern, edge_type, count)
			values (@ws, @from, @to, @kind, 0)
			on conflict (workspace_id, from_pattern, to_pattern, edge_type) do nothing`,
			s.args(pgx.NamedArgs{"from": from, "to": to, "kind": kind}))
		if violates(err, codeForeignKey) {
			return fault.New(fault.UnknownCapability, "capability %s or %s does not exist", from, to)
		}
		return err
	})
}

// PrioritizedTrace is a run from which there is much to learn.
type PrioritizedTrace struct {
	ID         uuid.UUID        `json:"id"`
	Version    int              `json:"version"`
	Priority   float64          `json:"priority"`
	Success    bool             `json:"success"`
	Path       []string         `json:"executed_path"`
	PathHash   string           `json:"path_hash"`
	Decisions  []trace.Decision `json:"decisions"`
	DurationMS float64          `json:"duration_ms"`
	Intent     string           `json:"intent"`
	Error      *fault.Error     `json:"error,omitempty"`
	At         time.Time        `json:"at"`
}

// HighPriorityTraces returns the runs of a capability that were the greatest
// surprises, those first; of equals the latest first.
func (s *Store) HighPriorityTraces(ctx context.Context, id uuid.UUID, limit int) ([]PrioritizedTrace, error) {
	return collect(ctx, s, `
		select id, coalesce(capability_version, 0), priority, success, executed_path, path_hash, decisions, duration_ms, intent, error, created_at
		from capability_trace where workspace_id = @ws and capability_id = @id
		order by priority desc, created_at desc, id limit @limit`,
		pgx.NamedArgs{"id": id, "limit": min(max(limit, 1), mostRuns)}, func(row pgx.CollectableRow) (PrioritizedTrace, error) {
			var p PrioritizedTrace
			var priority float32
			var decisions, failure json.RawMessage
			err := row.Scan(&p.ID, &p.Version, &priority, &p.Success, &p.Path, &p.PathHash, &decisions, &p.DurationMS, &p.Intent, &failure, &p.At)
			if err != nil {
				return p, err
			}
			p.Priority = float64(priority)
			if err := unmarshal(decisions, &p.Decisions); err != nil {
				return p, err
			}
			p.Error, err = faultOf(failure)
			return p, err
		})
}

// ObservedSchemas returns what results have shown of every tool that is not
// removed and was called.
func (s *Store) ObservedSchemas(ctx context.Context) (map[tool.ID]tool.Observed, error) {
	type row struct {
		ID     tool.ID
		Schema json.RawMessage
		Count  int64
	}
	list, err := collect(ctx, s, `
		select tool_id as id, observed_schema as schema, observed_count as count from tool_schema
		where workspace_id = @ws and removed_at is null and observed_count > 0`, nil, pgx.RowToStructByName[row])
	out := make(map[tool.ID]tool.Observed, len(list))
	for _, r := range list {
		o := tool.Observed{Count: r.Count}
		if err := unmarshal(r.Schema, &o.Shape); err != nil {
			return nil, err
		}
		out[r.ID] = o
	}
	return out, err
}
