package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pml-run/pml/internal/daemon"
	"github.com/pml-run/pml/internal/httpapi"
)

// options are the gateway's for this command line.
func (a *app) options(config string) (daemon.Options, error) {
	binary, err := os.Executable()
	if err != nil {
		return daemon.Options{}, fmt.Errorf("find our own binary: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return daemon.Options{}, fmt.Errorf("find the working folder: %w", err)
	}
	return daemon.Options{
		Home: a.home, Config: config, Dir: dir, DatabaseURL: a.database, Deno: a.env.Getenv("PML_DENO"), ToolDirs: a.toolDirs(),
		Binary: binary, Version: a.env.Version, Logger: a.logger, Getenv: a.env.Getenv,
	}, nil
}

// withGateway calls f with a client of the data folder's gateway. Where none
// runs, one is started for as long as f takes.
func (a *app) withGateway(ctx context.Context, config string, f func(*httpapi.Client) error) error {
	o, err := a.options(config)
	if err != nil {
		return err
	}
	o.Brief = true
	g, socket, err := acquire(ctx, o, reachable)
	if err != nil {
		return err
	}
	if g == nil {
		if config != "" {
			a.logger.WarnContext(ctx, "a gateway is running already; its own configuration applies")
		}
		return withClient(socket, f)
	}
	defer g.Stop()
	if err := g.Ready(ctx); err != nil {
		return err
	}
	return withClient(socket, f)
}

func withClient(socket string, f func(*httpapi.Client) error) error {
	client := httpapi.NewClient(socket)
	defer client.Close()
	return f(client)
}

// How long to look for a gateway: longer than one may take to stop, during which
// it owns the folder and serves no more.
const (
	acquireTries = 100
	acquirePause = 200 * time.Millisecond
)

// acquire starts a gateway for the data folder, or, where another process has
// one, returns nil and the socket that use has accepted. It tries again while the
// owner is coming up or going down.
func acquire(ctx context.Context, o daemon.Options, use func(ctx context.Context, socket string) error) (*daemon.Gateway, string, error) {
	var err error
	for range acquireTries {
		g := daemon.New(o)
		if err = g.Start(ctx); err == nil {
			return g, g.Socket(), nil
		}
		owned, ok := errors.AsType[*daemon.OwnedError](err)
		if !ok {
			return nil, "", err
		}
		useErr := use(ctx, owned.Socket)
		if useErr == nil {
			return nil, owned.Socket, nil
		}
		err = errors.Join(err, useErr)
		select {
		case <-ctx.Done():
			return nil, "", ctx.Err()
		case <-time.After(acquirePause):
		}
	}
	return nil, "", err
}

// reachable accepts a gateway that answers.
func reachable(ctx context.Context, socket string) error {
	client := httpapi.NewClient(socket)
	defer client.Close()
	return client.Ping(ctx)
}
