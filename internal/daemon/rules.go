package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/store"
)

// rules join those of the configuration with those that persons have made.
type rules struct {
	store  *store.Store
	config *configuration
	logger *slog.Logger

	current atomic.Pointer[policy.Policy]
}

var _ execute.Rules = (*rules)(nil)

// Policy is the policy in force.
func (r *rules) Policy() *policy.Policy { return r.current.Load() }

// Changed takes in what has changed. What cannot be read leaves the old policy in force.
func (r *rules) Changed(ctx context.Context) {
	if err := r.read(ctx); err != nil {
		r.logger.ErrorContext(ctx, "the changed rules are not in force", "error", err)
	}
}

func (r *rules) read(ctx context.Context) error {
	stored, err := r.store.PolicyRules(ctx)
	if err != nil {
		return fmt.Errorf("read the rules: %w", err)
	}
	all, servers, fallback := r.config.permissions()
	r.current.Store(policy.New(append(all, stored...), servers, fallback))
	return nil
}

// permissions are the rules of the configuration, what it sets for whole servers,
// and its default.
func (c *configuration) permissions() ([]policy.Rule, map[string]policy.Effect, policy.Default) {
	now := c.current()
	var out []policy.Rule
	for effect, patterns := range map[policy.Effect][]string{
		policy.Allow: now.Permissions.Allow, policy.Ask: now.Permissions.Ask, policy.Deny: now.Permissions.Deny,
	} {
		for _, p := range patterns {
			out = append(out, policy.Rule{Pattern: p, Effect: effect, Origin: policy.FromConfig})
		}
	}
	servers := map[string]policy.Effect{}
	for name, s := range now.Servers {
		if s.Approval != "" {
			servers[name] = policy.Effect(s.Approval)
		}
	}
	return out, servers, policy.Default(now.Permissions.Default)
}

// approvals say how persons are asked.
func (c *configuration) approvals() execute.ApprovalOptions {
	a := c.current().Approvals
	o := execute.ApprovalOptions{Hold: a.Hold(), Expire: a.Expire(), AgentRelay: a.AllowAgentRelay}
	if o.Hold == 0 {
		o.Hold = -1 // none at all, which the engine tells from the default
	}
	return o
}

// Rules lists the rules in force: those of the configuration, then those of persons.
func (g *Gateway) Rules(ctx context.Context) ([]policy.Rule, error) {
	p, err := g.await(ctx)
	if err != nil {
		return nil, asFault(err)
	}
	stored, err := p.store.PolicyRules(ctx)
	all, _, _ := p.config.permissions()
	return append(all, stored...), err
}

// AddRule keeps a person's rule.
func (g *Gateway) AddRule(ctx context.Context, r policy.Rule) error {
	p, err := g.await(ctx)
	if err != nil {
		return asFault(err)
	}
	r.Origin = policy.FromPerson
	if err := p.store.AddPolicyRule(ctx, r); err != nil {
		return err
	}
	return p.rules.read(ctx)
}

// RevokeRule ends a person's rule.
func (g *Gateway) RevokeRule(ctx context.Context, id int64) error {
	p, err := g.await(ctx)
	if err != nil {
		return asFault(err)
	}
	if err := p.store.RevokePolicyRule(ctx, id); err != nil {
		return err
	}
	return p.rules.read(ctx)
}
