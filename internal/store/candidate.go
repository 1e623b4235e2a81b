package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/structure"
)

// UpsertCandidate stores a program that was analysed and has not run yet. A program
// that is known, by its shape, at any version of any capability, is that
// capability: it is returned, and c's name and intent count for nothing. A new one
// becomes
//
//   - the next version of the capability that has c's name now; the head stays
//     until a run of the new version succeeds fully. (An imported one never does.)
//   - else a capability of its own, named as c says, or by its intent.
//
// The ID of c is made when it has none. created says that something was stored.
func (s *Store) UpsertCandidate(ctx context.Context, c capability.Capability) (stored capability.Capability, created bool, err error) {
	if c.HashExact == "" || c.HashShape == "" {
		return stored, false, fault.New(fault.InvalidInput, "a capability needs the hashes of its program")
	}
	if c.Name != "" {
		if err := capability.CheckName(c.Name); err != nil {
			return stored, false, err
		}
	}
	if known, ok, err := s.CapabilityByHash(ctx, c.HashShape); ok || err != nil {
		return known, false, err
	}
	err = s.changeCapabilities(ctx, func(ctx context.Context, tx *Tx) error {
		created = false
		var ok bool
		var err error
		if stored, ok, err = tx.capability(ctx, byShape, pgx.NamedArgs{"hash": c.HashShape}); ok || err != nil {
			return err
		}
		created = true
		if err := tx.addProgram(ctx, c); err != nil {
			return err
		}
		stored, ok, err = tx.capability(ctx, byShape, pgx.NamedArgs{"hash": c.HashShape})
		if err == nil && !ok {
			err = fmt.Errorf("capability %s is not there after it was stored", c.HashShape)
		}
		return err
	})
	return stored, created && err == nil, err
}

// addProgram stores a program that no capability has.
func (t *Tx) addProgram(ctx context.Context, c capability.Capability) error {
	if c.Name != "" && c.Origin != capability.Imported {
		have, ok, err := t.capability(ctx, byName, pgx.NamedArgs{"name": c.Name})
		if err != nil {
			return err
		}
		if ok {
			return t.addVersion(ctx, have.ID, c, "saved under the name "+c.Name)
		}
	}
	names, err := t.names(ctx)
	if err != nil {
		return err
	}
	taken := func(name string) bool { return names[name] }
	switch {
	case c.Name == "":
		c.Name = capability.NameFromIntent(c.Intent, taken)
	case taken(c.Name):
		c.Name = capability.UniqueName(c.Name, taken)
	}
	return t.addCapability(ctx, c)
}

func (t *Tx) addCapability(ctx context.Context, c capability.Capability) error {
	if c.ID == uuid.Nil {
		c.ID = uuid.Must(uuid.NewV7())
	}
	if c.Origin == "" {
		c.Origin = capability.Emergent
	}
	tools, _ := capability.Needs(c.Structure)
	graph, err := json.Marshal(map[string]any{
		"static_structure": withoutNil(c.Structure), "learning": capability.Learning{}, "tools_used": tools, "intent_text": c.Intent,
	})
	if err != nil {
		return err
	}
	args, err := t.programArgs(c)
	if err != nil {
		return err
	}
	args["name"], args["description"], args["intent"] = c.Name, text(c.Description), text(c.Intent)
	args["origin"], args["graph"] = c.Origin, jsonb(graph)
	_, err = t.tx.Exec(ctx, `
		insert into workflow_pattern (workspace_id, pattern_id, name, description, intent, hash_exact, hash_shape, version,
			state, source, parameters, dag_structure, origin)
		values (@ws, @id, @name, @description, @intent, @exact, @shape, 1, 'candidate', @source, @parameters, @graph, @origin)`, args)
	if err != nil {
		return err
	}
	return t.addVersion(ctx, c.ID, c, "")
}

func (t *Tx) addVersion(ctx context.Context, id uuid.UUID, c capability.Capability, reason string) error {
	c.ID = id
	args, err := t.programArgs(c)
	if err != nil {
		return err
	}
	structure, err := json.Marshal(withoutNil(c.Structure))
	if err != nil {
		return err
	}
	args["structure"], args["reason"] = jsonb(structure), text(reason)
	_, err = t.tx.Exec(ctx, `
		insert into capability_version (workspace_id, pattern_id, version, source, parameters, static_structure, hash_exact, hash_shape, reason)
		select @ws, @id, coalesce(max(version), 0) + 1, @source, @parameters, @structure, @exact, @shape, @reason
		from capability_version where workspace_id = @ws and pattern_id = @id`, args)
	return err
}

