package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/trace"
)

// maxBody is the largest request body in bytes; a database import has no limit.
const maxBody = 32 << 20

// RunFilter narrows a list of runs.
type RunFilter struct {
	Status string
	Query  string // words of the intent
	Limit  int
	Offset int
}

// Backend does what the API offers.
type Backend interface {
	// CallTool calls one of PML's own MCP tools and returns its answer.
	CallTool(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error)
	Runs(ctx context.Context, f RunFilter) ([]trace.Run, error)
	Trace(ctx context.Context, id uuid.UUID) (trace.Trace, error)
	CancelRun(ctx context.Context, id uuid.UUID) error
	Servers(ctx context.Context) (any, error)
	Doctor(ctx context.Context) (any, error)
	Export(ctx context.Context, w io.Writer) error
	Import(ctx context.Context, r io.Reader, force bool) error
	Move(ctx context.Context, url string) error
	CapabilityBackend
	ControlBackend
	CacheBackend
	JobBackend
	GraphBackend
	// ServeStream serves one MCP session over a pair of streams.
	ServeStream(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error
}

// Server answers the API.
type Server struct {
	backend Backend
	logger  *slog.Logger
}

// NewServer makes a Server over its backend.
func NewServer(backend Backend, logger *slog.Logger) *Server {
	return &Server{backend: backend, logger: logger.With("system", "httpapi")}
}

// Handler serves the JSON API. It belongs behind a unix socket or a token.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/tools/{name}", s.handle(s.callTool))
	mux.HandleFunc("GET /v1/runs", s.handle(s.runs))
	mux.HandleFunc("GET /v1/runs/{id}", s.handle(s.trace))
	mux.HandleFunc("POST /v1/runs/{id}/cancel", s.handle(s.cancelRun))
	mux.HandleFunc("GET /v1/ping", s.handle(func(*http.Request) (any, error) { return struct{}{}, nil }))
	mux.HandleFunc("GET /v1/servers", s.handle(func(r *http.Request) (any, error) { return s.backend.Servers(r.Context()) }))
	mux.HandleFunc("GET /v1/doctor", s.handle(func(r *http.Request) (any, error) { return s.backend.Doctor(r.Context()) }))
	mux.HandleFunc("POST /v1/db/move", s.handle(s.move))
	mux.HandleFunc("POST /v1/db/import", s.handle(s.importDB))
	mux.HandleFunc("GET /v1/db/export", s.exportDB)
	mux.HandleFunc("GET /v1/stdio", s.stdio)
	s.addCapabilities(mux)
	s.addControl(mux)
	s.addCache(mux)
	s.addJobs(mux)
	s.addGraph(mux)
	return mux
}

// handle answers with the JSON of what f returns; an error becomes a fault with
// the HTTP status of its code, a panic an internal one with the stack in the log.
func (s *Server) handle(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				s.logger.ErrorContext(r.Context(), "panic in a handler", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				writeFault(w, fault.New(fault.Internal, "an internal error ended the request"))
			}
		}()
		v, err := f(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		writeJSON(w, http.StatusOK, v)
	}
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		s.logger.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "error", err)
		f = fault.New(fault.Internal, "%v", err)
	}
	writeFault(w, f)
}

func (s *Server) callTool(r *http.Request) (any, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return nil, fault.New(fault.InvalidInput, "read request: %v", err)
	}
	return s.backend.CallTool(r.Context(), r.PathValue("name"), body)
}

func (s *Server) runs(r *http.Request) (any, error) {
	q := r.URL.Query()
	limit, err := number(q.Get("limit"), 20)
	if err != nil {
		return nil, err
	}
	offset, err := number(q.Get("offset"), 0)
	if err != nil {
		return nil, err
	}
	return s.backend.Runs(r.Context(), RunFilter{Status: q.Get("status"), Query: q.Get("query"), Limit: limit, Offset: offset})
}

func number(s string, missing int) (int, error) {
	if s == "" {
		return missing, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, fault.New(fault.InvalidInput, "%q is no count", s)
	}
	return n, nil
}

func runID(r *http.Request) (uuid.UUID, error) {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return id, fault.New(fault.InvalidInput, "%q is no workflow id", r.PathValue("id")).WithHint("pml trace ls lists them")
	}
	return id, nil
}

func (s *Server) trace(r *http.Request) (any, error) {
	id, err := runID(r)
	if err != nil {
		return nil, err
	}
	return s.backend.Trace(r.Context(), id)
}

func (s *Server) cancelRun(r *http.Request) (any, error) {
	id, err := runID(r)
	if err != nil {
		return nil, err
	}
	return struct{}{}, s.backend.CancelRun(r.Context(), id)
}

func (s *Server) move(r *http.Request) (any, error) {
	var in struct {
		URL string `json:"url"`
	}
	if err := readJSON(r, &in); err != nil {
		return nil, err
	}
	return struct{}{}, s.backend.Move(r.Context(), in.URL)
}

func (s *Server) importDB(r *http.Request) (any, error) {
	return struct{}{}, s.backend.Import(r.Context(), r.Body, r.URL.Query().Get("force") == "true")
}

// exportTrailer tells the reader of an export whether it is whole: the status
// line has long been sent when a table cannot be read.
const exportTrailer = "Pml-Export"

func (s *Server) exportDB(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Trailer", exportTrailer)
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := s.backend.Export(r.Context(), w); err != nil {
		s.logger.ErrorContext(r.Context(), "export ended early", "error", err)
		w.Header().Set(exportTrailer, err.Error())
		return
	}
	w.Header().Set(exportTrailer, "complete")
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		writeFault(w, fault.New(fault.Internal, "encode answer: %v", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the client left; there is nobody to tell
}

func writeFault(w http.ResponseWriter, f *fault.Error) {
	writeJSON(w, statusOf(f.Code), map[string]*fault.Error{"error": f})
}

func statusOf(code fault.Code) int {
	switch code {
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Expired:
		return http.StatusGone
	case fault.Unavailable, fault.StorageUnavailable, fault.UpstreamUnavailable:
		return http.StatusServiceUnavailable
	case fault.Internal:
		return http.StatusInternalServerError
	case fault.Denied:
		return http.StatusForbidden
	default:
		return http.StatusBadRequest
	}
}
