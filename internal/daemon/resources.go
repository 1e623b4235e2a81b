package daemon

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/search"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
	"github.com/pml-run/pml/internal/upstream"
)

// maxTraceResource is the size in bytes from which the resource of a trace leaves out
// what its calls were given and gave.
const maxTraceResource = 1 << 20

// listWait is how long a list of resources waits for a gateway that is starting:
// clients ask for it before they do anything else.
const listWait = 3 * time.Second

// capabilityResource is a capability as a client reads it.
type capabilityResource struct {
	ID          uuid.UUID             `json:"id"`
	Name        string                `json:"name"`
	Aliases     []string              `json:"aliases,omitempty"`
	Call        string                `json:"call"`
	Signature   string                `json:"signature"`
	Description string                `json:"description,omitempty"`
	Intent      string                `json:"intent"`
	Version     int                   `json:"version"`
	State       capability.State      `json:"state"`
	StateReason string                `json:"state_reason,omitempty"`
	Parameters  []structure.Parameter `json:"parameters"`
	Source      capability.Source     `json:"source"`
	ToolsUsed   []tool.ID             `json:"tools_used"`
	Structure   structure.Structure   `json:"static_structure"`
	Statistics  capabilityStatistics  `json:"statistics"`
}

// capabilityStatistics are what the runs of a capability have shown.
type capabilityStatistics struct {
	UsageCount          int64                      `json:"usage_count"`
	SuccessCount        int64                      `json:"success_count"`
	FailureCount        int64                      `json:"failure_count"`
	ConsecutiveFailures int                        `json:"consecutive_failures"`
	SuccessRate         float64                    `json:"success_rate"`
	AvgDurationMS       float64                    `json:"avg_duration_ms"`
	Paths               []capability.PathStats     `json:"paths,omitempty"`
	Decisions           []capability.DecisionStats `json:"decisions,omitempty"`
	PromotedAt          time.Time                  `json:"promoted_at,omitzero"`
	UpdatedAt           time.Time                  `json:"updated_at"`
}

// CapabilityResource implements mcpserver.ResourceReader.
func (g *Gateway) CapabilityResource(ctx context.Context, name string) (json.RawMessage, error) {
	p, err := g.await(ctx)
	if err != nil {
		return nil, asFault(err)
	}
	c, err := p.store.Capability(ctx, name)
	if fault.CodeOf(err) == fault.UnknownCapability {
		return nil, fault.New(fault.UnknownCapability, "there is no capability %q", name).WithHint("find capabilities with pml_discover")
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(capabilityResource{
		ID: c.ID, Name: c.Name, Aliases: c.Aliases, Call: "capabilities." + c.Name,
		Signature:   tool.CapabilitySignature(c.Name, search.Parameters(c), c.Learning.Output.Schema()),
		Description: c.Description, Intent: c.Intent, Version: c.Version, State: c.State, StateReason: c.StateReason,
		Parameters: c.Interface(), Source: c.Source, ToolsUsed: c.ToolsUsed, Structure: c.Structure,
		Statistics: capabilityStatistics{
			UsageCount: c.UsageCount, SuccessCount: c.SuccessCount, FailureCount: c.FailureCount,
			ConsecutiveFailures: c.ConsecutiveFailures, SuccessRate: c.SuccessRate, AvgDurationMS: c.AvgDurationMS,
			Paths: c.Learning.Paths, Decisions: c.Learning.Decisions, PromotedAt: c.PromotedAt, UpdatedAt: c.UpdatedAt,
		},
	})
}

// TraceResource implements mcpserver.ResourceReader. Of a run in progress it tells what
// was done so far.
func (g *Gateway) TraceResource(ctx context.Context, workflowID string) (json.RawMessage, error) {
	id, err := uuid.Parse(workflowID)
	if err != nil {
		return nil, fault.New(fault.NotFound, "%q is not the id of a run", workflowID).WithHint("use the workflow_id of an answer of pml_execute")
	}
	t, err := g.Trace(ctx, id)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(t)
	if err != nil || len(b) <= maxTraceResource {
		return b, err
	}
	calls := slices.Clone(t.Calls)
	for i, c := range calls {
		calls[i] = trace.Call{
			NodeID: c.NodeID, Occurrence: c.Occurrence, Seq: c.Seq, Iteration: c.Iteration, ParentNode: c.ParentNode, Tool: c.Tool,
			Status: c.Status, Bytes: c.Bytes, ContentType: c.ContentType, StartedAt: c.StartedAt, Duration: c.Duration,
		}
	}
	t.Calls, t.Run.Args = calls, nil
	return json.Marshal(t)
}

// TypesResource implements mcpserver.ResourceReader.
func (g *Gateway) TypesResource(ctx context.Context, server string) (string, error) {
	p, err := g.await(ctx)
	if err != nil {
		return "", asFault(err)
	}
	catalog := p.upstream.Catalog()
	if !slices.Contains(catalog.Servers(), server) {
		known := strings.Join(catalog.Servers(), ", ")
		if known == "" {
			known = "none"
		}
		return "", fault.New(fault.NotFound, "there is no server %q", server).WithHint("the servers are: %s", known)
	}
	changed, err := p.store.ChangedTools(ctx, time.Time{})
	if err != nil {
		return "", err
	}
	observed := make(map[tool.ID]json.RawMessage, len(changed))
	for _, t := range changed {
		observed[t.ID] = t.Observed
	}
	return tool.Declarations(server, catalog.ServerTools(server), func(id tool.ID) json.RawMessage { return observed[id] }), nil
}

// ReadyServers implements mcpserver.ResourceReader.
func (g *Gateway) ReadyServers(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	p, err := g.await(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, s := range p.upstream.States() {
		if s.State == upstream.StateReady {
			names = append(names, s.Name)
		}
	}
	return names
}
