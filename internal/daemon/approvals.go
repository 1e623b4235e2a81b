package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/store"
)

// Approvals lists what waits for a person.
func (g *Gateway) Approvals(ctx context.Context) ([]policy.Approval, error) {
	p, err := g.await(ctx)
	if err != nil {
		return nil, asFault(err)
	}
	return p.store.PendingApprovals(ctx)
}

// Approval returns one question. The id of a run stands for the question that the
// run waits for.
func (g *Gateway) Approval(ctx context.Context, id uuid.UUID) (policy.Approval, error) {
	p, err := g.await(ctx)
	if err != nil {
		return policy.Approval{}, asFault(err)
	}
	of, err := p.store.RunApprovals(ctx, id)
	if err != nil {
		return policy.Approval{}, err
	}
	for _, a := range of {
		if a.Status == policy.Pending {
			return a, nil
		}
	}
	return p.store.Approval(ctx, id)
}

// Decide gives a person's answer.
func (g *Gateway) Decide(ctx context.Context, id uuid.UUID, answer policy.Answer) (policy.Approval, error) {
	a, err := g.Approval(ctx, id)
	if err != nil {
		return a, err
	}
	p, err := g.await(ctx)
	if err != nil {
		return a, asFault(err)
	}
	return p.engine.Decide(ctx, a.ID, answer)
}

// signingKey is nil while the parts are not up.
func (g *Gateway) signingKey() []byte {
	p, err := g.await(g.ctx)
	if err != nil {
		return nil
	}
	return p.signing
}

// readSigningKey reads the key, or makes it where there is none yet.
func (p *parts) readSigningKey(ctx context.Context) error {
	text, err := p.store.Setting(ctx, store.SigningKey)
	if fault.CodeOf(err) == fault.NotFound {
		fresh := make([]byte, 32)
		_, _ = rand.Read(fresh) // never fails
		text, err = p.store.SettingOnce(ctx, store.SigningKey, hex.EncodeToString(fresh))
	}
	if err != nil {
		return err
	}
	p.signing, err = hex.DecodeString(text)
	return err
}
