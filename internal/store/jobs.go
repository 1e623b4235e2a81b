package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
)

// Pool is the store's connections, for the queue of jobs, which brings tables of its
// own. It ends with the store.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// mostListed bounds the lists that one look of a job is given.
const mostListed = 1000

// ActiveCapabilities returns the active capabilities that have run at least as often
// as given, at most a thousand: their ids, names, states, counts and rates, and no more.
func (s *Store) ActiveCapabilities(ctx context.Context, runs int) ([]capability.Capability, error) {
	return s.standings(ctx, `state = 'active' and usage_count >= @runs`, pgx.NamedArgs{"runs": runs})
}

// UnusedCandidates returns, in the same way, the candidates that were neither run nor
// changed since a moment.
func (s *Store) UnusedCandidates(ctx context.Context, since time.Time) ([]capability.Capability, error) {
	return s.standings(ctx, `
		state = 'candidate' and updated_at < @since and not exists (
			select from workflow_execution e
			where e.workspace_id = @ws and e.pattern_id = p.pattern_id and e.started_at >= @since)`,
		pgx.NamedArgs{"since": since})
}

func (s *Store) standings(ctx context.Context, condition string, args pgx.NamedArgs) ([]capability.Capability, error) {
	args["limit"] = mostListed
	return collect(ctx, s, `
		select pattern_id, name, state, usage_count, success_rate from workflow_pattern p
		where workspace_id = @ws and `+condition+` order by pattern_id limit @limit`, args,
		func(row pgx.CollectableRow) (capability.Capability, error) {
			var c capability.Capability
			return c, row.Scan(&c.ID, &c.Name, &c.State, &c.UsageCount, &c.SuccessRate)
		})
}

// snapshotsKept is how many versions of the graph's results are kept.
const snapshotsKept = 5

// SaveGraphSnapshot stores what was computed of the graph under the next version,
// unless the newest says the same. It returns the newest version and whether it is new.
func (s *Store) SaveGraphSnapshot(ctx context.Context, results json.RawMessage) (version int64, fresh bool, err error) {
	err = s.transaction(ctx, func(ctx context.Context, tx *Tx) error {
		args := s.args(pgx.NamedArgs{"results": jsonb(results), "kept": snapshotsKept})
		if _, err := tx.tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('graph:' || @ws, 0))`, args); err != nil {
			return err
		}
		tag, err := tx.tx.Exec(ctx, `
			insert into graph_snapshot (workspace_id, version, results)
			select @ws, coalesce(max(version), 0) + 1, @results::jsonb from graph_snapshot where workspace_id = @ws
			having not exists (select from graph_snapshot g where g.workspace_id = @ws and g.results = @results::jsonb
				and g.version = (select max(version) from graph_snapshot where workspace_id = @ws))`, args)
		if err != nil {
			return err
		}
		fresh = tag.RowsAffected() == 1
		if err := tx.tx.QueryRow(ctx, `select max(version) from graph_snapshot where workspace_id = @ws`, args).Scan(&version); err != nil {
			return err
		}
		_, err = tx.tx.Exec(ctx, `delete from graph_snapshot where workspace_id = @ws and version <= @version::bigint - @kept::bigint`,
			s.args(pgx.NamedArgs{"version": version, "kept": snapshotsKept}))
		return err
	})
	return version, fresh, err
}

// Surprises returns the runs with the highest priorities, those first, whose paths are
// exactly known: at most limit, and none of a priority of 0.
func (s *Store) Surprises(ctx context.Context, limit int) ([]capability.Surprise, error) {
	return collect(ctx, s, `
		select id, capability_id as capability, coalesce(capability_version, 0) as version, path_hash, success,
			duration_ms, priority::float8 as priority
		from capability_trace
		where workspace_id = @ws and capability_id is not null and exact and cache_hit = '' and priority > 0
		order by priority desc, id limit @limit`, pgx.NamedArgs{"limit": limit}, pgx.RowToStructByName[capability.Surprise])
}

// Learning returns what is known of the ways through one version of a capability; a
// version that is gone gives none.
func (s *Store) Learning(ctx context.Context, id uuid.UUID, version int) (capability.Learning, error) {
	var l capability.Learning
	rows, err := collect(ctx, s, `
		select case when v.version = p.version then p.dag_structure -> 'learning' else v.learning end
		from workflow_pattern p join capability_version v using (workspace_id, pattern_id)
		where p.workspace_id = @ws and p.pattern_id = @id and v.version = coalesce(nullif(@version::int, 0), p.version)`,
		pgx.NamedArgs{"id": id, "version": version}, pgx.RowTo[json.RawMessage])
	if err != nil || len(rows) == 0 {
		return l, err
	}
	return l, unmarshal(rows[0], &l)
}

// SetPriorities changes the priorities of runs and returns how many were others before.
func (s *Store) SetPriorities(ctx context.Context, ids []uuid.UUID, priorities []float64) (int64, error) {
	return s.exec(ctx, `
		update capability_trace t set priority = u.priority::real, updated_at = now()
		from unnest(@ids::uuid[], @priorities::float8[]) as u (id, priority)
		where t.workspace_id = @ws and t.id = u.id and t.priority <> u.priority::real`,
		pgx.NamedArgs{"ids": ids, "priorities": priorities})
}

// GraphSnapshot is what was computed of the graph.
type GraphSnapshot struct {
	Version int64
	Results json.RawMessage
	At      time.Time
}

// GraphSnapshot returns what was computed last. Before the first time that is a
// fault.NotFound.
func (s *Store) GraphSnapshot(ctx context.Context) (GraphSnapshot, error) {
	found, err := collectOne(ctx, s, `
		select version, results, created_at as at from graph_snapshot where workspace_id = @ws
		order by version desc limit 1`, nil, pgx.RowToStructByName[GraphSnapshot])
	if errors.Is(err, errNoRow) {
		return found, fault.New(fault.NotFound, "nothing is known yet of which tools go together").
			WithHint("run programs that call several; 'pml jobs run graph' counts anew")
	}
	return found, err
}

// CapabilityNames returns the name of each capability by its id, retired ones too.
func (s *Store) CapabilityNames(ctx context.Context) (map[string]string, error) {
	type named struct{ ID, Name string }
	list, err := collect(ctx, s, `
		select pattern_id::text as id, name from workflow_pattern where workspace_id = @ws`, nil, pgx.RowToStructByName[named])
	names := make(map[string]string, len(list))
	for _, n := range list {
		names[n.ID] = n.Name
	}
	return names, err
}
