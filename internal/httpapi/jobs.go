package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Job is a kind of background job with what became of the latest.
type Job struct {
	Kind         string     `json:"kind"`
	About        string     `json:"about"`
	EverySeconds float64    `json:"every_seconds"`
	Outcome      string     `json:"outcome"` // never, waiting, running, ok or failed
	Detail       string     `json:"detail,omitempty"`
	LastRun      *time.Time `json:"last_run,omitempty"`
	DurationMS   float64    `json:"duration_ms"`
	NextRun      time.Time  `json:"next_run"`
}

// JobBackend does what the API offers about background jobs.
type JobBackend interface {
	Jobs(ctx context.Context) ([]Job, error)
	// RunJob has a job done now and waits for its end. That it failed is no error.
	RunJob(ctx context.Context, kind string) (Job, error)
}

func (s *Server) addJobs(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/jobs", s.handle(func(r *http.Request) (any, error) { return s.backend.Jobs(r.Context()) }))
	mux.HandleFunc("POST /v1/jobs/{kind}", s.handle(func(r *http.Request) (any, error) {
		return s.backend.RunJob(r.Context(), r.PathValue("kind"))
	}))
}

// Jobs lists the kinds of background jobs.
func (c *Client) Jobs(ctx context.Context) ([]Job, error) {
	var out []Job
	return out, c.call(ctx, http.MethodGet, "/v1/jobs", nil, &out)
}

// RunJob has a job done now and waits for its end.
func (c *Client) RunJob(ctx context.Context, kind string) (Job, error) {
	var out Job
	return out, c.call(ctx, http.MethodPost, "/v1/jobs/"+url.PathEscape(kind), nil, &out)
}
