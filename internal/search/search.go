// Package search finds tools and capabilities for an intent, ranks them, and says
// what may come next. It answers from immutable snapshots in memory and keeps no
// truth of its own: package daemon hands it the catalog, what the store knows, and
// the vectors, and mcpserver asks it.
package search

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
)

// Limits of a request.
const (
	defaultLimit = 8
	maxLimit     = 50
	maxIntent    = 32 << 10 // bytes; a model reads the first few hundred words
	maxContext   = 50       // tools just used
)

// Request is what a client asks of pml_discover.
type Request struct {
	Intent string `json:"intent,omitempty"` // empty lists everything by name
	Filter Filter `json:"filter,omitzero"`
	Limit  int    `json:"limit,omitempty"` // 1 to 50, default 8
	Offset int    `json:"offset,omitempty"`
	Detail Detail `json:"detail,omitempty"` // default signature
	// ContextTools are tools that were just used, the last one last: with them the
	// graph takes part in the ranking, and next steps are suggested.
	ContextTools []string `json:"context_tools,omitempty"`
	// IncludeSuggestions is true unless it is said.
	IncludeSuggestions *bool `json:"include_suggestions,omitempty"`
}

// Detail is how much is told of each result.
type Detail string

// The details. Each has what the one before has, and longer descriptions.
const (
	DetailSignature Detail = "signature" // eight stay under 2,000 tokens of a language model
	DetailSchema    Detail = "schema"    // and schemas, and an example
	DetailFull      Detail = "full"      // and a capability's structure and program
)

// Filter narrows a search.
type Filter struct {
	Type   string `json:"type,omitempty"`   // all (default), tool or capability
	Server string `json:"server,omitempty"` // its tools, and the capabilities that use one of them
	Name   string `json:"name,omitempty"`   // glob over the name, without the server
	// MinScore leaves out what has a lower score.
	MinScore float64 `json:"min_score,omitempty"`
}

// Answer is a page of what was found.
type Answer struct {
	Results     []Result     `json:"results"`
	Suggestions []Suggestion `json:"suggestions,omitempty"`
	Total       int          `json:"total"`
	NextOffset  int          `json:"next_offset,omitempty"`
	// Mode says what the ranking rests on; empty for a list.
	Mode Mode `json:"mode,omitempty"`
	// Notes say what the caller should know: why there are words only, and what of
	// the request was passed over.
	Notes   []string      `json:"notes,omitempty"`
	Servers []ServerState `json:"servers,omitempty"` // only those that are not ready
}

// ServerState names a server whose tools may be missing or out of date.
type ServerState struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Error string `json:"error,omitempty"`
}

// Result is a tool or a capability: one of the two parts is set.
type Result struct {
	Type        string  `json:"type"` // tool or capability
	ID          string  `json:"id"`   // a tool's server:name, a capability's uuid
	Call        string  `json:"call"` // the expression to use in a program
	Score       float64 `json:"score,omitempty"`
	Description string  `json:"description,omitempty"`
	Signature   string  `json:"signature"` // in TypeScript

	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// OutputSource is declared, or observed for what results have shown.
	OutputSource string `json:"output_schema_source,omitempty"`
	*ToolResult
	*CapabilityResult
}

// ToolResult is what is told of a tool only.
type ToolResult struct {
	Annotations tool.Annotations `json:"annotations,omitzero"`   // the server's claims
	Approval    string           `json:"approval,omitempty"`     // allow, ask or deny
	ExampleArgs json.RawMessage  `json:"example_args,omitempty"` // of a call that succeeded
}

// CapabilityResult is what is told of a capability only.
type CapabilityResult struct {
	Name        string         `json:"name"`
	Version     int            `json:"version"`
	UsageCount  int64          `json:"usage_count"`
	SuccessRate float64        `json:"success_rate"`
	State       string         `json:"state"`
	StateReason string         `json:"state_reason,omitempty"`
	Source      ProgramPreview `json:"source"`
	ToolsUsed   []tool.ID      `json:"tools_used"`
	Structure   any            `json:"static_structure,omitempty"` // with DetailFull
}

// ProgramPreview is the beginning of a capability's program.
type ProgramPreview struct {
	Type    string `json:"type"`
	Preview string `json:"preview,omitempty"`
}

// normalize sets defaults, and says what of a request is wrong.
func (r *Request) normalize() error {
	if r.Limit == 0 {
		r.Limit = defaultLimit
	}
	if r.Detail == "" {
		r.Detail = DetailSignature
	}
	if r.Filter.Type == "" {
		r.Filter.Type = "all"
	}
	r.Intent = strings.TrimSpace(r.Intent)
	switch {
	case r.Limit < 1 || r.Limit > maxLimit:
		return fault.New(fault.InvalidInput, "limit is %d", r.Limit).WithHint("use 1 to %d, and offset for more", maxLimit)
	case r.Offset < 0:
		return fault.New(fault.InvalidInput, "offset is %d", r.Offset).WithHint("use 0 or the last answer's next_offset")
	case len(r.Intent) > maxIntent:
		return fault.New(fault.InvalidInput, "intent has %d bytes, more than %d", len(r.Intent), maxIntent).
			WithHint("say in a sentence or two what is to be done; data goes into args of pml_execute")
	case len(r.ContextTools) > maxContext:
		return fault.New(fault.InvalidInput, "context_tools has %d tools, more than %d", len(r.ContextTools), maxContext).
			WithHint("name the last few")
	case !slices.Contains([]Detail{DetailSignature, DetailSchema, DetailFull}, r.Detail):
		return fault.New(fault.InvalidInput, "detail is %q", r.Detail).WithHint("use signature, schema or full")
	}
	return r.Filter.check()
}

func (f Filter) check() error {
	if !slices.Contains([]string{"all", "tool", "capability"}, f.Type) {
		return fault.New(fault.InvalidInput, "filter.type is %q", f.Type).WithHint("use all, tool or capability")
	}
	if f.MinScore < 0 {
		return fault.New(fault.InvalidInput, "filter.min_score is %g", f.MinScore).WithHint("use 0 or more; good results score 0.5 and higher")
	}
	if _, err := path.Match(f.Name, ""); err != nil {
		return fault.New(fault.InvalidInput, "filter.name %q is no glob: %v", f.Name, err).WithHint("for instance read_*")
	}
	return nil
}

// kind is the kind of documents that the filter lets pass; empty for both.
func (f Filter) kind() Kind {
	switch f.Type {
	case "tool":
		return Tools
	case "capability":
		return Capabilities
	}
	return ""
}
