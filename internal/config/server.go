package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"
)

// The ways to reach a server.
const (
	TypeStdio = "stdio" // a child process
	TypeHTTP  = "http"  // streamable HTTP
	TypeSSE   = "sse"   // the HTTP transport of 2024-11-05
)

// When a server is started.
const (
	StartEager = "eager" // with the gateway; the default
	StartLazy  = "lazy"  // with the first call
)

// What happens before a call of a server's tools, in place of the permissions' answer.
const (
	ApprovalAllow = "allow"
	ApprovalAsk   = "ask"
	ApprovalDeny  = "deny"
)

// Defaults of a server's own keys.
const (
	DefaultTimeout        = 60 * time.Second
	DefaultMaxConcurrency = 8
)

// Server is one entry of mcpServers. The zero value of each optional key is its
// documented default.
type Server struct {
	// Type is stdio, http or sse; it follows from command and url when absent.
	Type string `json:"type,omitempty"`

	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]Secret `json:"env,omitempty"`
	Cwd     string            `json:"cwd,omitempty"`

	URL     string            `json:"url,omitempty"`
	Headers map[string]Secret `json:"headers,omitempty"`

	// Disabled keeps the entry without starting the server.
	Disabled bool `json:"disabled,omitempty"`
	// TimeoutMS bounds one call; default 60,000.
	TimeoutMS int `json:"timeout_ms,omitempty"`
	// MaxConcurrency bounds the calls in flight; default 8.
	MaxConcurrency int `json:"max_concurrency,omitempty"`
	// Start is eager (default) or lazy.
	Start string `json:"start,omitempty"`
	// Shared says that one session may serve all clients; default true.
	Shared *bool `json:"shared,omitempty"`
	// Approval (allow, ask, deny) overrides the permissions for all of the server's tools.
	Approval string `json:"approval,omitempty"`

	// Problem says why this server cannot be started (an unset variable, no
	// command); the other servers are not touched by it.
	Problem string `json:"-"`

	written *written // before expansion: what may be shown
}

// written holds the expandable parts as they stand in the file.
type written struct {
	command, url, cwd string
	args              []string
}

// Timeout is the bound of one call.
func (s Server) Timeout() time.Duration {
	if s.TimeoutMS <= 0 {
		return DefaultTimeout
	}
	return time.Duration(s.TimeoutMS) * time.Millisecond
}

// Concurrency is the bound of calls in flight.
func (s Server) Concurrency() int {
	if s.MaxConcurrency <= 0 {
		return DefaultMaxConcurrency
	}
	return s.MaxConcurrency
}

// Lazy reports whether the server waits for its first call.
func (s Server) Lazy() bool { return s.Start == StartLazy }

// Transport is the Type, worked out when it is absent.
func (s Server) Transport() string {
	switch {
	case s.Type != "":
		return s.Type
	case s.URL != "":
		return TypeHTTP
	}
	return TypeStdio
}

// Equal reports whether two entries mean the same.
func (s Server) Equal(other Server) bool {
	s.written, other.written = nil, nil
	return reflect.DeepEqual(s, other)
}

// Hash changes with the entry as it is written. The values of variables and of
// secrets are not part of it, so it may be stored.
func (s Server) Hash() string {
	data, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	names := slices.Sorted(maps.Keys(s.Env))
	more, err := json.Marshal([]any{names, slices.Sorted(maps.Keys(s.Headers))})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(append(data, more...))
	return hex.EncodeToString(sum[:16])
}

// MarshalJSON writes the entry as it may be shown: secrets masked, and variables
// by name instead of by value.
func (s Server) MarshalJSON() ([]byte, error) {
	type plain Server // without this method
	p := plain(s)
	if w := s.written; w != nil {
		p.Command, p.URL, p.Cwd, p.Args = w.command, w.url, w.cwd, w.args
	}
	return json.Marshal(p)
}

// LogValue implements slog.LogValuer with what may be shown.
func (s Server) LogValue() slog.Value {
	data, err := s.MarshalJSON()
	if err != nil {
		return slog.StringValue(mask)
	}
	return slog.StringValue(string(data))
}

// Written returns command and arguments as they stand in the file, variables by
// name: what may be shown to a person.
func (s Server) Written() (command string, args []string) {
	if w := s.written; w != nil {
		return w.command, w.args
	}
	return s.Command, s.Args
}
