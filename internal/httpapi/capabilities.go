package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
)

// CapabilityFilter narrows a list of capabilities.
type CapabilityFilter struct {
	State  capability.State
	Query  string
	Limit  int
	Offset int
}

// CapabilityDetail is a capability with its history.
type CapabilityDetail struct {
	Capability capability.Capability `json:"capability"`
	Versions   []capability.Version  `json:"versions"`
	Surprises  any                   `json:"surprises,omitempty"` // runs that were learnt most from
}

// CapabilityChange is one change of a capability; the first field that is set counts.
type CapabilityChange struct {
	Rename  string `json:"rename,omitempty"`
	Version int    `json:"version,omitempty"` // roll back to
	Retire  string `json:"retire,omitempty"`  // the reason
}

// CapabilityBackend does what the API offers about capabilities.
type CapabilityBackend interface {
	Capabilities(ctx context.Context, f CapabilityFilter) ([]capability.Capability, error)
	Capability(ctx context.Context, name string) (CapabilityDetail, error)
	AddCapability(ctx context.Context, c capability.Capability) (capability.Capability, error)
	ChangeCapability(ctx context.Context, name string, change CapabilityChange) error
	ExportCapabilities(ctx context.Context, w io.Writer, names []string) error
	ImportCapabilities(ctx context.Context, r io.Reader) ([]capability.Capability, error)
}

func (s *Server) addCapabilities(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/capabilities", s.handle(s.capabilities))
	mux.HandleFunc("POST /v1/capabilities", s.handle(s.addCapability))
	mux.HandleFunc("GET /v1/capabilities/{name}", s.handle(func(r *http.Request) (any, error) {
		return s.backend.Capability(r.Context(), r.PathValue("name"))
	}))
	mux.HandleFunc("POST /v1/capabilities/{name}", s.handle(s.changeCapability))
	mux.HandleFunc("POST /v1/capability-export", s.handle(s.exportCapabilities))
	mux.HandleFunc("POST /v1/capability-import", s.handle(func(r *http.Request) (any, error) {
		return s.backend.ImportCapabilities(r.Context(), r.Body)
	}))
}

func (s *Server) capabilities(r *http.Request) (any, error) {
	q := r.URL.Query()
	limit, err := number(q.Get("limit"), 0)
	if err != nil {
		return nil, err
	}
	offset, err := number(q.Get("offset"), 0)
	if err != nil {
		return nil, err
	}
	return s.backend.Capabilities(r.Context(), CapabilityFilter{
		State: capability.State(q.Get("state")), Query: q.Get("query"), Limit: limit, Offset: offset,
	})
}

func (s *Server) addCapability(r *http.Request) (any, error) {
	var c capability.Capability
	if err := readJSON(r, &c); err != nil {
		return nil, err
	}
	return s.backend.AddCapability(r.Context(), c)
}

func (s *Server) changeCapability(r *http.Request) (any, error) {
	var change CapabilityChange
	if err := readJSON(r, &change); err != nil {
		return nil, err
	}
	return struct{}{}, s.backend.ChangeCapability(r.Context(), r.PathValue("name"), change)
}

func (s *Server) exportCapabilities(r *http.Request) (any, error) {
	var names []string
	if err := readJSON(r, &names); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err := s.backend.ExportCapabilities(r.Context(), &b, names)
	return json.RawMessage(b.Bytes()), err
}

func readJSON(r *http.Request, into any) error {
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxBody)).Decode(into); err != nil {
		return fault.New(fault.InvalidInput, "read request: %v", err)
	}
	return nil
}

// Capabilities lists capabilities, the most used first.
func (c *Client) Capabilities(ctx context.Context, f CapabilityFilter) ([]capability.Capability, error) {
	q := url.Values{"state": {string(f.State)}, "query": {f.Query}, "limit": {strconv.Itoa(f.Limit)}, "offset": {strconv.Itoa(f.Offset)}}
	var list []capability.Capability
	return list, c.call(ctx, http.MethodGet, "/v1/capabilities?"+q.Encode(), nil, &list)
}

// Capability describes one capability.
func (c *Client) Capability(ctx context.Context, name string) (CapabilityDetail, error) {
	var d CapabilityDetail
	return d, c.call(ctx, http.MethodGet, "/v1/capabilities/"+url.PathEscape(name), nil, &d)
}

// AddCapability stores a program as a candidate.
func (c *Client) AddCapability(ctx context.Context, given capability.Capability) (capability.Capability, error) {
	var stored capability.Capability
	return stored, c.call(ctx, http.MethodPost, "/v1/capabilities", given, &stored)
}

// ChangeCapability renames, rolls back or retires a capability.
func (c *Client) ChangeCapability(ctx context.Context, name string, change CapabilityChange) error {
	return c.call(ctx, http.MethodPost, "/v1/capabilities/"+url.PathEscape(name), change, nil)
}

// ExportCapabilities reads the file with the named capabilities.
func (c *Client) ExportCapabilities(ctx context.Context, names []string) (json.RawMessage, error) {
	var file json.RawMessage
	return file, c.call(ctx, http.MethodPost, "/v1/capability-export", names, &file)
}

// ImportCapabilities stores what a file holds as candidates.
func (c *Client) ImportCapabilities(ctx context.Context, r io.Reader) ([]capability.Capability, error) {
	var list []capability.Capability
	return list, c.send(ctx, http.MethodPost, "/v1/capability-import", r, &list)
}
