package cli

import (
	"context"
	"fmt"
	"io"
	"sync"
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
	// After a signal the session goes on until our gateway, if we are it, has answered.
	session, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	own := &ownGateway{options: o, leave: end}
	defer own.stop()
	defer context.AfterFunc(ctx, own.stop)()
	connect := func(ctx context.Context) (io.ReadWriteCloser, error) { return own.connect(ctx) }
	return relay.Run(session, a.env.Stdin, a.env.Stdout, connect, a.logger)
}

// errServed refuses a second HTTP gateway on a data folder.
var errServed = fault.New(fault.Unavailable, "another gateway serves this data folder").
	WithHint("end it, or choose another folder with --home")

// ownGateway is the gateway in this process, if it has become one.
type ownGateway struct {
	options daemon.Options
	leave   context.CancelFunc // ends the client's session

	mu      sync.Mutex
	gateway *daemon.Gateway
	stopped bool
}

// connect reaches the folder's gateway, becoming it where there is none. After stop it
// ends the client's session.
func (o *ownGateway) connect(ctx context.Context) (io.ReadWriteCloser, error) {
	own, stopped := o.state()
	if stopped {
		o.leave()
		return nil, ctx.Err()
	}
	if own != nil {
		return httpapi.NewClient(own.Socket()).Session(ctx)
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
	o.mu.Lock()
	o.gateway = g
	o.mu.Unlock()
	return httpapi.NewClient(socket).Session(ctx)
}

func (o *ownGateway) state() (own *daemon.Gateway, stopped bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gateway, o.stopped
}

// stop stops the gateway in this process. The client's session ends with the answers
// of the gateway or, where that is another's, at once.
func (o *ownGateway) stop() {
	o.mu.Lock()
	o.stopped = true
	own := o.gateway
	o.mu.Unlock()
	if own == nil {
		o.leave()
		return
	}
	own.Stop()
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
