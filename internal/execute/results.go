package execute

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/trace"
)

// ResultStore reads what runs left behind.
type ResultStore interface {
	Run(ctx context.Context, id uuid.UUID) (trace.Run, error)
	RunResult(ctx context.Context, id uuid.UUID) (json.RawMessage, time.Time, error)
	Calls(ctx context.Context, id uuid.UUID) ([]trace.Call, error)
	CallResult(ctx context.Context, id uuid.UUID, node string, occurrence int) (json.RawMessage, time.Time, error)
}

// Limits of one page of a result, in characters.
const (
	defaultPage = 8000
	maxPage     = 100_000
)

// ResultRequest is what a client asks of pml_get_task_result.
type ResultRequest struct {
	WorkflowID string `json:"workflow_id"`
	TaskID     string `json:"task_id,omitempty"` // "n2", "n2@3"; empty means the run's own result
	Offset     int    `json:"offset,omitempty"`  // characters to skip
	Limit      int    `json:"limit,omitempty"`   // characters to return, default 8,000
	Format     string `json:"format,omitempty"`  // "raw" or "pretty"
}

// ResultAnswer is one page of a result, or the state of a run that goes on.
type ResultAnswer struct {
	WorkflowID string       `json:"workflow_id,omitempty"`
	TaskID     string       `json:"task_id,omitempty"`
	Status     string       `json:"status"`
	Tool       string       `json:"tool,omitempty"`
	Content    string       `json:"content,omitempty"`
	TotalChars int          `json:"total_chars"`
	NextOffset int          `json:"next_offset,omitempty"`
	ExpiresAt  *time.Time   `json:"expires_at,omitempty"`
	Error      *fault.Error `json:"error,omitempty"`
	Trace      *Summary     `json:"trace,omitempty"`
}

// Results answers pml_get_task_result from runs in progress and from the store.
type Results struct {
	engine *Engine
	store  ResultStore
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
	return &ResultAnswer{WorkflowID: req.WorkflowID, TaskID: req.TaskID, Status: StatusFailed, Error: f}
}

func (r *Results) get(ctx context.Context, req ResultRequest) (*ResultAnswer, error) {
	id, err := uuid.Parse(req.WorkflowID)
	if err != nil {
		return nil, fault.New(fault.InvalidInput, "workflow_id %q is not an id", req.WorkflowID).
			WithHint("use the workflow_id of an answer of pml_execute")
	}
	if err := req.normalize(); err != nil {
		return nil, err
	}
	if req.TaskID == "" {
		return r.ofRun(ctx, id, req)
	}
	return r.ofTask(ctx, id, req)
}

func (req *ResultRequest) normalize() error {
	if req.Limit == 0 {
		req.Limit = defaultPage
	}
	switch {
	case req.Limit < 1 || req.Limit > maxPage:
		return fault.New(fault.InvalidInput, "limit is %d", req.Limit).WithHint("use 1 to %d characters", maxPage)
	case req.Offset < 0:
		return fault.New(fault.InvalidInput, "offset is %d", req.Offset).WithHint("use 0 or the last answer's next_offset")
	case req.Format != "" && req.Format != "raw" && req.Format != "pretty":
		return fault.New(fault.InvalidInput, "format is %q", req.Format).WithHint(`use "raw" or "pretty"`)
	}
	return nil
}

func (r *Results) ofRun(ctx context.Context, id uuid.UUID, req ResultRequest) (*ResultAnswer, error) {
	if run, calls, ok := r.engine.Active(id); ok {
		t := trace.Trace{Run: run, Calls: calls, ExecutedPath: callPath(calls)}
		t.Run.Duration = r.engine.config.Now().Sub(run.StartedAt)
		return &ResultAnswer{WorkflowID: req.WorkflowID, Status: string(trace.Running), Trace: summarize(t)}, nil
	}
	run, err := r.store.Run(ctx, id)
	if err != nil {
		return nil, err
	}
	answer := &ResultAnswer{WorkflowID: req.WorkflowID, Status: string(run.Status), Error: run.Error}
	if run.Status != trace.Succeeded {
		return answer, nil
	}
	content, expires, err := r.store.RunResult(ctx, id)
	if err != nil {
		return nil, err
	}
	answer.page(content, expires, req)
	return answer, nil
}

func (r *Results) ofTask(ctx context.Context, id uuid.UUID, req ResultRequest) (*ResultAnswer, error) {
	node, occurrence, err := parseTaskID(req.TaskID)
	if err != nil {
		return nil, err
	}
	call, err := r.findCall(ctx, id, node, occurrence, req.TaskID)
	if err != nil {
		return nil, err
	}
	answer := &ResultAnswer{
		WorkflowID: req.WorkflowID, TaskID: req.TaskID, Status: string(call.Status), Tool: string(call.Tool), Error: call.Error,
	}
	if call.Status != trace.CallOK {
		return answer, nil
	}
	content, expires, err := r.store.CallResult(ctx, id, node, occurrence)
	if err != nil {
		return nil, err
	}
	answer.page(content, expires, req)
	return answer, nil
}

// findCall finds a call in the run's journal, or says which calls there are.
func (r *Results) findCall(ctx context.Context, id uuid.UUID, node string, occurrence int, task string) (trace.Call, error) {
	calls, err := r.store.Calls(ctx, id)
	if err != nil {
		return trace.Call{}, err
	}
	known := make([]string, 0, maxFailureShown)
	for _, c := range calls {
		if c.NodeID == node && c.Occurrence == occurrence {
			return c, nil
		}
		if len(known) < maxFailureShown {
			known = append(known, taskID(c.NodeID, c.Occurrence))
		}
	}
	if len(calls) == 0 {
		if _, err := r.store.Run(ctx, id); err != nil {
			return trace.Call{}, err
		}
		return trace.Call{}, fault.New(fault.NotFound, "the run called no tools").WithHint("leave task_id out to read the run's own result")
	}
	return trace.Call{}, fault.New(fault.NotFound, "the run has no task %q", task).WithHint("its tasks: %s", strings.Join(known, ", "))
}

func parseTaskID(s string) (node string, occurrence int, err error) {
	node, tail, ok := strings.Cut(s, "@")
	if !ok {
		return node, 1, nil
	}
	n, err := strconv.Atoi(tail)
	if err != nil || n < 1 {
		return "", 0, fault.New(fault.InvalidInput, "task_id %q: %q is no occurrence", s, tail).
			WithHint(`use "n2" or, for the third call at that place, "n2@3"`)
	}
	return node, n, nil
}

// page puts one page of content into the answer, cut at character boundaries.
func (a *ResultAnswer) page(content json.RawMessage, expires time.Time, req ResultRequest) {
	text := string(content)
	if req.Format == "pretty" {
		var b bytes.Buffer
		if json.Indent(&b, content, "", "  ") == nil {
			text = b.String()
		}
	}
	a.TotalChars = utf8.RuneCountInString(text)
	a.Content = window(text, req.Offset, req.Limit)
	if end := req.Offset + req.Limit; end < a.TotalChars {
		a.NextOffset = end
	}
	if !expires.IsZero() {
		a.ExpiresAt = &expires
	}
}

// window returns the characters [offset, offset+limit) of s.
func window(s string, offset, limit int) string {
	start, count := len(s), 0
	for i := range s {
		if count == offset {
			start = i
		}
		if count == offset+limit {
			return s[start:i]
		}
		count++
	}
	return s[start:]
}
