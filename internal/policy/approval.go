package policy

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
)

// Kind says what an approval is about.
type Kind string

// The kinds of approvals.
const (
	ForRun   Kind = "run"   // all that the program may call, before it starts
	ForCall  Kind = "call"  // one call that could not be seen before
	ForLayer Kind = "layer" // the layers that follow one of a DAG
)

// Status is the state of an approval. All but Pending are final.
type Status string

// The states of an approval.
const (
	Pending  Status = "pending"
	Approved Status = "approved"
	Rejected Status = "rejected"
	Expired  Status = "expired"
)

// Approval is a question to a person about a run that waits for the answer.
type Approval struct {
	ID         uuid.UUID `json:"id"`
	WorkflowID uuid.UUID `json:"workflow_id"`
	Kind       Kind      `json:"kind"`
	Status     Status    `json:"status"`
	Requested  Request   `json:"requested"`
	Answer     *Answer   `json:"answer,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	ExpiresAt  time.Time `json:"expires_at,omitzero"`
	DecidedAt  time.Time `json:"decided_at,omitzero"`
}

// Request is what a person is shown.
type Request struct {
	Intent string `json:"intent"`
	Code   string `json:"code,omitempty"`
	// Asks are the tools that may not be called without an answer.
	Asks []Question `json:"asks"`
	// Frame, NodeID and Occurrence name the call that an approval of the kind ForCall
	// is about; Frame is 0 outside of capabilities.
	Frame      int    `json:"frame,omitempty"`
	NodeID     string `json:"node_id,omitempty"`
	Occurrence int    `json:"occurrence,omitempty"`
	// Layer is the number of the layer that was run, from 0, and Results what it gave.
	Layer   int             `json:"layer,omitempty"`
	Results json.RawMessage `json:"results,omitempty"`
}

// Question is one tool that asks.
type Question struct {
	Tool   tool.ID `json:"tool"`
	NodeID string  `json:"node_id,omitempty"`
	Line   int     `json:"line,omitempty"`
	// Call is the call as it stands in the program; Args are the arguments, where the
	// call is about to be made.
	Call   string          `json:"call,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
	Reason string          `json:"reason"`
	// Capability is the one whose code makes the call; empty for the program's own.
	Capability string `json:"capability,omitempty"`
}

// Tools are the tools that an approval asks about, each once.
func (r Request) Tools() []tool.ID {
	var out []tool.ID
	for _, q := range r.Asks {
		if !slices.Contains(out, q.Tool) {
			out = append(out, q.Tool)
		}
	}
	return out
}

// Scope is how far a yes goes.
type Scope string

// The scopes.
const (
	Once        Scope = "once"     // what was asked, and no more
	ForWorkflow Scope = "workflow" // every call of these tools in this run
	Always      Scope = "always"   // a rule is kept for the tools
)

// Answer is what was decided.
type Answer struct {
	Approved bool  `json:"approved"`
	Scope    Scope `json:"scope,omitempty"`
	// Always are the tools that a rule is kept for; with the scope Always and none
	// named, all that were asked for.
	Always []tool.ID `json:"always,omitempty"`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by"` // "elicitation", "cli", "http", "agent"
	// Plan replaces the layers that follow, for an approval of the kind ForLayer.
	Plan json.RawMessage `json:"plan,omitempty"`
}

// Rules are the rules that an answer leaves behind. Tools that were not asked for
// get none.
func (a Answer) Rules(r Request) ([]Rule, error) {
	if !a.Approved {
		return nil, nil
	}
	asked := r.Tools()
	keep := a.Always
	if a.Scope == Always && len(keep) == 0 {
		keep = asked
	}
	var out []Rule
	for _, id := range keep {
		if !slices.Contains(asked, id) {
			return nil, fault.New(fault.InvalidInput, "%s was not asked for", id).WithHint("the tools of this approval are %v", asked)
		}
		out = append(out, Rule{Pattern: string(id), Effect: Allow, Origin: FromPerson, CreatedBy: a.By})
	}
	return out, nil
}
