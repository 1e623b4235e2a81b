package store

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
)

// selectCapability reads a capability p at one of its versions v. One that was not
// the head yet is a candidate, whatever the head is.
const selectCapability = `
	select p.pattern_id, p.name, p.aliases, p.description, p.intent, v.hash_exact, v.hash_shape, v.version, p.version,
		case when v.version <> p.version and v.activated_at is null then 'candidate' else p.state end,
		p.state_reason, p.partial, v.source, v.parameters, v.static_structure,
		case when v.version = p.version then p.dag_structure -> 'learning' else v.learning end,
		p.dag_structure -> 'tools_used', p.dag_structure -> 'tool_invocations',
		coalesce((p.dag_structure -> 'tool_invocations_dropped')::int, 0),
		p.usage_count, p.success_count, p.failure_count, p.consecutive_failures, p.success_rate, p.avg_duration_ms,
		p.promoted_at, p.origin, p.created_at, p.updated_at
	from workflow_pattern p
	join capability_version v on v.workspace_id = p.workspace_id and v.pattern_id = p.pattern_id
	where p.workspace_id = @ws `

func scanCapability(row pgx.CollectableRow) (capability.Capability, error) {
	var c capability.Capability
	var source, parameters, structure, learning, tools, invocations json.RawMessage
	var promoted *time.Time
	err := row.Scan(&c.ID, &c.Name, &c.Aliases, &c.Description, &c.Intent, &c.HashExact, &c.HashShape, &c.Version, &c.Head,
		&c.State, &c.StateReason, &c.Partial, &source, &parameters, &structure, &learning, &tools, &invocations,
		&c.InvocationsDropped, &c.UsageCount, &c.SuccessCount, &c.FailureCount, &c.ConsecutiveFailures, &c.SuccessRate,
		&c.AvgDurationMS, &promoted, &c.Origin, &c.CreatedAt, &c.UpdatedAt)
	if err != nil {
		return c, err
	}
	c.PromotedAt = deref(promoted)
	return c, errors.Join(
		unmarshal(source, &c.Source), unmarshal(parameters, &c.Parameters), unmarshal(structure, &c.Structure),
		unmarshal(learning, &c.Learning), unmarshal(tools, &c.ToolsUsed), unmarshal(invocations, &c.ToolInvocations))
}

const (
	atHead = ` and v.version = p.version `
	// A name wins over an alias; there is at most one of either.
	byName = atHead + ` and (p.name = @name or @name = any(p.aliases)) order by p.name = @name desc limit 1`
	// The head wins over a program that was there before.
	byShape = ` and v.hash_shape = @hash order by v.version = p.version desc, v.version desc limit 1`
)

// Capability finds a capability by its id, its name or a name that it had before.
func (s *Store) Capability(ctx context.Context, nameOrID string) (capability.Capability, error) {
	sql, args := selectCapability+byName, pgx.NamedArgs{"name": text(nameOrID)}
	if id, err := uuid.Parse(nameOrID); err == nil {
		sql, args = selectCapability+atHead+` and p.pattern_id = @id`, pgx.NamedArgs{"id": id}
	}
	c, err := collectOne(ctx, s, sql, args, scanCapability)
	return c, noCapability(err, nameOrID)
}

func noCapability(err error, name string) error {
	if errors.Is(err, errNoRow) {
		return fault.New(fault.UnknownCapability, "there is no capability %q", name).WithHint("'pml capability ls' lists them")
	}
	return err
}

// CapabilityByHash finds the capability whose program, at any version, has this
// shape; the result is at that version. ok is false when there is none.
func (s *Store) CapabilityByHash(ctx context.Context, shape string) (c capability.Capability, ok bool, err error) {
	c, err = collectOne(ctx, s, selectCapability+byShape, pgx.NamedArgs{"hash": shape}, scanCapability)
	if errors.Is(err, errNoRow) {
		return c, false, nil
	}
	return c, err == nil, err
}

// CapabilityFilter selects capabilities; the zero value means the first hundred
// that are not retired.
type CapabilityFilter struct {
	States []capability.State // default all but retired
	Query  string             // part of the name, the intent or the description
	Tool   tool.ID            // a tool that it uses
	Limit  int                // default 100, at most 1000
	Offset int
}

const (
	defaultCapabilities = 100
	mostCapabilities    = 1000
)

// Capabilities lists capabilities, the most used first.
func (s *Store) Capabilities(ctx context.Context, f CapabilityFilter) ([]capability.Capability, error) {
	if f.Limit <= 0 {
		f.Limit = defaultCapabilities
	}
	states := f.States
	if len(states) == 0 {
		states = []capability.State{capability.Candidate, capability.Active, capability.Promoted, capability.Degraded}
	}
	return collect(ctx, s, selectCapability+atHead+`
		  and p.state = any(@states::text[])
		  and (@query = '' or position(lower(@query) in lower(p.name || ' ' || p.intent || ' ' || p.description)) > 0)
		  and (@tool = '' or p.dag_structure -> 'tools_used' ? @tool)
		order by p.usage_count desc, p.name limit @limit offset @offset`,
		pgx.NamedArgs{
			"states": texts(states), "query": text(f.Query), "tool": text(string(f.Tool)),
			"limit": min(f.Limit, mostCapabilities), "offset": max(f.Offset, 0),
		}, scanCapability)
}

