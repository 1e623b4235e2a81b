package capability

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
)

// The bounds of what is kept of a capability's results.
const (
	defaultCacheTTL     = 1800 * time.Second
	defaultCacheEntries = 10
	maxCacheTTL         = 7 * 24 * 3600 // seconds
	maxCacheEntries     = 1000
)

// CacheConfig is what a person has said about answering a capability from the cache.
// The zero value means the defaults.
type CacheConfig struct {
	// Cacheable: nil leaves it to the tools, which must all be read-only. True is a
	// person's word that tools which claim nothing only read, and that the result does
	// not depend on the time or on chance; a tool that claims to write is never cached.
	// False turns the cache off.
	Cacheable  *bool `json:"cacheable,omitempty"`
	TTLSeconds int   `json:"ttl_seconds,omitempty"` // default 1,800
	MaxEntries int   `json:"max_entries,omitempty"` // default 10; the oldest goes
}

// Trusted reports whether a person vouches for the capability.
func (c CacheConfig) Trusted() bool { return c.Cacheable != nil && *c.Cacheable }

// Off reports whether a person has turned the cache off.
func (c CacheConfig) Off() bool { return c.Cacheable != nil && !*c.Cacheable }

// TTL is TTLSeconds with its default.
func (c CacheConfig) TTL() time.Duration {
	if c.TTLSeconds <= 0 {
		return defaultCacheTTL
	}
	return time.Duration(c.TTLSeconds) * time.Second
}

// Entries is MaxEntries with its default.
func (c CacheConfig) Entries() int {
	if c.MaxEntries <= 0 {
		return defaultCacheEntries
	}
	return c.MaxEntries
}

// Check reports a value that is out of range: a week, and 1,000 entries.
func (c CacheConfig) Check() error {
	if c.TTLSeconds < 0 || c.TTLSeconds > maxCacheTTL {
		return fault.New(fault.InvalidInput, "the time to live is %d seconds", c.TTLSeconds).WithHint("use 1 to %d", maxCacheTTL)
	}
	if c.MaxEntries < 0 || c.MaxEntries > maxCacheEntries {
		return fault.New(fault.InvalidInput, "%d entries are to be kept", c.MaxEntries).WithHint("use 1 to %d", maxCacheEntries)
	}
	return nil
}

// CacheKey names a result: the version of a capability, and a hash of all that the
// result follows from.
type CacheKey struct {
	Capability uuid.UUID
	Version    int
	Hash       string
}

// Cached is what the store knows under a key.
type Cached struct {
	Config CacheConfig
	Found  bool
	Result json.RawMessage // empty unless Found
	At     time.Time       // when the result was stored
	// Now is the database's time of the look-up: what is written later is written to a
	// world that this answer does not know.
	Now time.Time
}

// CacheEntry is a kept result, as a list shows it.
type CacheEntry struct {
	Level      string    `json:"level"` // "execution" (in memory) or "capability" (in the database)
	Capability uuid.UUID `json:"capability_id"`
	Name       string    `json:"capability"`
	Version    int       `json:"version"`
	Hash       string    `json:"params_hash"`
	Bytes      int       `json:"bytes"` // as kept; compressed in the database
	Hits       int64     `json:"hits"`
	At         time.Time `json:"created_at"`
	ExpiresAt  time.Time `json:"expires_at"`
}

// Trigger is why results are dropped.
type Trigger string

// The triggers.
const (
	DroppedByWrite   Trigger = "write"        // a tool that may write was called on a server that they use
	DroppedByTool    Trigger = "tool_changed" // the tool's schema changed, or the tool is gone
	DroppedByFailure Trigger = "failures"     // the capability has failed DegradeAfter times in a row
	DroppedDaily     Trigger = "daily"        // they are a day old
	DroppedByHand    Trigger = "manual"
	DroppedDisabled  Trigger = "disabled" // the configuration turned the cache off
	DroppedByLoss    Trigger = "lost_run" // a gateway ended while a run was on: what it wrote is not known
)

// Drop says which results go, and why. At most one of the selectors is set; with none,
// all go.
type Drop struct {
	Trigger Trigger
	// Writers are one tool for each server that was written to.
	Writers    []tool.ID
	Tools      []tool.ID // that have changed
	Capability uuid.UUID
	Before     time.Time // those that are from earlier
	// InMemory are the entries that went before, from the gateway's memory; the log
	// counts them with those of the database.
	InMemory int64
}
