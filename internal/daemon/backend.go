package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/httpapi"
	"github.com/pml-run/pml/internal/search"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/trace"
)

// Execute carries out a request of pml_execute.
func (g *Gateway) Execute(ctx context.Context, req execute.Request) *execute.Answer {
	p, err := g.await(ctx)
	if err != nil {
		return &execute.Answer{Status: execute.StatusFailed, Error: asFault(err)}
	}
	return p.engine.Execute(ctx, req)
}

// Get answers a request of pml_get_task_result.
func (g *Gateway) Get(ctx context.Context, req execute.ResultRequest) *execute.ResultAnswer {
	p, err := g.await(ctx)
	if err != nil {
		return &execute.ResultAnswer{Status: execute.StatusFailed, Error: asFault(err)}
	}
	return p.results.Get(ctx, req)
}

// Discover answers a request of pml_discover.
func (g *Gateway) Discover(ctx context.Context, req search.Request) (*search.Answer, error) {
	p, err := g.await(ctx)
	if err != nil {
		return nil, asFault(err)
	}
	return p.finder.Discover(ctx, req)
}

// asFault is for errors of start-up, which the person at the keyboard can mend:
// they are shown as they are.
func asFault(err error) *fault.Error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	return fault.New(fault.Unavailable, "the gateway did not start: %v", err).WithHint("run pml doctor")
}

// CallTool calls one of PML's own tools for the HTTP API.
func (g *Gateway) CallTool(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	answer, err := g.mcp.Call(ctx, name, args)
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// Runs lists runs, the latest first.
func (g *Gateway) Runs(ctx context.Context, f httpapi.RunFilter) ([]trace.Run, error) {
	p, err := g.await(ctx)
	if err != nil {
		return nil, asFault(err)
	}
	return p.store.Runs(ctx, store.RunFilter{Status: trace.Status(f.Status), Query: f.Query, Limit: f.Limit, Offset: f.Offset})
}

// Trace reads what a run did; for one in progress, what it did so far.
func (g *Gateway) Trace(ctx context.Context, id uuid.UUID) (trace.Trace, error) {
	p, err := g.await(ctx)
	if err != nil {
		return trace.Trace{}, asFault(err)
	}
	if run, calls, ok := p.engine.Active(id); ok {
		return trace.Trace{Run: run, Calls: calls}, nil
	}
	t, err := p.store.Trace(ctx, id)
	if fault.CodeOf(err) != fault.NotFound {
		return t, err
	}
	run, err := p.store.Run(ctx, id) // an interrupted run has no trace, but a row and a journal
	if err != nil {
		return t, err
	}
	calls, err := p.store.Calls(ctx, id)
	return trace.Trace{Run: run, Calls: calls}, err
}

// CancelRun ends a run in progress.
func (g *Gateway) CancelRun(ctx context.Context, id uuid.UUID) error {
	p, err := g.await(ctx)
	if err != nil {
		return asFault(err)
	}
	if !p.engine.Cancel(id) {
		return fault.New(fault.NotFound, "no run %s is in progress here", id).
			WithHint("'pml trace ls' lists the runs; one that waits for a person ends with 'pml reject %s'", id)
	}
	return nil
}

// Servers describes the servers behind the gateway.
func (g *Gateway) Servers(ctx context.Context) (any, error) {
	p, err := g.await(ctx)
	if err != nil {
		return nil, asFault(err)
	}
	return p.upstream.States(), nil
}

// Export writes the whole database to w.
func (g *Gateway) Export(ctx context.Context, w io.Writer) error {
	p, err := g.await(ctx)
	if err != nil {
		return asFault(err)
	}
	return p.store.Export(ctx, w)
}

// Import reads an export.
func (g *Gateway) Import(ctx context.Context, r io.Reader, force bool) error {
	p, err := g.await(ctx)
	if err != nil {
		return asFault(err)
	}
	return p.store.Import(ctx, r, store.ImportOptions{Replace: force})
}

// Move copies the database to another Postgres.
func (g *Gateway) Move(ctx context.Context, url string) error {
	p, err := g.await(ctx)
	if err != nil {
		return asFault(err)
	}
	return p.store.Move(ctx, url, store.ImportOptions{})
}
