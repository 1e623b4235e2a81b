// Package trace owns the record of what one run did: the run's row, every call
// with its result, the path through the program and the decisions on it. It says
// what a record looks like and how it is cut to size; it stores nothing itself.
package trace

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
)

// Status is the state of a run.
type Status string

// The states of a run. The first three are open, the rest are final.
const (
	Running          Status = "running"
	AwaitingApproval Status = "awaiting_approval"
	Suspended        Status = "suspended"
	Succeeded        Status = "succeeded"
	Failed           Status = "failed"
	CancelledRun     Status = "cancelled"
	InterruptedRun   Status = "interrupted"
	Rejected         Status = "rejected"
)

// Open reports whether a run in this state can still change.
func (s Status) Open() bool { return s == Running || s == AwaitingApproval || s == Suspended }

// Run is one request to execute something: a row that exists before the program
// starts. ID is workflow id, trace id and approval id at once (a UUIDv7).
type Run struct {
	ID             uuid.UUID       `json:"workflow_id"`
	Parent         uuid.UUID       `json:"parent_workflow_id,omitzero"`
	Capability     uuid.UUID       `json:"capability_id,omitzero"`
	Intent         string          `json:"intent"`
	Implementation json.RawMessage `json:"implementation,omitempty"`
	Args           json.RawMessage `json:"args,omitempty"`
	Options        json.RawMessage `json:"options,omitempty"`
	Client         json.RawMessage `json:"client,omitempty"`
	GatewayVersion string          `json:"gateway_version"`
	Owner          string          `json:"owner,omitempty"` // the gateway process that runs it
	LeaseUntil     time.Time       `json:"lease_until,omitzero"`
	StartedAt      time.Time       `json:"started_at"`
	// Seed is what the run's randomness follows from.
	Seed uint32 `json:"seed,omitempty"`

	// What follows is known when the run has ended.
	Status     Status          `json:"status"`
	Error      *fault.Error    `json:"error,omitempty"`
	Result     json.RawMessage `json:"-"` // kept in the result store for its TTL
	Logs       []string        `json:"logs,omitempty"`
	FinishedAt time.Time       `json:"finished_at,omitzero"`
	Duration   time.Duration   `json:"duration_ns,omitempty"`
}

// CallStatus is the state of one call in the journal.
type CallStatus string

// A call is Started before it is sent when it may have a side effect; one that
// stays Started has an unknown outcome.
const (
	CallStarted CallStatus = "started"
	CallOK      CallStatus = "ok"
	CallError   CallStatus = "error"
)

// Call is one call of a tool (or capability) by a run: the journal's entry, the
// trace's task result and the result store's row in one.
type Call struct {
	NodeID     string          `json:"nodeId"`     // "n2"; "?server:tool" where no call site is known
	Occurrence int             `json:"occurrence"` // one-based, per node
	Seq        int             `json:"sequenceIndex"`
	Iteration  *int            `json:"iteration,omitempty"`
	ParentNode string          `json:"parentNode,omitempty"`
	Tool       tool.ID         `json:"tool"`
	Args       json.RawMessage `json:"args,omitempty"`
	ArgsHash   string          `json:"argsHash,omitempty"`
	Status     CallStatus      `json:"status"`
	// Result is the value the program saw; empty unless Status is CallOK.
	Result      json.RawMessage `json:"result,omitempty"`
	Bytes       int64           `json:"bytes"` // true size of Result
	ContentType string          `json:"contentType,omitempty"`
	Error       *fault.Error    `json:"error,omitempty"`
	StartedAt   time.Time       `json:"startedAt"`
	Duration    time.Duration   `json:"durationNs"`
}

// Decision is one recorded outcome of a decision node.
type Decision struct {
	NodeID    string `json:"nodeId"`
	Condition string `json:"condition,omitempty"`
	Value     string `json:"value,omitempty"`
	Outcome   string `json:"outcome"`
}

// Child is a call of a capability by a run. It has a trace of its own; here is what
// places it among the run's calls.
type Child struct {
	Capability uuid.UUID
	NodeID     string // where it was called; empty when that is not known
	Seq        int    // how many of the run's own calls were made before it
	Success    bool
	StartedAt  time.Time // of its first call
	Duration   time.Duration
}

// Trace is what a finished run did.
type Trace struct {
	Run               Run `json:"run"`
	CapabilityVersion int `json:"capability_version,omitempty"`
	// Arguments are the values of the program's parameters, given or from its text;
	// nil where they are not known.
	Arguments    json.RawMessage `json:"arguments,omitempty"`
	ExecutedPath []string        `json:"executed_path"`
	PathHash     string          `json:"path_hash,omitempty"`
	Decisions    []Decision      `json:"decisions"`
	Loops        json.RawMessage `json:"loops,omitempty"`
	Calls        []Call          `json:"task_results"`
	Children     []Child         `json:"-"` // stored as traces of their own
	ToolsUsed    []tool.ID       `json:"tools_used"`
	Success      bool            `json:"success"`
	Priority     float64         `json:"priority"`
	Exact        bool            `json:"exact"`
	CacheHit     string          `json:"cache_hit,omitempty"`
	SandboxLevel string          `json:"sandbox_level,omitempty"`
}
