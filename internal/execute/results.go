package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/trace"
)

// ResultStore reads what runs left behind. Where a result was dropped, its methods but
// CallNodes and InnerRuns say so with a fault.Expired.
type ResultStore interface {
	RunHead(ctx context.Context, id uuid.UUID) (trace.Run, time.Time, error)
	RunResult(ctx context.Context, id uuid.UUID) (json.RawMessage, time.Time, error)
	CallHead(ctx context.Context, id uuid.UUID, node string, occurrence int) (trace.Call, time.Time, error)
	CallResult(ctx context.Context, id uuid.UUID, node string, occurrence int) (json.RawMessage, time.Time, error)
	CallNodes(ctx context.Context, id uuid.UUID, limit int) ([]trace.Call, error)
	InnerRuns(ctx context.Context, id uuid.UUID, node string) ([]trace.Run, error)
}

// Limits of one page of a result, in characters.
const (
	defaultPage = 8000
	maxPage     = 100_000
)

// The formats of ResultRequest.
const (
	formatRaw    = "raw"
	formatPretty = "pretty"
	formatShape  = "shape"
)

// ResultRequest is what a client asks of pml_get_task_result.
type ResultRequest struct {
	WorkflowID string `json:"workflow_id"`
	TaskID     string `json:"task_id,omitempty"` // "n2", "n2@3", "t1"; empty means the run's own result
	Path       string `json:"path,omitempty"`    // to a part of the result; see parsePath
	Grep       string `json:"grep,omitempty"`    // a regular expression: only the lines that match
	Offset     int    `json:"offset,omitempty"`  // characters to skip
	Limit      int    `json:"limit,omitempty"`   // characters to return, default 8,000
	Format     string `json:"format,omitempty"`  // "raw" (default), "pretty" or "shape"
}

// ResultAnswer is one page of a result, or the state of a run that goes on.
type ResultAnswer struct {
	WorkflowID string `json:"workflow_id,omitempty"`
	TaskID     string `json:"task_id,omitempty"`
	Status     string `json:"status"`
	Tool       string `json:"tool,omitempty"`
	// Type is the JSON type of what the content shows; a string is shown as its text.
	Type    string `json:"type,omitempty"`
	Content string `json:"content,omitempty"`
	// Offset is where the content begins, when that is not where it was asked for:
	// inside an escape.
	Offset     int `json:"offset,omitempty"`
	TotalChars int `json:"total_chars"`
	NextOffset int `json:"next_offset,omitempty"`
	// Matches is how many lines grep has found; MatchesListed how many of them the
	// content has, over all pages, when those are not all.
	Matches       *int         `json:"matches,omitempty"`
	MatchesListed int          `json:"matches_listed,omitempty"`
	ExpiresAt     *time.Time   `json:"expires_at,omitempty"`
	Error         *fault.Error `json:"error,omitempty"`
	Trace         *Summary     `json:"trace,omitempty"`
}

// Results answers pml_get_task_result from runs in progress and from the store.
type Results struct {
	engine *Engine
	store  ResultStore
	cache  viewCache
}

// NewResults joins the engine's present runs with the stored ones.
func NewResults(engine *Engine, store ResultStore) *Results {
	return &Results{engine: engine, store: store}
}

// Get answers one request; what is wrong is inside the answer.
func (r *Results) Get(ctx context.Context, req ResultRequest) *ResultAnswer {
	answer, err := r.get(ctx, req)
	if err == nil {
		return answer
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = fault.New(fault.Internal, "%v", err)
	}
	return &ResultAnswer{WorkflowID: Preview(req.WorkflowID, maxName), TaskID: Preview(req.TaskID, maxName), Status: StatusFailed, Error: brief(f)}
}

func (r *Results) get(ctx context.Context, req ResultRequest) (*ResultAnswer, error) {
	id, err := uuid.Parse(req.WorkflowID)
	if err != nil {
		return nil, fault.New(fault.InvalidInput, "workflow_id %q is not an id", Preview(req.WorkflowID, maxName)).
			WithHint("use the workflow_id of an answer of pml_execute")
	}
	reading, err := req.reading()
	if err != nil {
		return nil, err
	}
	if req.TaskID == "" {
		return r.ofRun(ctx, id, reading)
	}
	return r.ofTask(ctx, id, reading)
}

func (r *Results) ofRun(ctx context.Context, id uuid.UUID, req reading) (*ResultAnswer, error) {
	if run, calls, ok := r.engine.Active(id); ok {
		t := trace.Trace{Run: run, Calls: calls}
		t.Run.Duration = r.engine.config.Now().Sub(run.StartedAt)
		return &ResultAnswer{WorkflowID: req.WorkflowID, Status: string(trace.Running), Trace: latest(t)}, nil
	}
	run, expires, err := r.store.RunHead(ctx, id)
	if err != nil {
		return nil, err
	}
	answer := &ResultAnswer{WorkflowID: req.WorkflowID, Status: string(run.Status), Error: brief(run.Error)}
	if run.Status != trace.Succeeded {
		return answer, nil
	}
	return r.fill(ctx, answer, id, expires, req, func() (json.RawMessage, error) {
		result, _, err := r.store.RunResult(ctx, id)
		return result, err
	})
}

