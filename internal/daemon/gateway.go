// Package daemon joins the parts into one gateway: it builds them, starts them in
// the order of their dependencies, stops them in reverse, and is the backend
// behind the MCP server and the HTTP API. It is the only package that knows them all.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/httpapi"
	"github.com/pml-run/pml/internal/mcpserver"
	"github.com/pml-run/pml/internal/telemetry"
)

// Options of a Gateway.
type Options struct {
	Home        string   // data folder
	Config      string   // configuration file; empty: looked for in Dir and the user's folder
	Dir         string   // working folder
	HTTP        string   // address for streamable HTTP; empty: none
	DatabaseURL string   // empty: the embedded database
	Deno        string   // path of Deno; empty: looked for
	ToolDirs    []string // where fetched programs may be; the first is where they are put. Not empty
	Binary      string   // our own executable
	Version     string
	Brief       bool // there for one command: takes up no runs that others have left
	Logger      *slog.Logger
	Getenv      func(string) string
}

// Gateway is one running PML. It accepts sessions as soon as it has started; the
// parts behind come up meanwhile, and requests wait for them.
type Gateway struct {
	options  Options
	logger   *slog.Logger
	registry *prometheus.Registry
	mcp      *mcpserver.Server

	lock    *lock
	servers []*http.Server
	ctx     context.Context // the gateway's life, between Start and Stop
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	stop    sync.Once

	assembled chan struct{} // closed when parts or failure is set
	parts     *parts
	failure   error
}

// Times of a stop: how long calls in flight may take to come to their end, and then
// the answers to their clients.
const (
	drainFor  = 5 * time.Second
	answerFor = 3 * time.Second
)

// New makes a Gateway; Start starts it.
func New(o Options) *Gateway {
	g := &Gateway{options: o, logger: o.Logger, registry: telemetry.NewRegistry(), assembled: make(chan struct{})}
	g.mcp = mcpserver.New(g, g, g, g, mcpserver.Options{Version: o.Version, Logger: o.Logger, Key: g.signingKey, Resources: g})
	return g
}

// Start takes the data folder, listens, and begins to bring the parts up. It
// returns before they are up. A folder that has a gateway gives an *OwnedError.
func (g *Gateway) Start(ctx context.Context) error {
	l, err := acquire(g.options.Home)
	if err != nil {
		return err
	}
	g.lock = l
	g.ctx, g.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := g.listen(ctx); err != nil {
		g.Stop()
		return err
	}
	g.wg.Go(func() {
		defer close(g.assembled)
		g.parts, g.failure = assemble(g.ctx, g.options, g.registry)
		if g.failure != nil {
			g.logger.ErrorContext(g.ctx, "gateway not usable", "error", g.failure)
		}
	})
	return nil
}

// Ready waits until the parts are up, or says why they are not.
func (g *Gateway) Ready(ctx context.Context) error {
	_, err := g.await(ctx)
	return err
}

// Socket is the path on which the HTTP API listens.
func (g *Gateway) Socket() string { return socketPath(g.options.Home) }

// ServeStream serves one MCP session over a pair of streams.
func (g *Gateway) ServeStream(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	return g.mcp.ServeStream(ctx, in, out)
}

// Stop drains the runs, answers who waits for them, stops the parts in reverse order
// and gives the folder up. What has not ended is left to the next gateway.
func (g *Gateway) Stop() {
	g.stop.Do(func() {
		if g.cancel == nil {
			return
		}
		g.drain()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(g.ctx), answerFor)
		defer cancel()
		g.mcp.Close(ctx)
		for _, s := range g.servers {
			if err := s.Shutdown(ctx); err != nil {
				_ = s.Close()
			}
		}
		g.cancel()
		g.wg.Wait()
		if g.parts != nil {
			g.parts.stop()
		}
		g.lock.release()
	})
}

// drain has the runs end or leaves them. Parts that are not up yet will not come.
func (g *Gateway) drain() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(g.ctx), drainFor)
	defer cancel()
	select {
	case <-g.assembled:
		if g.parts != nil {
			g.parts.engine.Drain(ctx)
		}
	default:
		g.cancel()
	}
}

// await returns the parts once they are up.
func (g *Gateway) await(ctx context.Context) (*parts, error) {
	select {
	case <-g.assembled:
		return g.parts, g.failure
	case <-ctx.Done():
		return nil, fault.New(fault.Unavailable, "the gateway is still starting").
			WithHint("try again in a few seconds; the first start fetches packages")
	}
}

// listen opens the unix socket and, where asked for, the HTTP address.
func (g *Gateway) listen(ctx context.Context) error {
	socket, err := listenUnix(ctx, g.Socket())
	if err != nil {
		return err
	}
	api := httpapi.NewServer(g, g.logger).Handler()
	g.serve(socket, api)
	if g.options.HTTP == "" {
		return nil
	}
	handler, err := g.publicHandler()
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	tcp, err := lc.Listen(ctx, "tcp", g.options.HTTP)
	if err != nil {
		return fault.New(fault.Unavailable, "listen on %s: %v", g.options.HTTP, err).WithHint("choose another address with --http")
	}
	g.serve(tcp, handler)
	return nil
}

func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make folder of the socket: %w", err)
	}
	// We hold the folder's lock: a socket that is there belongs to nobody any more.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove old socket: %w", err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("protect socket: %w", err), l.Close())
	}
	return l, nil
}

// publicHandler is what the TCP address serves: MCP, health and metrics, behind
// protection against other origins and, beyond loopback, a bearer token. With a
// token, approvals and rules are there, too.
func (g *Gateway) publicHandler() (http.Handler, error) {
	mux := http.NewServeMux()
	mux.Handle("/mcp", g.mcp.Handler())
	mux.HandleFunc("GET /healthz", g.health)
	mux.Handle("GET /metrics", promhttp.HandlerFor(g.registry, promhttp.HandlerOpts{}))
	token := g.options.Getenv("PML_TOKEN")
	if token == "" && !loopback(g.options.HTTP) {
		return nil, fault.New(fault.InvalidInput, "%s is reachable from other machines and no token is set", g.options.HTTP).
			WithHint("set PML_TOKEN, which clients send as a bearer token, or listen on 127.0.0.1")
	}
	if token != "" { // without one, whoever reaches the address could approve for the person
		mux.Handle("/v1/", httpapi.NewServer(g, g.logger).ControlHandler())
	}
	return http.NewCrossOriginProtection().Handler(requireToken(token, mux)), nil
}

// serve answers on l until Stop. Long answers are normal: only headers have a deadline.
func (g *Gateway) serve(l net.Listener, h http.Handler) {
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return g.ctx },
		ErrorLog:    slog.NewLogLogger(g.logger.Handler(), slog.LevelDebug),
	}
	g.servers = append(g.servers, s)
	g.wg.Go(func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			g.logger.ErrorContext(g.ctx, "server ended", "address", l.Addr().String(), "error", err)
		}
	})
}
