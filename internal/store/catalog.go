package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pml-run/pml/internal/tool"
)

// SaveServer writes the state of a server.
func (s *Store) SaveServer(ctx context.Context, v tool.ServerState) error {
	_, err := s.exec(ctx, `
		insert into server as s (workspace_id, name, config_hash, state, last_error, protocol_version, instructions, last_seen_at)
		values (@ws, @name, @hash, @state, @error, @version, @instructions, @seen)
		on conflict (workspace_id, name) do update
		set config_hash = excluded.config_hash, state = excluded.state, last_error = excluded.last_error,
			protocol_version = excluded.protocol_version, instructions = excluded.instructions,
			last_seen_at = coalesce(excluded.last_seen_at, s.last_seen_at), updated_at = now()`,
		pgx.NamedArgs{
			"name": v.Name, "hash": v.ConfigHash, "state": v.State, "error": text(v.LastError),
			"version": text(v.ProtocolVersion), "instructions": text(v.Instructions), "seen": nullTime(v.LastSeen),
		})
	return err
}

// Servers returns the state of every server that was ever saved, by name.
func (s *Store) Servers(ctx context.Context) ([]tool.ServerState, error) {
	return collect(ctx, s, `
		select name, config_hash, state, last_error, protocol_version, instructions, last_seen_at
		from server where workspace_id = @ws order by name`, nil,
		func(row pgx.CollectableRow) (tool.ServerState, error) {
			var v tool.ServerState
			var seen *time.Time
			err := row.Scan(&v.Name, &v.ConfigHash, &v.State, &v.LastError, &v.ProtocolVersion, &v.Instructions, &seen)
			v.LastSeen = deref(seen)
			return v, err
		})
}

const upsertTools = `
	insert into tool_schema as t (workspace_id, tool_id, server, name, description, input_schema, output_schema, annotations, schema_hash)
	select @ws, u.tool_id, @server, u.name, u.description, u.input::jsonb, u.output::jsonb, u.annotations::jsonb, u.hash
	from unnest(@id::text[], @name::text[], @description::text[], @input::text[], @output::text[], @annotations::text[], @hash::text[])
		as u (tool_id, name, description, input, output, annotations, hash)
	on conflict (workspace_id, tool_id) do update
	set description = excluded.description, input_schema = excluded.input_schema, output_schema = excluded.output_schema,
		annotations = excluded.annotations, schema_hash = excluded.schema_hash, removed_at = null, updated_at = now()
	where (t.description, t.input_schema, t.output_schema, t.annotations, t.schema_hash)
		is distinct from (excluded.description, excluded.input_schema, excluded.output_schema, excluded.annotations, excluded.schema_hash)
	   or t.removed_at is not null`

// SaveCatalog replaces the list of a server's tools. It returns the tools that were
// known before and whose schema has changed, or which are gone: what was learnt
// about them may no longer hold.
func (s *Store) SaveCatalog(ctx context.Context, server string, tools []tool.Tool) (changed []tool.ID, err error) {
	args, err := s.toolArgs(server, tools)
	if err != nil {
		return nil, err
	}
	err = s.transaction(ctx, func(ctx context.Context, tx *Tx) error {
		changed = nil
		before, err := tx.toolHashes(ctx, server)
		if err != nil {
			return err
		}
		now := make(map[tool.ID]string, len(tools))
		for _, t := range tools {
			now[t.ID] = t.SchemaHash
		}
		for _, b := range before {
			hash, still := now[b.ID]
			if !still || hash != b.Hash {
				changed = append(changed, b.ID)
			}
		}
		if _, err := tx.tx.Exec(ctx, upsertTools, args); err != nil {
			return err
		}
		_, err = tx.tx.Exec(ctx, `
			update tool_schema set removed_at = now(), updated_at = now()
			where workspace_id = @ws and server = @server and removed_at is null and tool_id <> all(@id::text[])`,
			s.args(pgx.NamedArgs{"server": server, "id": args["id"]}))
		return err
	})
	return changed, err
}

func (s *Store) toolArgs(server string, tools []tool.Tool) (pgx.NamedArgs, error) {
	n := len(tools)
	ids, names, descriptions, hashes := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	inputs, outputs, annotations := make([]*string, n), make([]*string, n), make([]*string, n)
	for i, t := range tools {
		if t.ID.Server() != server {
			return nil, fmt.Errorf("tool %s is not one of server %s", t.ID, server)
		}
		claims, err := json.Marshal(t.Annotations)
		if err != nil {
			return nil, err
		}
		ids[i], names[i], descriptions[i], hashes[i] = text(string(t.ID)), text(t.ID.Name()), text(t.Description), t.SchemaHash
		inputs[i], outputs[i], annotations[i] = jsonb(t.InputSchema), jsonb(t.OutputSchema), jsonb(claims)
	}
	return s.args(pgx.NamedArgs{
		"server": server, "id": ids, "name": names, "description": descriptions, "hash": hashes,
		"input": inputs, "output": outputs, "annotations": annotations,
	}), nil
}

type toolHash struct {
	ID   tool.ID
	Hash string
}

// toolHashes locks and returns the tools of a server that are not removed.
func (t *Tx) toolHashes(ctx context.Context, server string) ([]toolHash, error) {
	rows, err := t.tx.Query(ctx, `
		select tool_id as id, schema_hash as hash from tool_schema
		where workspace_id = @ws and server = @server and removed_at is null order by tool_id for update`,
		t.store.args(pgx.NamedArgs{"server": server}))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[toolHash])
}

// Catalog returns every tool that is not removed, by id.
func (s *Store) Catalog(ctx context.Context) ([]tool.Tool, error) {
	return collect(ctx, s, `
		select tool_id, description, input_schema, output_schema, annotations, schema_hash
		from tool_schema where workspace_id = @ws and removed_at is null order by tool_id`, nil,
		func(row pgx.CollectableRow) (tool.Tool, error) {
			var t tool.Tool
			err := row.Scan(&t.ID, &t.Description, &t.InputSchema, &t.OutputSchema, &t.Annotations, &t.SchemaHash)
			return t, err
		})
}

// ToolStatistics is what calls have shown about a tool.
type ToolStatistics struct {
	ID       tool.ID
	Calls    int64
	Failures int64
	TotalMS  float64
}

// ToolStatistics returns the statistics of every tool that was ever called, by id.
func (s *Store) ToolStatistics(ctx context.Context) ([]ToolStatistics, error) {
	return collect(ctx, s, `
		select tool_id as id, calls, failures, total_ms from tool_schema
		where workspace_id = @ws and calls > 0 order by tool_id`, nil, pgx.RowToStructByName[ToolStatistics])
}

// ToolExample is a successful call of a tool.
type ToolExample struct {
	Args    json.RawMessage
	Preview string // the beginning of the result
	SeenAt  time.Time
}

// ToolExamples returns up to three examples of a tool, the oldest first.
func (s *Store) ToolExamples(ctx context.Context, id tool.ID) ([]ToolExample, error) {
	return collect(ctx, s, `
		select args, result_preview as preview, seen_at from tool_example
		where workspace_id = @ws and tool_id = @id order by slot`,
		pgx.NamedArgs{"id": string(id)}, pgx.RowToStructByName[ToolExample])
}