// CapabilityVersions lists the programs that a capability has had, the first first.
func (s *Store) CapabilityVersions(ctx context.Context, nameOrID string) ([]capability.Version, error) {
	c, err := s.Capability(ctx, nameOrID)
	if err != nil {
		return nil, err
	}
	return collect(ctx, s, `
		select version, hash_exact, hash_shape, source, parameters, static_structure, reason, activated_at, created_at
		from capability_version where workspace_id = @ws and pattern_id = @id order by version`,
		pgx.NamedArgs{"id": c.ID}, func(row pgx.CollectableRow) (capability.Version, error) {
			var v capability.Version
			var source, parameters, structure json.RawMessage
			var activated *time.Time
			err := row.Scan(&v.Number, &v.HashExact, &v.HashShape, &source, &parameters, &structure, &v.Reason, &activated, &v.CreatedAt)
			v.ActivatedAt = deref(activated)
			return v, errors.Join(err, unmarshal(source, &v.Source), unmarshal(parameters, &v.Parameters), unmarshal(structure, &v.Structure))
		})
}

// one reads one capability inside a transaction that holds the lock.
func (t *Tx) capability(ctx context.Context, condition string, args pgx.NamedArgs) (c capability.Capability, ok bool, err error) {
	rows, err := t.tx.Query(ctx, selectCapability+condition, t.store.args(args))
	if err != nil {
		return c, false, err
	}
	c, err = pgx.CollectOneRow(rows, scanCapability)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, false, nil
	}
	return c, err == nil, err
}

// changeCapabilities runs f in a transaction that is the only one of the workspace
// to make or rename capabilities: names and aliases must be unique together, which
// no index can see.
func (s *Store) changeCapabilities(ctx context.Context, f func(context.Context, *Tx) error) error {
	return s.transaction(ctx, func(ctx context.Context, tx *Tx) error {
		if _, err := tx.tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('capability:' || @ws, 0))`, s.args(nil)); err != nil {
			return err
		}
		return f(ctx, tx)
	})
}

// changeNamed is changeCapabilities for a capability that exists.
func (s *Store) changeNamed(ctx context.Context, name string, f func(context.Context, *Tx, capability.Capability) error) error {
	return s.changeCapabilities(ctx, func(ctx context.Context, tx *Tx) error {
		condition, args := byName, pgx.NamedArgs{"name": text(name)}
		if id, err := uuid.Parse(name); err == nil {
			condition, args = atHead+` and p.pattern_id = @id`, pgx.NamedArgs{"id": id}
		}
		c, ok, err := tx.capability(ctx, condition, args)
		if err == nil && !ok {
			err = noCapability(errNoRow, name)
		}
		if err != nil {
			return err
		}
		return f(ctx, tx, c)
	})
}

// names returns every name and alias of the workspace.
func (t *Tx) names(ctx context.Context) (map[string]bool, error) {
	rows, err := t.tx.Query(ctx, `
		select name from workflow_pattern where workspace_id = @ws
		union all select unnest(aliases) from workflow_pattern where workspace_id = @ws`, t.store.args(nil))
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	names := make(map[string]bool, len(list))
	for _, n := range list {
		names[n] = true
	}
	return names, err
}

// RenameCapability gives a capability another name. The old one stays an alias, so
// that programs that use it go on to work.
func (s *Store) RenameCapability(ctx context.Context, name, newName string) error {
	if err := capability.CheckName(newName); err != nil {
		return err
	}
	return s.changeNamed(ctx, name, func(ctx context.Context, tx *Tx, c capability.Capability) error {
		if c.Name == newName {
			return nil
		}
		other, taken, err := tx.capability(ctx, byName, pgx.NamedArgs{"name": newName})
		if err != nil {
			return err
		}
		if taken && other.ID != c.ID {
			return fault.New(fault.InvalidInput, "the name %q is that of another capability", newName)
		}
		aliases := slices.DeleteFunc(append(c.Aliases, c.Name), func(a string) bool { return a == newName })
		_, err = tx.tx.Exec(ctx, `
			update workflow_pattern set name = @name, aliases = @aliases, updated_at = now()
			where workspace_id = @ws and pattern_id = @id`, s.args(pgx.NamedArgs{"name": newName, "aliases": aliases, "id": c.ID}))
		return err
	})
}

// RetireCapability puts a capability away, for a reason that a person gives. It is
// no longer found or run, and keeps all that it has.
func (s *Store) RetireCapability(ctx context.Context, name, reason string) error {
	_, err := s.MoveCapability(ctx, name, capability.Event{Kind: capability.PersonRetires, Reason: reason})
	return err
}

// MoveCapability applies an event of its life to a capability and returns its state.
func (s *Store) MoveCapability(ctx context.Context, name string, e capability.Event) (capability.State, error) {
	var state capability.State
	err := s.changeNamed(ctx, name, func(ctx context.Context, tx *Tx, c capability.Capability) error {
		var reason string
		row := tx.tx.QueryRow(ctx, `
			select state, state_reason from workflow_pattern
			where workspace_id = @ws and pattern_id = @id for no key update`, s.args(pgx.NamedArgs{"id": c.ID}))
		if err := row.Scan(&state, &reason); err != nil {
			return err
		}
		state, reason = capability.After(state, reason, e)
		_, err := tx.tx.Exec(ctx, `
			update workflow_pattern set state = @state, state_reason = @reason, updated_at = now(),
				promoted_at = case when @state = 'promoted' then coalesce(promoted_at, now()) else promoted_at end
			where workspace_id = @ws and pattern_id = @id`,
			s.args(pgx.NamedArgs{"id": c.ID, "state": state, "reason": text(reason)}))
		return err
	})
	return state, err
}
