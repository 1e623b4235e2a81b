package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/policy"
)

// ControlBackend does what the API offers about approvals and rules.
type ControlBackend interface {
	Approvals(ctx context.Context) ([]policy.Approval, error)
	// Approval finds a question by its id, or that of the run that waits for it.
	Approval(ctx context.Context, id uuid.UUID) (policy.Approval, error)
	Decide(ctx context.Context, id uuid.UUID, answer policy.Answer) (policy.Approval, error)
	Rules(ctx context.Context) ([]policy.Rule, error)
	AddRule(ctx context.Context, r policy.Rule) error
	RevokeRule(ctx context.Context, id int64) error
}

// ControlHandler serves only what a person decides with: approvals and rules. It
// belongs behind a token.
func (s *Server) ControlHandler() http.Handler {
	mux := http.NewServeMux()
	s.addControl(mux)
	return mux
}

func (s *Server) addControl(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/approvals", s.handle(func(r *http.Request) (any, error) { return s.backend.Approvals(r.Context()) }))
	mux.HandleFunc("GET /v1/approvals/{id}", s.handle(func(r *http.Request) (any, error) {
		id, err := pathID(r)
		if err != nil {
			return nil, err
		}
		return s.backend.Approval(r.Context(), id)
	}))
	mux.HandleFunc("POST /v1/approvals/{id}", s.handle(s.decide))
	mux.HandleFunc("GET /v1/policy", s.handle(func(r *http.Request) (any, error) { return s.backend.Rules(r.Context()) }))
	mux.HandleFunc("POST /v1/policy", s.handle(s.addRule))
	mux.HandleFunc("DELETE /v1/policy/{id}", s.handle(s.revokeRule))
}

func (s *Server) decide(r *http.Request) (any, error) {
	id, err := pathID(r)
	if err != nil {
		return nil, err
	}
	var answer policy.Answer
	if err := readJSON(r, &answer); err != nil {
		return nil, err
	}
	switch answer.Scope {
	case "", policy.Once, policy.ForWorkflow, policy.Always:
	default:
		return nil, fault.New(fault.InvalidInput, "scope is %q", answer.Scope).WithHint("use once, workflow or always")
	}
	if answer.By == "" {
		answer.By = "http"
	}
	return s.backend.Decide(r.Context(), id, answer)
}

func (s *Server) addRule(r *http.Request) (any, error) {
	var rule policy.Rule
	if err := readJSON(r, &rule); err != nil {
		return nil, err
	}
	return struct{}{}, s.backend.AddRule(r.Context(), rule)
}

func (s *Server) revokeRule(r *http.Request) (any, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return nil, fault.New(fault.InvalidInput, "%q is no number of a rule", r.PathValue("id"))
	}
	return struct{}{}, s.backend.RevokeRule(r.Context(), id)
}

func pathID(r *http.Request) (uuid.UUID, error) {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return id, fault.New(fault.InvalidInput, "%q is not an id", r.PathValue("id"))
	}
	return id, nil
}

// Approvals lists what waits for a person.
func (c *Client) Approvals(ctx context.Context) ([]policy.Approval, error) {
	var out []policy.Approval
	err := c.call(ctx, http.MethodGet, "/v1/approvals", nil, &out)
	return out, err
}

// Decide gives a person's answer.
func (c *Client) Decide(ctx context.Context, id string, answer policy.Answer) (policy.Approval, error) {
	var out policy.Approval
	err := c.call(ctx, http.MethodPost, "/v1/approvals/"+url.PathEscape(id), answer, &out)
	return out, err
}

// Rules lists the rules in force.
func (c *Client) Rules(ctx context.Context) ([]policy.Rule, error) {
	var out []policy.Rule
	err := c.call(ctx, http.MethodGet, "/v1/policy", nil, &out)
	return out, err
}

// AddRule keeps a rule.
func (c *Client) AddRule(ctx context.Context, r policy.Rule) error {
	return c.call(ctx, http.MethodPost, "/v1/policy", r, nil)
}

// RevokeRule ends a rule.
func (c *Client) RevokeRule(ctx context.Context, id int64) error {
	return c.call(ctx, http.MethodDelete, "/v1/policy/"+strconv.FormatInt(id, 10), nil, nil)
}
