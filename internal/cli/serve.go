package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/pml-run/pml/internal/daemon"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/httpapi"
	"github.com/pml-run/pml/internal/relay"
)

type serveCommand struct {
	HTTP   string `name:"http" help:"Serve streamable HTTP at this address instead of stdio, e.g. 127.0.0.1:7420." placeholder:"ADDR"`
	Config string `help:"Configuration file; default pml.json or .mcp.json here, then the user's." placeholder:"FILE"`
}

// Run serves until the client leaves (stdio) or a signal comes (HTTP).
func (c *serveCommand) Run(ctx context.Context, a *app) error {
	o, err := a.options(c.Config)
	if err != nil {
		return err
	}
	o.HTTP = c.HTTP
	if c.HTTP == "" {
		return c.stdio(ctx, a, o)
	}
	// A gateway that a short command has started is waited for; one that stays is an error.
	g, _, err := acquire(ctx, o, func(context.Context, string) error { return errServed })
	if err != nil {
		return err
	}
	defer g.Stop()
	if err := g.Ready(ctx); err != nil {
		return err
	}
	a.logger.InfoContext(ctx, "serving", "address", c.HTTP)
	<-ctx.Done()
	return nil
}

// stdio serves one client. Of the processes that share a data folder one is the
// gateway and the others pass their client's messages on to it; when it ends,
// another becomes the gateway.
func (c *serveCommand) stdio(ctx context.Context, a *app, o daemon.Options) error {
	own := &ownGateway{options: o}
	defer own.stop()
	connect := func(ctx context.Context) (io.ReadWriteCloser, error) { return own.connect(ctx) }
	return relay.Run(ctx, a.env.Stdin, a.env.Stdout, connect, a.logger)
}

// errServed refuses a second HTTP gateway on a data folder.
var errServed = fault.New(fault.Unavailable, "another gateway serves this data folder").
	WithHint("end it, or choose another folder with --home")

// ownGateway is the gateway in this process, if it has become one.
type ownGateway struct {
	options daemon.Options
	gateway *daemon.Gateway
}

// connect reaches the folder's gateway, becoming it where there is none.
func (o *ownGateway) connect(ctx context.Context) (io.ReadWriteCloser, error) {
	if o.gateway != nil {
		return httpapi.NewClient(o.gateway.Socket()).Session(ctx)
	}
	var session io.ReadWriteCloser
	join := func(ctx context.Context, socket string) error {
		var err error
		session, err = httpapi.NewClient(socket).Session(ctx)
		return err
	}
	g, socket, err := acquire(ctx, o.options, join)
	if err != nil || g == nil {
		return session, err
	}
	o.gateway = g
	return httpapi.NewClient(socket).Session(ctx)
}

func (o *ownGateway) stop() {
	if o.gateway != nil {
		o.gateway.Stop()
	}
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(a *app) error {
	return a.print(map[string]string{"version": a.env.Version}, func(w io.Writer) { fmt.Fprintln(w, a.env.Version) })
}

// shortTime is how times are listed: the day is left out for today.
func shortTime(t, now time.Time) string {
	t = t.Local()
	if t.Format(time.DateOnly) == now.Local().Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}
