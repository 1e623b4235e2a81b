package httpapi

import (
	"context"
	"net/http"
	"net/url"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
)

// The values of CacheChange.Cacheable.
const (
	CacheOn      = "on"      // a person vouches for its tools
	CacheOff     = "off"     // never
	CacheDefault = "default" // as its tools say
)

// CacheChange is a change of how the results of a capability are kept; what is zero
// stays as it is.
type CacheChange struct {
	Cacheable  string `json:"cacheable,omitempty"` // CacheOn, CacheOff or CacheDefault
	TTLSeconds int    `json:"ttl_seconds,omitempty"`
	MaxEntries int    `json:"max_entries,omitempty"`
}

// Apply makes the change.
func (c CacheChange) Apply(to *capability.CacheConfig) {
	if c.Cacheable != "" {
		on := c.Cacheable == CacheOn
		to.Cacheable = &on
	}
	if c.Cacheable == CacheDefault {
		to.Cacheable = nil
	}
	if c.TTLSeconds != 0 {
		to.TTLSeconds = c.TTLSeconds
	}
	if c.MaxEntries != 0 {
		to.MaxEntries = c.MaxEntries
	}
}

// Cleared says how many entries of the caches went.
type Cleared struct {
	Entries int64 `json:"entries"`
}

// CacheBackend does what the API offers about the caches of executions.
type CacheBackend interface {
	CacheEntries(ctx context.Context) ([]capability.CacheEntry, error)
	// ClearCache drops the results of a capability, or all where the name is empty.
	ClearCache(ctx context.Context, name string) (int64, error)
	ChangeCaching(ctx context.Context, name string, change CacheChange) (capability.CacheConfig, error)
}

func (s *Server) addCache(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/cache", s.handle(func(r *http.Request) (any, error) { return s.backend.CacheEntries(r.Context()) }))
	mux.HandleFunc("DELETE /v1/cache", s.handle(func(r *http.Request) (any, error) {
		n, err := s.backend.ClearCache(r.Context(), r.URL.Query().Get("capability"))
		return Cleared{n}, err
	}))
	mux.HandleFunc("POST /v1/capabilities/{name}/cache", s.handle(s.changeCaching))
}

func (s *Server) changeCaching(r *http.Request) (any, error) {
	var change CacheChange
	if err := readJSON(r, &change); err != nil {
		return nil, err
	}
	switch change.Cacheable {
	case "", CacheOn, CacheOff, CacheDefault:
	default:
		return nil, fault.New(fault.InvalidInput, "cacheable is %q", change.Cacheable).WithHint("use on, off or default")
	}
	return s.backend.ChangeCaching(r.Context(), r.PathValue("name"), change)
}

// CacheEntries lists the results that runs may be answered with.
func (c *Client) CacheEntries(ctx context.Context) ([]capability.CacheEntry, error) {
	var out []capability.CacheEntry
	return out, c.call(ctx, http.MethodGet, "/v1/cache", nil, &out)
}

// ClearCache drops the results of a capability, or all where the name is empty.
func (c *Client) ClearCache(ctx context.Context, name string) (Cleared, error) {
	var out Cleared
	return out, c.call(ctx, http.MethodDelete, "/v1/cache?"+url.Values{"capability": {name}}.Encode(), nil, &out)
}

// ChangeCaching changes how the results of a capability are kept.
func (c *Client) ChangeCaching(ctx context.Context, name string, change CacheChange) (capability.CacheConfig, error) {
	var out capability.CacheConfig
	return out, c.call(ctx, http.MethodPost, "/v1/capabilities/"+url.PathEscape(name)+"/cache", change, &out)
}