func (r *Results) ofTask(ctx context.Context, id uuid.UUID, req reading) (*ResultAnswer, error) {
	node, occurrence, err := parseTaskID(req.TaskID)
	if err != nil {
		return nil, err
	}
	req.node, req.occurrence = node, occurrence
	call, expires, err := r.call(ctx, id, node, occurrence)
	if fault.CodeOf(err) == fault.NotFound {
		return nil, r.missing(ctx, id, node, occurrence)
	}
	if err != nil {
		return nil, err
	}
	answer := &ResultAnswer{
		WorkflowID: req.WorkflowID, TaskID: req.TaskID, Status: string(call.Status), Tool: string(call.Tool), Error: brief(call.Error),
	}
	switch {
	case call.Error != nil && answer.Error.Message != call.Error.Message:
		// What a tool said at length is read like a result.
		return answer, answer.page(newView(call.Error.Message, "string", false), req)
	case call.Status != trace.CallOK:
		return answer, nil
	}
	return r.fill(ctx, answer, id, expires, req, func() (json.RawMessage, error) {
		if call.Result != nil {
			return call.Result, nil
		}
		result, _, err := r.store.CallResult(ctx, id, node, occurrence)
		return result, err
	})
}

// call finds a call: of a run in progress here in memory, where the latest ones are.
func (r *Results) call(ctx context.Context, id uuid.UUID, node string, occurrence int) (trace.Call, time.Time, error) {
	if _, calls, ok := r.engine.Active(id); ok {
		for _, c := range calls {
			if c.NodeID == node && c.Occurrence == occurrence && (c.Status != trace.CallOK || c.Result != nil) {
				return c, time.Time{}, nil
			}
		}
	}
	return r.store.CallHead(ctx, id, node, occurrence)
}

// missing is the error for a call that a run has not made: it says which there are, or
// in which run inside it was made.
func (r *Results) missing(ctx context.Context, id uuid.UUID, node string, occurrence int) error {
	nodes, err := r.nodes(ctx, id)
	if err != nil {
		return err
	}
	task := Preview(taskID(node, occurrence), maxName)
	known := ""
	for _, c := range nodes {
		if c.NodeID == node {
			return fault.New(fault.NotFound, "the run has no task %q: %s was called %d times", task, Preview(node, maxName), c.Occurrence).
				WithHint("its last is %q", Preview(taskID(node, c.Occurrence), maxName))
		}
		if len(known) < maxKnown {
			known += fmt.Sprintf(", %s (%s)", Preview(c.NodeID, maxName), Preview(string(c.Tool), maxName))
		}
	}
	inner, err := r.store.InnerRuns(ctx, id, node)
	if err != nil {
		return err
	}
	if len(inner) > 0 {
		return fault.New(fault.NotFound, "the run has no task %q, but the run of a capability inside it has", task).
			WithHint("read it with workflow_id %q: %s", inner[0].ID, Preview(inner[0].Intent, maxName))
	}
	if known == "" {
		return fault.New(fault.NotFound, "the run called no tools").WithHint("leave task_id out to read the run's own result")
	}
	return fault.New(fault.NotFound, "the run has no task %q", task).WithHint("its tasks: %s", strings.TrimPrefix(known, ", "))
}

// nodes lists the nodes of a run that have called, each with how often.
func (r *Results) nodes(ctx context.Context, id uuid.UUID) ([]trace.Call, error) {
	_, calls, ok := r.engine.Active(id)
	if !ok {
		if _, _, err := r.store.RunHead(ctx, id); err != nil && fault.CodeOf(err) != fault.Expired {
			return nil, err
		}
		return r.store.CallNodes(ctx, id, maxNodes)
	}
	var nodes []trace.Call
	at := map[string]int{}
	for _, c := range calls {
		i, seen := at[c.NodeID]
		if !seen {
			at[c.NodeID] = len(nodes)
			nodes = append(nodes, c)
			continue
		}
		nodes[i].Occurrence = max(nodes[i].Occurrence, c.Occurrence)
	}
	return nodes, nil
}

// parseTaskID reads "n2", or "n2@3" for the third call at that place. A place that no
// node is known of is named by its tool, "?server:tool", and that may have an @ in it.
func parseTaskID(s string) (node string, occurrence int, err error) {
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return s, 1, nil
	}
	node, tail := s[:at], s[at+1:]
	n, err := strconv.Atoi(tail)
	switch {
	case err == nil && n >= 1 && node != "":
		return node, n, nil
	case strings.HasPrefix(s, "?"):
		return s, 1, nil
	}
	return "", 0, fault.New(fault.InvalidInput, "task_id %q: %q is no occurrence", Preview(s, maxName), Preview(tail, maxName)).
		WithHint(`use "n2" or, for the third call at that place, "n2@3"`)
}
