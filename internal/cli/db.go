package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pml-run/pml/internal/httpapi"
)

type dbCommand struct {
	Export dbExportCommand `cmd:"" help:"Write the whole database to a file."`
	Import dbImportCommand `cmd:"" help:"Read an export into an empty database."`
	Move   dbMoveCommand   `cmd:"" help:"Copy the database to a Postgres with pgvector."`
}

type dbExportCommand struct {
	File string `arg:"" help:"File to write; - is stdout."`
}

// Run exports. The file appears whole or not at all.
func (c *dbExportCommand) Run(ctx context.Context, a *app) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		if c.File == "-" {
			return client.Export(ctx, a.env.Stdout)
		}
		partial := c.File + ".partial"
		if err := exportTo(ctx, client, partial); err != nil {
			return errors.Join(err, os.Remove(partial))
		}
		if err := os.Rename(partial, c.File); err != nil {
			return fmt.Errorf("name the export: %w", err)
		}
		return a.done("exported to " + c.File)
	})
}

func exportTo(ctx context.Context, client *httpapi.Client, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // the file that the user names
	if err != nil {
		return fmt.Errorf("open export: %w", err)
	}
	return errors.Join(client.Export(ctx, f), f.Sync(), f.Close())
}

type dbImportCommand struct {
	File  string `arg:"" help:"File of an export; - is stdin."`
	Force bool   `help:"Import although the database has runs already."`
}

// Run imports.
func (c *dbImportCommand) Run(ctx context.Context, a *app) error {
	in, err := a.open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		if err := client.Import(ctx, in, c.Force); err != nil {
			return err
		}
		return a.done("imported")
	})
}

type dbMoveCommand struct {
	URL string `arg:"" name:"url" help:"postgres:// URL of the destination."`
}

// Run copies the database; the present one stays as it is.
func (c *dbMoveCommand) Run(ctx context.Context, a *app) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		if err := client.Move(ctx, c.URL); err != nil {
			return err
		}
		return a.done("copied; set DATABASE_URL to use it from now on")
	})
}

// done prints the end of a command that has nothing else to say.
func (a *app) done(message string) error {
	return a.print(map[string]string{"status": "done", "message": message}, func(w io.Writer) { fmt.Fprintln(w, message) })
}
