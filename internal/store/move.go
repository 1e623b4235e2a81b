package store

import (
	"context"
	"errors"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/pml-run/pml/internal/fault"
)

// Move copies the workspace to the empty PostgreSQL at url, from a laptop to a
// server for instance. What is here stays.
func (s *Store) Move(ctx context.Context, url string, opts ImportOptions) error {
	if url == "" {
		return fault.New(fault.InvalidInput, "say where to: the URL of a PostgreSQL")
	}
	target, err := Open(ctx, Options{URL: url, Logger: s.log, Workspace: s.workspace, QueryTimeout: s.timeout})
	if err != nil {
		return err
	}
	defer target.Close()
	r, w := io.Pipe()
	group, ctx := errgroup.WithContext(ctx)
	var sent, received error
	group.Go(func() error {
		sent = s.Export(ctx, w)
		_ = w.CloseWithError(sent)
		return sent
	})
	group.Go(func() error {
		received = target.Import(ctx, r, opts)
		_ = r.CloseWithError(received) // ends an export that nobody reads any more
		return received
	})
	_ = group.Wait()
	if sent != nil && !errors.Is(sent, received) {
		return sent // the import has failed because of it
	}
	return received
}
