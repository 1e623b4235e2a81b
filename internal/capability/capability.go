// Package capability owns what PML learns to do: a capability is a program with its
// static structure, its versions and the evidence of its runs. The package says
// what states a capability has and what moves it from one to the next, how it is
// named, when a run may save it, and how it travels between installations. It
// stores nothing and runs nothing: package learn gathers the evidence, package
// store keeps it.
package capability

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
)

// SourceType is the kind of a capability's program.
type SourceType string

// The kinds of programs.
const (
	CodeSource SourceType = "code"
	DAGSource  SourceType = "dag"
	ToolSource SourceType = "tool" // one tool with default arguments
)

// Source is the program itself; which fields count depends on Type.
type Source struct {
	Type        SourceType      `json:"type"`
	Code        string          `json:"code,omitempty"`
	DAG         json.RawMessage `json:"dagStructure,omitempty"`
	ToolID      tool.ID         `json:"toolId,omitempty"`
	DefaultArgs json.RawMessage `json:"defaultArgs,omitempty"`
}

// Origin says where a capability comes from.
type Origin string

// The origins.
const (
	Emergent Origin = "emergent" // a run that somebody asked for
	Manual   Origin = "manual"
	Imported Origin = "imported"
)

// Capability is a learnt program at its present version.
type Capability struct {
	ID          uuid.UUID `json:"id"`
	Name        string    `json:"name"`
	Aliases     []string  `json:"aliases,omitempty"` // names that it had before
	Description string    `json:"description,omitempty"`
	Intent      string    `json:"intent"`

	// HashExact names the program, HashShape the program without the values that
	// became parameters: what has the same shape is the same capability.
	HashExact string `json:"hash_exact"`
	HashShape string `json:"hash_shape"`
	// Version is that of the fields below. Head is the version that runs by name;
	// the two differ only where an older or a not yet proven version was asked for.
	Version int `json:"version"`
	Head    int `json:"head,omitempty"`

	State       State  `json:"state"`
	StateReason string `json:"state_reason,omitempty"`
	// Partial marks one that was saved although some of its tools had failed.
	Partial bool `json:"partial,omitempty"`

	Source     Source                    `json:"source"`
	Parameters []structure.Parameter     `json:"parameters,omitempty"`
	Structure  structure.Structure       `json:"static_structure"`
	Info       map[string]structure.Info `json:"-"` // known while the program is at hand; not stored

	Learning           Learning     `json:"learning"`
	ToolsUsed          []tool.ID    `json:"tools_used"`
	ToolInvocations    []Invocation `json:"tool_invocations,omitempty"` // of the latest full success
	InvocationsDropped int          `json:"tool_invocations_dropped,omitempty"`

	UsageCount          int64     `json:"usage_count"`
	SuccessCount        int64     `json:"success_count"`
	FailureCount        int64     `json:"failure_count"`
	ConsecutiveFailures int       `json:"consecutive_failures"`
	SuccessRate         float64   `json:"success_rate"`
	AvgDurationMS       float64   `json:"avg_duration_ms"`
	PromotedAt          time.Time `json:"promoted_at,omitzero"`
	Origin              Origin    `json:"origin"`
	CreatedAt           time.Time `json:"created_at"`
	UpdatedAt           time.Time `json:"updated_at"`
}

// Version is one program that a capability has had.
type Version struct {
	Number     int                   `json:"version"`
	HashExact  string                `json:"hash_exact"`
	HashShape  string                `json:"hash_shape"`
	Source     Source                `json:"source"`
	Parameters []structure.Parameter `json:"parameters,omitempty"`
	Structure  structure.Structure   `json:"static_structure"`
	Reason     string                `json:"reason,omitempty"`
	// ActivatedAt is when it became the head; zero while it has not proved itself.
	ActivatedAt time.Time `json:"activated_at,omitzero"`
	CreatedAt   time.Time `json:"created_at"`
}

// MostInvocations is how many calls of a run are kept in its capability.
const MostInvocations = 500

// Invocation is one call of a tool, in the order of a run.
type Invocation struct {
	ID         string    `json:"id"` // the tool's name and its occurrence: "read_file#0"
	Tool       tool.ID   `json:"tool"`
	At         time.Time `json:"ts"`
	Sequence   int       `json:"sequenceIndex"`
	DurationMS float64   `json:"durationMs"`
}