// programArgs are the arguments that say what a program is.
func (t *Tx) programArgs(c capability.Capability) (pgx.NamedArgs, error) {
	source, err := json.Marshal(c.Source)
	if err != nil {
		return nil, err
	}
	parameters, err := marshalList(c.Parameters)
	if err != nil {
		return nil, err
	}
	return t.store.args(pgx.NamedArgs{
		"id": c.ID, "exact": c.HashExact, "shape": c.HashShape, "source": jsonb(source), "parameters": jsonb(parameters),
	}), nil
}

func withoutNil(s structure.Structure) structure.Structure {
	return structure.Structure{Nodes: orEmpty(s.Nodes), Edges: orEmpty(s.Edges)}
}

// queueActivate queues what makes a version the head. What the old head has learnt
// stays with it, and the new one goes on with its own.
func (s *Store) queueActivate(b *pgx.Batch, id uuid.UUID, version int) {
	args := s.args(pgx.NamedArgs{"id": id, "version": version})
	b.Queue(`
		update capability_version v set learning = p.dag_structure -> 'learning', updated_at = now()
		from workflow_pattern p
		where p.workspace_id = @ws and p.pattern_id = @id
		  and v.workspace_id = @ws and v.pattern_id = @id and v.version = p.version and p.version <> @version`, args)
	b.Queue(`
		update workflow_pattern p
		set version = v.version, source = v.source, parameters = v.parameters, hash_exact = v.hash_exact, hash_shape = v.hash_shape,
			dag_structure = p.dag_structure - 'tool_invocations' - 'tool_invocations_dropped' || jsonb_build_object(
				'static_structure', v.static_structure, 'learning', coalesce(v.learning, '{}'), 'tools_used', (
					select coalesce(jsonb_agg(distinct n ->> 'tool') filter (where n ->> 'tool' is not null and position('*' in n ->> 'tool') = 0), '[]')
					from jsonb_array_elements(v.static_structure -> 'nodes') n)),
			updated_at = now()
		from capability_version v
		where p.workspace_id = @ws and p.pattern_id = @id
		  and v.workspace_id = @ws and v.pattern_id = @id and v.version = @version`, args)
	b.Queue(`
		update capability_version set activated_at = coalesce(activated_at, now()), updated_at = now()
		where workspace_id = @ws and pattern_id = @id and version = @version`, args)
}

// RollbackCapability makes another version of a capability its head. One that was
// the head before is active again; one that has never proved itself is a candidate.
func (s *Store) RollbackCapability(ctx context.Context, name string, version int) error {
	return s.changeNamed(ctx, name, func(ctx context.Context, tx *Tx, c capability.Capability) error {
		if c.Version == version {
			return nil
		}
		var proven bool
		row := tx.tx.QueryRow(ctx, `
			select activated_at is not null from capability_version
			where workspace_id = @ws and pattern_id = @id and version = @version`, s.args(pgx.NamedArgs{"id": c.ID, "version": version}))
		if err := row.Scan(&proven); err != nil {
			if errors.Is(err, pgx.ErrNoRows) {
				return fault.New(fault.NotFound, "capability %q has no version %d", c.Name, version)
			}
			return err
		}
		var b pgx.Batch
		s.queueActivate(&b, c.ID, version)
		state := capability.Candidate
		if proven {
			state = capability.Active
		}
		b.Queue(`update workflow_pattern set state = @state, state_reason = @reason, consecutive_failures = 0
			where workspace_id = @ws and pattern_id = @id`,
			s.args(pgx.NamedArgs{"id": c.ID, "state": state, "reason": fmt.Sprintf("set back from version %d to %d", c.Version, version)}))
		return tx.tx.SendBatch(ctx, &b).Close()
	})
}

// ImportCapabilities stores capabilities that were read from a file, all or none,
// and returns them as they are stored. What is known already is left as it is.
func (s *Store) ImportCapabilities(ctx context.Context, list []capability.Capability) ([]capability.Capability, error) {
	var out []capability.Capability
	err := s.changeCapabilities(ctx, func(ctx context.Context, tx *Tx) error {
		out = nil
		for _, c := range list {
			c.Origin = capability.Imported
			have, ok, err := tx.capability(ctx, byShape, pgx.NamedArgs{"hash": c.HashShape})
			if err == nil && !ok {
				if err = tx.addProgram(ctx, c); err == nil {
					have, _, err = tx.capability(ctx, byShape, pgx.NamedArgs{"hash": c.HashShape})
				}
			}
			if err != nil {
				return fmt.Errorf("import capability %s: %w", c.Name, err)
			}
			out = append(out, have)
		}
		return nil
	})
	return out, err
}
