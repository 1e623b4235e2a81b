package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/tool"
)

// cacheLogKept is how long the log says what was dropped.
const cacheLogKept = 30 * 24 * time.Hour

// CachedResult finds a result that was kept and what a person has said about keeping
// it, and counts the hit. A key without a hash finds only the latter.
func (s *Store) CachedResult(ctx context.Context, k capability.CacheKey) (capability.Cached, error) {
	return collectOne(ctx, s, `
		with hit as (
			update capability_cache set hit_count = hit_count + 1, updated_at = now()
			where workspace_id = @ws and capability_id = @id and version = @version and params_hash = @hash and expires_at > @now
			returning result, created_at)
		select p.cache_config, now(), hit.result is not null, hit.result, hit.created_at
		from workflow_pattern p left join hit on true
		where p.workspace_id = @ws and p.pattern_id = @id`,
		pgx.NamedArgs{"id": k.Capability, "version": k.Version, "hash": k.Hash, "now": s.now()},
		func(row pgx.CollectableRow) (capability.Cached, error) {
			var c capability.Cached
			var config json.RawMessage
			var packed []byte
			var at *time.Time
			if err := row.Scan(&config, &c.Now, &c.Found, &packed, &at); err != nil {
				return c, err
			}
			c.At = deref(at)
			var err error
			if c.Found {
				c.Result, err = unpack(packed)
			}
			return c, errors.Join(err, unmarshal(config, &c.Config))
		})
}

// lockCache orders the keeping of results and their dropping: a result is kept either
// before a drop, which then takes it, or after it, when it sees the log.
const lockCache = `select pg_advisory_xact_lock(hashtextextended('cache:' || @ws, 0))`

// KeepResult keeps a result that was read since a time of the database, unless one of
// the servers was written to meanwhile. Of more entries than the configuration allows
// the oldest go. It reports whether the result was kept.
func (s *Store) KeepResult(ctx context.Context, k capability.CacheKey, result json.RawMessage, servers []string, since time.Time, c capability.CacheConfig) (bool, error) {
	args := s.args(pgx.NamedArgs{
		"id": k.Capability, "version": k.Version, "hash": k.Hash, "result": pack(result), "servers": texts(servers), "since": since,
		"expires": s.now().Add(c.TTL()), "most": c.Entries(), "write": capability.DroppedByWrite,
	})
	kept := false
	err := s.idempotent(ctx, func(ctx context.Context) error {
		var b pgx.Batch // one round trip, and one transaction
		b.Queue(lockCache, args)
		b.Queue(`
			insert into capability_cache (workspace_id, capability_id, version, params_hash, result, expires_at)
			select @ws, @id, @version, @hash, @result, @expires
			where not exists (
				select from cache_invalidation_log
				where workspace_id = @ws and created_at >= @since
				  and (trigger_type <> @write or split_part(tool_id, ':', 1) = any(@servers::text[])))
			on conflict (workspace_id, capability_id, version, params_hash) do update
			set result = excluded.result, expires_at = excluded.expires_at, hit_count = 0, created_at = now(), updated_at = now()`, args,
		).Exec(func(tag pgconn.CommandTag) error {
			kept = tag.RowsAffected() == 1
			return nil
		})
		b.Queue(`
			delete from capability_cache
			where workspace_id = @ws and capability_id = @id and (version, params_hash) in (
				select version, params_hash from capability_cache
				where workspace_id = @ws and capability_id = @id order by created_at desc, params_hash <> @hash offset @most)`, args)
		return s.pool.SendBatch(ctx, &b).Close()
	})
	return kept && err == nil, err
}

// A result may rest on every tool that its program can be seen to use. What a program
// uses through another capability is not looked for: such a result goes with any tool.
const dropByTools = `
	exists (
		select from capability_version v, jsonb_array_elements(v.static_structure -> 'nodes') n
		where v.workspace_id = c.workspace_id and v.pattern_id = c.capability_id and v.version = c.version
		  and (n ->> 'type' = 'capability' or `

// DropCached drops results and writes into the log why; it returns how many went. A
// write is logged for each server also where nothing went, because KeepResult looks
// there; other drops that find nothing leave no trace unless a person asked.
func (s *Store) DropCached(ctx context.Context, d capability.Drop) (int64, error) {
	condition := "true"
	switch {
	case len(d.Writers) > 0:
		condition = dropByTools + `split_part(n ->> 'tool', ':', 1) = any(@servers::text[])))`
	case len(d.Tools) > 0:
		condition = dropByTools + `n ->> 'tool' = any(@tools::text[])))`
	case d.Capability != uuid.Nil:
		condition = `capability_id = @id`
	case !d.Before.IsZero():
		condition = `created_at < @before`
	}
	args := s.args(pgx.NamedArgs{
		"servers": serversOf(d.Writers), "tools": texts(d.Tools), "id": nullID(d.Capability), "before": d.Before, "trigger": d.Trigger, "more": d.InMemory,
		"about": about(d), "always": len(d.Writers) > 0 || d.Trigger == capability.DroppedByHand || d.Trigger == capability.DroppedByLoss,
	})
	var n int64
	err := s.idempotent(ctx, func(ctx context.Context) error {
		var b pgx.Batch // one round trip, and one transaction
		b.Queue(lockCache, args)
		b.Queue(`
			with gone as (delete from capability_cache c where workspace_id = @ws and `+condition+` returning 1),
			logged as (
				insert into cache_invalidation_log (workspace_id, trigger_type, tool_id, capability_id, entries_invalidated)
				select @ws, @trigger, nullif(tool, ''), @id, case when at = 1 then n + @more::bigint else 0 end
				from (select count(*) from gone) as counted (n), unnest(@about::text[]) with ordinality as u (tool, at)
				where @always or n + @more::bigint > 0)
			select count(*) from gone`, args).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
		return s.pool.SendBatch(ctx, &b).Close()
	})
	return n, err
}

