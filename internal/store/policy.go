package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/trace"
)

// PolicyRules returns the rules that persons have made and not revoked, the oldest first.
func (s *Store) PolicyRules(ctx context.Context) ([]policy.Rule, error) {
	return collect(ctx, s, `
		select id, pattern, effect, origin, created_by from policy_rule
		where workspace_id = @ws and revoked_at is null and origin = 'person' order by id`, nil,
		func(row pgx.CollectableRow) (policy.Rule, error) {
			var r policy.Rule
			err := row.Scan(&r.ID, &r.Pattern, &r.Effect, &r.Origin, &r.CreatedBy)
			return r, err
		})
}

const insertRule = `
	insert into policy_rule (workspace_id, pattern, effect, origin, created_by)
	values (@ws, @pattern, @effect, 'person', @by)
	on conflict (workspace_id, pattern, effect) where revoked_at is null and origin = 'person' do nothing`

func (s *Store) ruleArgs(r policy.Rule) pgx.NamedArgs {
	return s.args(pgx.NamedArgs{"pattern": text(r.Pattern), "effect": r.Effect, "by": text(r.CreatedBy)})
}

// AddPolicyRule keeps a person's rule; one that is there already stays.
func (s *Store) AddPolicyRule(ctx context.Context, r policy.Rule) error {
	if err := r.Check(); err != nil {
		return err
	}
	_, err := s.exec(ctx, insertRule, s.ruleArgs(r))
	return err
}

// RevokePolicyRule ends a person's rule.
func (s *Store) RevokePolicyRule(ctx context.Context, id int64) error {
	n, err := s.exec(ctx, `
		update policy_rule set revoked_at = now(), updated_at = now()
		where workspace_id = @ws and id = @id and revoked_at is null and origin = 'person'`, pgx.NamedArgs{"id": id})
	if err == nil && n == 0 {
		err = fault.New(fault.NotFound, "there is no rule %d", id).WithHint("'pml policy' lists them; those of the configuration are changed there")
	}
	return err
}

const approvalColumns = `id, workflow_id, kind, status, requested, decision, created_at, expires_at, decided_at`

func scanApproval(row pgx.CollectableRow) (policy.Approval, error) {
	var a policy.Approval
	var requested, decision json.RawMessage
	var expires, decided *time.Time
	if err := row.Scan(&a.ID, &a.WorkflowID, &a.Kind, &a.Status, &requested, &decision, &a.CreatedAt, &expires, &decided); err != nil {
		return a, err
	}
	a.ExpiresAt, a.DecidedAt = deref(expires), deref(decided)
	return a, errors.Join(unmarshal(requested, &a.Requested), unmarshal(decision, &a.Answer))
}

// AddApproval stores a question and, in the same transaction, that its run waits:
// as status says, which is not changed where it is empty.
func (s *Store) AddApproval(ctx context.Context, a policy.Approval, status trace.Status) error {
	requested, err := json.Marshal(a.Requested)
	if err != nil {
		return err
	}
	return s.transaction(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.tx.Exec(ctx, `
			insert into approval (workspace_id, id, workflow_id, kind, status, requested, expires_at, created_at)
			values (@ws, @id, @run, @kind, 'pending', @requested, @expires, @created)
			on conflict (workspace_id, id) do nothing`, s.args(pgx.NamedArgs{
			"id": a.ID, "run": a.WorkflowID, "kind": a.Kind, "requested": jsonb(requested),
			"expires": nullTime(a.ExpiresAt), "created": a.CreatedAt,
		}))
		if err != nil || status == "" {
			return err
		}
		return tx.park(ctx, a.WorkflowID, status)
	})
}

// Approval returns one question.
func (s *Store) Approval(ctx context.Context, id uuid.UUID) (policy.Approval, error) {
	a, err := collectOne(ctx, s, `select `+approvalColumns+` from approval where workspace_id = @ws and id = @id`,
		pgx.NamedArgs{"id": id}, scanApproval)
	if errors.Is(err, errNoRow) {
		return a, fault.New(fault.NotFound, "there is no approval %s", id).WithHint("'pml approvals' lists what waits")
	}
	return a, err
}

// RunApprovals returns all questions about a run, the oldest first.
func (s *Store) RunApprovals(ctx context.Context, run uuid.UUID) ([]policy.Approval, error) {
	return collect(ctx, s, `
		select `+approvalColumns+` from approval where workspace_id = @ws and workflow_id = @run order by created_at, id`,
		pgx.NamedArgs{"run": run}, scanApproval)
}

// PendingApprovals returns the questions that wait, the oldest first.
func (s *Store) PendingApprovals(ctx context.Context) ([]policy.Approval, error) {
	return collect(ctx, s, `
		select `+approvalColumns+` from approval a where workspace_id = @ws and status = 'pending'
		  and exists (select from workflow_execution e where e.workspace_id = @ws and e.workflow_id = a.workflow_id
		    and e.status in ('running', 'awaiting_approval', 'suspended'))
		order by created_at, id limit 1000`,
		nil, scanApproval)
}

// DecideApproval writes an answer and the rules that it leaves behind. Only the
// first answer to a question counts: a later one is a fault that says what was
// decided.
func (s *Store) DecideApproval(ctx context.Context, id uuid.UUID, answer policy.Answer) (policy.Approval, error) {
	decision, err := json.Marshal(answer)
	if err != nil {
		return policy.Approval{}, err
	}
	status := policy.Rejected
	if answer.Approved {
		status = policy.Approved
	}
	var decided []policy.Approval
	err = s.transaction(ctx, func(ctx context.Context, tx *Tx) error {
		rows, err := tx.tx.Query(ctx, `
			update approval set status = @status, decision = @decision, decided_by = @by, reason = @reason, decided_at = now(), updated_at = now()
			where workspace_id = @ws and id = @id and status = 'pending' and (expires_at is null or expires_at > @now)
			returning `+approvalColumns, s.args(pgx.NamedArgs{
			"id": id, "status": status, "decision": jsonb(decision), "by": text(answer.By), "reason": text(answer.Reason), "now": s.now(),
		}))
		if err != nil {
			return err
		}
		if decided, err = pgx.CollectRows(rows, scanApproval); err != nil || len(decided) == 0 {
			return err
		}
		rules, err := answer.Rules(decided[0].Requested)
		if err != nil {
			return err
		}
		for _, r := range rules {
			if _, err := tx.tx.Exec(ctx, insertRule, s.ruleArgs(r)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || len(decided) == 1 {
		return first(decided), err
	}
	a, err := s.Approval(ctx, id)
	if err != nil {
		return a, err
	}
	return a, alreadyDecided(a)
}

func first(list []policy.Approval) policy.Approval {
	if len(list) == 0 {
		return policy.Approval{}
	}
	return list[0]
}

func alreadyDecided(a policy.Approval) error {
	if a.Status == policy.Pending || a.Status == policy.Expired {
		return fault.New(fault.ApprovalExpired, "the approval %s expired at %s", a.ID, a.ExpiresAt.UTC().Format(time.RFC3339)).
			WithHint("send the program again")
	}
	return fault.New(fault.InvalidInput, "the approval %s is %s already", a.ID, a.Status)
}

// ExpireApprovals ends the questions whose time is over and returns them.
func (s *Store) ExpireApprovals(ctx context.Context, now time.Time) ([]policy.Approval, error) {
	return collect(ctx, s, `
		update approval set status = 'expired', decided_at = @now, updated_at = now()
		where workspace_id = @ws and status = 'pending' and expires_at <= @now
		returning `+approvalColumns, pgx.NamedArgs{"now": now}, scanApproval)
}
