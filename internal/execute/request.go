package execute

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/trace"
)

// MaxCode is the largest program in bytes.
const MaxCode = 100 << 10

// maxIntent is the longest intent in bytes; it is embedded and shown, never run.
const maxIntent = 4 << 10

// Default and largest waits and deadlines of one request.
const (
	defaultWait    = 50 * time.Second
	defaultTimeout = 60 * time.Second
	maxTimeout     = time.Hour
)

// Request is what a client asks of pml_execute.
type Request struct {
	Intent         string          `json:"intent"`
	Implementation *Implementation `json:"implementation,omitempty"`
	Args           json.RawMessage `json:"args,omitempty"`
	Options        Options         `json:"options,omitzero"`
	// Continue goes on with a run that waits; only its decision and, for a replan, the
	// implementation count then.
	Continue *Continue `json:"continue,omitempty"`

	// Client says who asks; it separates queues and is kept with the run.
	Client Client `json:"-"`
	// Progress, when set, gets what the program and its tools report.
	Progress func(done, total float64, message string) `json:"-"`
	// Log, when set, gets each entry of the program's console at once. It must not wait.
	Log func(text string) `json:"-"`
}

// Client is the program on the other side of the protocol.
type Client struct {
	Name     string `json:"name,omitempty"`
	Version  string `json:"version,omitempty"`
	Protocol string `json:"protocol,omitempty"`
	Session  string `json:"session,omitempty"`
}

// Implementation says how the intent is to be carried out.
type Implementation struct {
	Type string `json:"type"` // CodeType, CapabilityType or DAGType
	Code string `json:"code,omitempty"`
	// DAG is the list of tasks of a DAG.
	DAG json.RawMessage `json:"dagStructure,omitempty"`
	// Name and Version choose a capability; version 0 is its present one.
	Name    string `json:"name,omitempty"`
	Version int    `json:"version,omitempty"`
}

// source is the program as a capability has it.
func (i Implementation) source() capability.Source {
	if i.Type == DAGType {
		return capability.Source{Type: capability.DAGSource, DAG: i.DAG}
	}
	return capability.Source{Type: capability.CodeSource, Code: i.Code}
}

// The types of implementations.
const (
	CodeType       = "code"
	CapabilityType = "capability"
	DAGType        = "dag"
)

// Options of one request; a nil or zero field means the default.
type Options struct {
	TimeoutMS int  `json:"timeout_ms,omitempty"` // wall time of the run, default 60,000
	WaitMS    *int `json:"wait_ms,omitempty"`    // how long to wait for the end before answering "running", default 50,000
	// AllowPartial saves the program although some of its tools have failed.
	AllowPartial bool `json:"allow_partial,omitempty"`
	// Name is that of the capability which the program becomes.
	Name string `json:"name,omitempty"`
	// PerLayer has a DAG stop after each of its layers, until its client says how to go on.
	PerLayer bool `json:"per_layer_validation,omitempty"`
	// UseCache false has the program run although its result is known; nil is true.
	UseCache *bool `json:"use_cache,omitempty"`
	// DryRun shows what the program would do.
	DryRun DryRun `json:"dry_run,omitzero"`
}

func (o Options) mayUseCache() bool { return o.UseCache == nil || *o.UseCache }

func (o Options) timeout() time.Duration {
	if o.TimeoutMS == 0 {
		return defaultTimeout
	}
	return time.Duration(o.TimeoutMS) * time.Millisecond
}

func (o Options) wait() time.Duration {
	if o.WaitMS == nil {
		return defaultWait
	}
	return time.Duration(*o.WaitMS) * time.Millisecond
}

// validate reports the first thing that makes the request impossible to carry out.
func (r *Request) validate() *fault.Error {
	if r.Continue != nil {
		return r.Options.validate()
	}
	switch impl := r.Implementation; {
	case r.Intent == "":
		return fault.New(fault.InvalidInput, "intent is missing").
			WithHint("say in one sentence what the program is to achieve: it is what PML learns from")
	case len(r.Intent) > maxIntent:
		return fault.New(fault.InvalidInput, "intent has %d bytes, more than %d", len(r.Intent), maxIntent).
			WithHint("keep the intent to a sentence or two; data belongs into args")
	case impl == nil: // the intent alone says what to do
	case impl.Type != CodeType && impl.Type != CapabilityType && impl.Type != DAGType:
		return fault.New(fault.InvalidInput, "implementation.type is %q", impl.Type).
			WithHint(`use "code", "dag" or "capability"`)
	case impl.Type == CapabilityType && impl.Name == "":
		return fault.New(fault.InvalidInput, "implementation.name is missing").WithHint("name the capability to run")
	case impl.Type == DAGType && len(impl.DAG) == 0:
		return fault.New(fault.InvalidInput, "implementation.dagStructure is missing").
			WithHint(`pass {"tasks": [{"id": "a", "tool": "server:tool", "arguments": {}}]}`)
	case impl.Type == CodeType && impl.Code == "":
		return fault.New(fault.InvalidInput, "implementation.code is empty")
	case len(impl.Code) > MaxCode:
		return fault.New(fault.InvalidInput, "the code has %d bytes, more than %d", len(impl.Code), MaxCode).
			WithHint("move data out of the program: pass it in args, or read it with a tool")
	}
	if err := r.Options.validate(); err != nil {
		return err
	}
	return validateArgs(r.Args)
}

