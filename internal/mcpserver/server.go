package mcpserver

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/search"
	"github.com/pml-run/pml/internal/telemetry"
)

// Executor carries out what pml_execute is asked for.
type Executor interface {
	Execute(ctx context.Context, req execute.Request) *execute.Answer
}

// ApprovalReader finds the questions that clients are to ask their persons.
type ApprovalReader interface {
	Approval(ctx context.Context, id uuid.UUID) (policy.Approval, error)
}

// ResultReader answers pml_get_task_result.
type ResultReader interface {
	Get(ctx context.Context, req execute.ResultRequest) *execute.ResultAnswer
}

// Finder answers pml_discover.
type Finder interface {
	Discover(ctx context.Context, req search.Request) (*search.Answer, error)
}

// Options of a Server.
type Options struct {
	Version string
	Logger  *slog.Logger
	// Key signs what clients give back with a person's answer. Gateways of one store
	// must have the same; it is asked for when it is needed.
	Key func() []byte
	// Resources are what clients may read beside the tools; nil for none.
	Resources ResourceReader
}

// Server is PML's MCP server. One serves any number of sessions.
type Server struct {
	executor Executor
	results  ResultReader
	finder   Finder
	logger   *slog.Logger
	key      func() []byte
	mcp      *mcp.Server

	approvals ApprovalReader

	mu      sync.Mutex
	streams map[*stream]bool // the sessions over streams
	closed  bool
}

// maxMessage is the largest message in bytes that a client may send: the largest
// args, a program, and room for their encoding.
const maxMessage = 32 << 20

// sessionTimeout ends a stateful HTTP session that nobody uses.
const sessionTimeout = 30 * time.Minute

// firstStateless is the first protocol revision without sessions.
const firstStateless = "2026-07-28"

// New makes the server. It panics on a malformed tool definition, which only a
// programmer can cause.
func New(executor Executor, results ResultReader, finder Finder, approvals ApprovalReader, o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{executor: executor, results: results, finder: finder, approvals: approvals, logger: o.Logger.With("system", "mcpserver"), key: o.Key, streams: map[*stream]bool{}}
	sdk := telemetry.Warnings(s.logger) // it tells of every session at the level of information, and a request may be one
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "pml", Title: "PML: procedural memory", Version: o.Version}, &mcp.ServerOptions{
		Instructions: instructions,
		Logger:       sdk,
		Capabilities: capabilities(o),
	})
	s.mcp.AddTool(discoverTool(), s.discover)
	s.mcp.AddTool(executeTool(), s.execute)
	s.mcp.AddTool(resultTool(), s.taskResult)
	s.addResources(o.Resources)
	return s
}

// Handler serves streamable HTTP for both kinds of protocol revision: those with
// sessions and, routed by the version that each request names, those without.
func (s *Server) Handler() http.Handler {
	sdk := telemetry.Warnings(s.logger)
	get := func(*http.Request) *mcp.Server { return s.mcp }
	stateful := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
		Logger: sdk, SessionTimeout: sessionTimeout, MaxRequestBodyBytes: maxMessage,
	})
	stateless := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
		Logger: sdk, Stateless: true, MaxRequestBodyBytes: maxMessage,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Compare(r.Header.Get("Mcp-Protocol-Version"), firstStateless) >= 0 {
			stateless.ServeHTTP(w, r)
			return
		}
		stateful.ServeHTTP(w, r)
	})
}