// serversOf are the servers of tools.
func serversOf(ids []tool.ID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = text(id.Server())
	}
	return out
}

// about are the tools of the rows that the log gets for a drop: one for each server of a
// write, and the first of those that have changed. The number of entries stands in the
// first row.
func about(d capability.Drop) []string {
	switch {
	case len(d.Writers) > 0:
		return texts(d.Writers)
	case len(d.Tools) > 0:
		return texts(d.Tools[:1])
	}
	return []string{""}
}

// DropFailing drops the results of a capability that has failed in a row; it reports
// whether it has.
func (s *Store) DropFailing(ctx context.Context, id uuid.UUID) (bool, error) {
	failing, err := collectOne(ctx, s, `
		select consecutive_failures >= @most from workflow_pattern where workspace_id = @ws and pattern_id = @id`,
		pgx.NamedArgs{"id": id, "most": capability.DegradeAfter}, pgx.RowTo[bool])
	if err != nil || !failing {
		return false, err
	}
	_, err = s.DropCached(ctx, capability.Drop{Trigger: capability.DroppedByFailure, Capability: id})
	return true, err
}

// PruneCacheLog forgets what was dropped more than a month ago.
func (s *Store) PruneCacheLog(ctx context.Context) error {
	_, err := s.exec(ctx, `delete from cache_invalidation_log where workspace_id = @ws and created_at < @before`,
		pgx.NamedArgs{"before": s.now().Add(-cacheLogKept)})
	return err
}

// mostCached bounds a list of kept results.
const mostCached = 1000

// CachedResults lists at most 1,000 results that are kept, the newest first.
func (s *Store) CachedResults(ctx context.Context) ([]capability.CacheEntry, error) {
	return collect(ctx, s, `
		select 'capability' as level, c.capability_id as capability, p.name, c.version, c.params_hash as hash, length(c.result) as bytes,
			c.hit_count as hits, c.created_at as at, c.expires_at
		from capability_cache c join workflow_pattern p on p.workspace_id = @ws and p.pattern_id = c.capability_id
		where c.workspace_id = @ws and c.expires_at > @now
		order by c.created_at desc, c.params_hash limit @most`,
		pgx.NamedArgs{"now": s.now(), "most": mostCached}, pgx.RowToStructByName[capability.CacheEntry])
}

// ChangeCacheConfig changes what is said about keeping the results of a capability. It
// returns the capability's id and what is said now.
func (s *Store) ChangeCacheConfig(ctx context.Context, name string, change func(*capability.CacheConfig)) (uuid.UUID, capability.CacheConfig, error) {
	var id uuid.UUID
	var c capability.CacheConfig
	err := s.changeNamed(ctx, name, func(ctx context.Context, tx *Tx, of capability.Capability) error {
		id, c = of.ID, capability.CacheConfig{}
		args := s.args(pgx.NamedArgs{"id": id})
		var have json.RawMessage
		row := tx.tx.QueryRow(ctx, `
			select cache_config from workflow_pattern where workspace_id = @ws and pattern_id = @id for no key update`, args)
		if err := errors.Join(row.Scan(&have), unmarshal(have, &c)); err != nil {
			return err
		}
		change(&c)
		if err := c.Check(); err != nil {
			return err
		}
		b, err := json.Marshal(c)
		if err != nil {
			return err
		}
		args["config"] = jsonb(b)
		_, err = tx.tx.Exec(ctx, `
			update workflow_pattern set cache_config = @config, updated_at = now() where workspace_id = @ws and pattern_id = @id`, args)
		return err
	})
	return id, c, err
}

// CacheConfigs returns what was said of those capabilities of which anything was.
func (s *Store) CacheConfigs(ctx context.Context) (map[uuid.UUID]capability.CacheConfig, error) {
	type row struct {
		id     uuid.UUID
		config capability.CacheConfig
	}
	rows, err := collect(ctx, s, `select pattern_id, cache_config from workflow_pattern where workspace_id = @ws and cache_config <> '{}'`, nil,
		func(r pgx.CollectableRow) (row, error) {
			var out row
			var config json.RawMessage
			err := r.Scan(&out.id, &config)
			return out, errors.Join(err, unmarshal(config, &out.config))
		})
	out := map[uuid.UUID]capability.CacheConfig{}
	for _, r := range rows {
		out[r.id] = r.config
	}
	return out, err
}