func (o Options) validate() *fault.Error {
	if o.TimeoutMS < 0 || o.timeout() > maxTimeout {
		return fault.New(fault.InvalidInput, "options.timeout_ms is %d", o.TimeoutMS).
			WithHint("use 1 to %d", maxTimeout.Milliseconds())
	}
	if o.WaitMS != nil && *o.WaitMS < 0 {
		return fault.New(fault.InvalidInput, "options.wait_ms is %d", *o.WaitMS).WithHint("use 0 or more")
	}
	return nil
}

func validateArgs(args json.RawMessage) *fault.Error {
	if len(args) == 0 || string(args) == "null" {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(args, &object); err != nil {
		return fault.New(fault.InvalidInput, "args is not a JSON object: %v", err).
			WithHint(`pass args: {"name": value}; the program reads args.name`)
	}
	return nil
}

// Answer is what pml_execute says; a field is left out when it says nothing.
type Answer struct {
	Status     string          `json:"status"`
	WorkflowID string          `json:"workflow_id,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	// ResultPreview stands for a result that is too large for an answer.
	ResultPreview string        `json:"result_preview,omitempty"`
	ResultChars   int           `json:"result_chars,omitempty"`
	Logs          []string      `json:"logs,omitempty"`
	LogsDropped   int           `json:"logs_dropped,omitempty"`
	Error         *fault.Error  `json:"error,omitempty"`
	ToolFailures  []ToolFailure `json:"tool_failures,omitempty"`
	Capability    *Used         `json:"capability,omitempty"`
	Trace         *Summary      `json:"trace,omitempty"`
	Next          string        `json:"next,omitempty"` // what to do with a handle
	// Approval is what a person is asked, Layer what the layer of a DAG has come to.
	Approval *policy.Approval `json:"approval,omitempty"`
	Layer    *Layer           `json:"layer,omitempty"`
	DryRun   *DryReport       `json:"dry_run,omitempty"`
	// CacheHit is the level of the cache that has answered, CacheAgeMS the result's age,
	// Similarity the cosine of the two intents where the level is IntentLevel.
	CacheHit   string  `json:"cache_hit,omitempty"`
	CacheAgeMS float64 `json:"cache_age_ms,omitempty"`
	Similarity float64 `json:"similarity,omitempty"`

	// What an intent without a program has come to.
	Matched     *Matched          `json:"match,omitempty"`
	Missing     []MissingArgument `json:"missing,omitempty"`
	Suggestions json.RawMessage   `json:"suggestions,omitempty"`
	Plan        json.RawMessage   `json:"plan,omitempty"`
	Notes       []string          `json:"notes,omitempty"`
}

// Used is the capability that a run was of.
type Used struct {
	ID       string           `json:"id"`
	Name     string           `json:"name"`
	Version  int              `json:"version"`
	State    capability.State `json:"state"`
	Created  bool             `json:"created"`  // by this request
	Promoted bool             `json:"promoted"` // by this run
}

// The values of Answer.Status.
const (
	StatusSuccess = "success"
	StatusFailed  = "failed"
	StatusRunning = "running"
	// StatusApproval: the run waits for a person or, after a layer, for the agent.
	StatusApproval = "approval_required"
	// StatusNeedsInput: the capability is found, and arguments are missing.
	StatusNeedsInput = "needs_input"
	// StatusSuggestions: nothing is sure enough to be run by the intent alone.
	StatusSuggestions = "suggestions"
)

// ToolFailure names a call that ended badly, whether the program caught it or not.
type ToolFailure struct {
	Tool   string `json:"tool"`
	NodeID string `json:"node_id"`
	Error  string `json:"error"`
}

// Summary is the part of a trace that goes into an answer.
type Summary struct {
	ExecutedPath []string         `json:"executed_path"`
	Decisions    []trace.Decision `json:"decisions,omitempty"`
	DurationMS   float64          `json:"duration_ms"`
	ToolsCalled  []ToolCall       `json:"tools_called"`
	CallsOmitted int              `json:"calls_omitted,omitempty"`
	Sandbox      string           `json:"sandbox,omitempty"`
}

// ToolCall is one line of Summary.ToolsCalled.
type ToolCall struct {
	TaskID     string  `json:"task_id"`
	Tool       string  `json:"tool"`
	OK         bool    `json:"ok"`
	DurationMS float64 `json:"duration_ms"`
	Preview    string  `json:"preview,omitempty"`
}

// taskID addresses one occurrence of a node: "n2", and "n2@3" for the third.
func taskID(node string, occurrence int) string {
	if occurrence <= 1 {
		return node
	}
	return fmt.Sprintf("%s@%d", node, occurrence)
}
