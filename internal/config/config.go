package config

import "time"

// Config is the gateway's configuration: one file, read whole. The zero value of
// each key means the default that stands beside it.
type Config struct {
	// Servers are the MCP servers behind the gateway, by name.
	Servers     map[string]Server `json:"mcpServers,omitempty"`
	Permissions Permissions       `json:"permissions,omitzero"`
	Approvals   Approvals         `json:"approvals,omitzero"`
	Sandbox     Sandbox           `json:"sandbox,omitzero"`
	Results     Results           `json:"results,omitzero"`
	// Roots are the folders that servers are told about; default none.
	Roots     []string  `json:"roots,omitempty"`
	Cache     Cache     `json:"cache,omitzero"`
	Embedding Embedding `json:"embedding,omitzero"`
	HTTP      HTTP      `json:"http,omitzero"`

	// Path is the file that was read; empty when there was none.
	Path string `json:"-"`
	// Warnings are what is odd, but not wrong: unknown keys, unset variables.
	Warnings []Problem `json:"-"`
}

// The values of Permissions.Default.
const (
	DefaultAnnotations = "annotations" // read-only is allowed, the rest asks
	DefaultAllow       = "allow"
	DefaultAsk         = "ask"
	DefaultDeny        = "deny"
)

// Permissions decide about calls, by patterns like "server:tool", "server:*",
// "*:delete_*" and "*". Deny goes before ask, ask before allow.
type Permissions struct {
	Allow []string `json:"allow,omitempty"`
	Ask   []string `json:"ask,omitempty"`
	Deny  []string `json:"deny,omitempty"`
	// Default is for what no rule matches: annotations (default), allow, ask, deny.
	Default string `json:"default,omitempty"`
}

// Approvals say how a person is asked.
type Approvals struct {
	// HoldMS is how long a run keeps its worker while it waits; default 60,000.
	HoldMS *int `json:"hold_ms,omitempty"`
	// ExpireHours is the age at which an unanswered approval is rejected; default 24.
	ExpireHours int `json:"expire_hours,omitempty"`
	// AllowAgentRelay lets the agent pass on the person's answer; default false.
	AllowAgentRelay bool `json:"allow_agent_relay,omitempty"`
}

// Hold is HoldMS with its default; zero means not at all.
func (a Approvals) Hold() time.Duration {
	if a.HoldMS == nil {
		return time.Minute
	}
	return time.Duration(*a.HoldMS) * time.Millisecond
}

// Expire is ExpireHours with its default.
func (a Approvals) Expire() time.Duration {
	if a.ExpireHours <= 0 {
		return 24 * time.Hour
	}
	return time.Duration(a.ExpireHours) * time.Hour
}

// Sandbox says how programs run.
type Sandbox struct {
	// Require is full (refuse to start with less than the whole protection) or best (default).
	Require string `json:"require,omitempty"`
	// JIT is auto (default: on under the whole protection), on or off.
	JIT string `json:"jit,omitempty"`
	// Size is the number of workers; default by the number of processors.
	Size   int    `json:"size,omitempty"`
	Limits Limits `json:"limits,omitzero"`
}

// Limits bound one run. Zero is the default.
type Limits struct {
	WallMS          int `json:"wall_ms,omitempty"`           // 60,000
	CPUMS           int `json:"cpu_ms,omitempty"`            // 30,000
	MemoryMB        int `json:"memory_mb,omitempty"`         // 256
	Calls           int `json:"calls,omitempty"`             // 1,000
	InFlight        int `json:"in_flight,omitempty"`         // 50
	Depth           int `json:"depth,omitempty"`             // 10 capabilities inside each other
	CodeBytes       int `json:"code_bytes,omitempty"`        // 100 KB
	ArgumentBytes   int `json:"argument_bytes,omitempty"`    // 8 MB
	ToolResultBytes int `json:"tool_result_bytes,omitempty"` // 64 MB
	ResultBytes     int `json:"result_bytes,omitempty"`      // 8 MB
}

// Results say how long and how many results of calls are kept.
type Results struct {
	// TTLSeconds is the time to live; default 3,600, and 0 keeps them.
	TTLSeconds *int `json:"ttl_seconds,omitempty"`
	// QuotaMB is how much they may take together as they are stored, compressed; the
	// oldest go first. Default 1,024, and 0 is no limit.
	QuotaMB *int `json:"quota_mb,omitempty"`
}

// Quota is QuotaMB with its default, in bytes; less than 0 is no limit.
func (r Results) Quota() int64 {
	switch {
	case r.QuotaMB == nil:
		return 1 << 30
	case *r.QuotaMB == 0:
		return -1
	}
	return int64(*r.QuotaMB) << 20
}

// TTL is TTLSeconds with its default; zero means for ever.
func (r Results) TTL() time.Duration {
	if r.TTLSeconds == nil {
		return time.Hour
	}
	return time.Duration(*r.TTLSeconds) * time.Second
}

// Cache says what may be answered without running.
type Cache struct {
	// Disabled turns all caches of executions off.
	Disabled bool `json:"disabled,omitempty"`
	// Intents has an intent alone answered by the result of an almost equal one; default
	// false.
	Intents bool `json:"intents,omitempty"`
	// TTLSeconds bounds the age of a cached execution; default 300.
	TTLSeconds int `json:"ttl_seconds,omitempty"`
	// MaxEntries bounds the cache in memory; default 1,000.
	MaxEntries int `json:"max_entries,omitempty"`
}

// TTL is TTLSeconds with its default.
func (c Cache) TTL() time.Duration {
	if c.TTLSeconds <= 0 {
		return 5 * time.Minute
	}
	return time.Duration(c.TTLSeconds) * time.Second
}

// Entries is MaxEntries with its default.
func (c Cache) Entries() int {
	if c.MaxEntries <= 0 {
		return 1000
	}
	return c.MaxEntries
}

// Embedding chooses the model that turns texts into vectors.
type Embedding struct {
	// Provider is local (default: the built-in model), openai (any compatible
	// address), folder (a model on disk) or none (search goes by words only).
	Provider   string `json:"provider,omitempty"`
	URL        string `json:"url,omitempty"`
	Model      string `json:"model,omitempty"`
	Key        Secret `json:"key,omitempty"`
	Dimensions int    `json:"dimensions,omitempty"`
	// Path is the folder of a model on disk.
	Path string `json:"path,omitempty"`
	// QueryPrefix and DocumentPrefix stand in front of texts, for models that want it.
	QueryPrefix    string `json:"query_prefix,omitempty"`
	DocumentPrefix string `json:"document_prefix,omitempty"`
}

// HTTP says where the gateway listens.
type HTTP struct {
	// Listen is an address like "127.0.0.1:7777"; default none.
	Listen string `json:"listen,omitempty"`
	// Token is the bearer token; required when Listen is not a loopback address.
	Token Secret `json:"token,omitempty"`
}
