package capability

import (
	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/tool"
)

// Learning is what the runs of one version of a program have shown about its ways.
// Package learn has the formulas.
type Learning struct {
	Paths     []PathStats     `json:"paths"`
	Decisions []DecisionStats `json:"decisions"`
	// DominantPath is the hash of the path that a run most likely takes with success.
	DominantPath string `json:"dominantPath,omitempty"`
	// Parameters are the values that successful runs had; see Refine.
	Parameters []ParameterStats `json:"parameters,omitempty"`
	// Output is what the results of successful runs looked like. A capability that ran
	// inside another program shows nothing: its result stays in the sandbox.
	Output tool.Observed `json:"output,omitzero"`
}

// PathStats are the runs that took one path. SuccessRate moves with each run and
// forgets slowly; it is no quotient of counts.
type PathStats struct {
	Hash          string   `json:"hash"`
	Path          []string `json:"path"`
	Count         int64    `json:"count"`
	SuccessRate   float64  `json:"successRate"`
	AvgDurationMS float64  `json:"avgDurationMs"`
}

// DecisionStats are the runs in which a decision had one outcome.
type DecisionStats struct {
	NodeID      string  `json:"nodeId"`
	Outcome     string  `json:"outcome"`
	Count       int64   `json:"count"`
	SuccessRate float64 `json:"successRate"`
}

// Surprise is a finished run with the priority that it has for learning.
type Surprise struct {
	ID         uuid.UUID
	Capability uuid.UUID
	Version    int
	PathHash   string
	Success    bool
	DurationMS float64
	Priority   float64
}

// Evidence is the part of a stored capability that a finished run changes.
type Evidence struct {
	ID uuid.UUID
	// Version is that of the run, Head the one that the capability has now.
	Version, Head int
	// Proven reports whether Version was the head at any time.
	Proven bool

	State       State
	StateReason string
	Partial     bool

	UsageCount, SuccessCount, FailureCount int64
	ConsecutiveFailures                    int
	SuccessRate, AvgDurationMS             float64

	Learning  Learning // of Version
	ToolsUsed []tool.ID
}

// Lesson is all that one finished run teaches, to be written in one go.
type Lesson struct {
	Run      uuid.UUID
	Priority float64
	// Evidence is the capability's new one; nil for a run without a capability, or
	// one that teaches nothing about it.
	Evidence *Evidence
	// Activate makes the run's version the head; Proves tells that it was one, and
	// has succeeded for the first time.
	Activate, Proves bool
	// Invocations replace the capability's when the run succeeded fully; else nil.
	Invocations        []Invocation
	InvocationsDropped int
	Edges              []Edge
	Observed           map[tool.ID]tool.Observed
}
