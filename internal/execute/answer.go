package execute

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// Sizes of an answer, in characters; whatever is longer stays in the result store.
const (
	maxResult       = 8000
	maxPreview      = 240
	maxCallsShown   = 40
	maxPathShown    = 200
	maxFailureShown = 20
)

// finalAnswer cuts a recorded run down to what a model should read.
func finalAnswer(r *activeRun, t trace.Trace, outcome sandbox.Outcome, learnt Learnt) *Answer {
	a := &Answer{
		Status: StatusSuccess, WorkflowID: t.Run.ID.String(), Logs: outcome.Logs, LogsDropped: outcome.LogsDropped,
		Error: t.Run.Error, Trace: summarize(t), ToolFailures: failures(t.Calls),
		Capability: r.ready.used(learnt),
	}
	if t.Run.Error != nil {
		a.Status = StatusFailed
		return a
	}
	a.setResult(t.Run.Result)
	return a
}

// setResult puts a result into an answer, or what stands for one that is too large.
func (a *Answer) setResult(result json.RawMessage) {
	n := utf8.RuneCount(result)
	if n <= maxResult {
		a.Result = result
		return
	}
	a.ResultPreview, a.ResultChars = Preview(string(result), maxResult/2), n
	a.Next = fmt.Sprintf("the result has %d characters; read it with pml_get_task_result {workflow_id: %q}", n, a.WorkflowID)
}

// runningAnswer is the handle of a run that goes on.
func (e *Engine) runningAnswer(r *activeRun) *Answer {
	id := r.run.ID.String()
	t := trace.Trace{Run: r.run, Calls: r.gate.snapshot()}
	t.ExecutedPath = callPath(t.Calls)
	t.Run.Duration = e.now().Sub(r.run.StartedAt)
	return &Answer{
		Status: StatusRunning, WorkflowID: id, Trace: summarize(t),
		Next: fmt.Sprintf("the program goes on; wait for it with pml_execute {continue: {workflow_id: %q}}, or look at it with pml_get_task_result", id),
	}
}

func summarize(t trace.Trace) *Summary {
	s := &Summary{
		ExecutedPath: t.ExecutedPath[:min(len(t.ExecutedPath), maxPathShown)], Decisions: t.Decisions,
		DurationMS: milliseconds(t.Run.Duration), ToolsCalled: []ToolCall{}, Sandbox: t.SandboxLevel,
	}
	for i, c := range t.Calls {
		if i == maxCallsShown {
			s.CallsOmitted = len(t.Calls) - i
			break
		}
		s.ToolsCalled = append(s.ToolsCalled, ToolCall{
			TaskID: taskID(c.NodeID, c.Occurrence), Tool: string(c.Tool), OK: c.Status == trace.CallOK, DurationMS: milliseconds(c.Duration),
		})
	}
	return s
}

// used describes the capability in an answer.
func (p *prepared) used(learnt Learnt) *Used {
	c := p.capability
	if learnt.State != "" {
		c.State = learnt.State
	}
	return &Used{ID: c.ID.String(), Name: c.Name, Version: c.Version, State: c.State, Created: p.created, Promoted: learnt.Promoted}
}

// failedTools are the distinct tools of failures.
func failedTools(failures []ToolFailure) []string {
	var out []string
	for _, f := range failures {
		if !slices.Contains(out, f.Tool) {
			out = append(out, f.Tool)
		}
	}
	return out
}

func failures(calls []trace.Call) []ToolFailure {
	var out []ToolFailure
	for _, c := range calls {
		if c.Status == trace.CallOK || len(out) == maxFailureShown {
			continue
		}
		reason := "the outcome is unknown"
		if c.Error != nil {
			reason = Preview(c.Error.Message, maxPreview)
		}
		out = append(out, ToolFailure{Tool: string(c.Tool), NodeID: c.NodeID, Error: reason})
	}
	return out
}

// callPath is the order of calls, for a program whose structure is not known.
func callPath(calls []trace.Call) []string {
	path := make([]string, len(calls))
	for i, c := range calls {
		path[i] = c.NodeID
	}
	return path
}

func toolsUsed(calls []trace.Call) []tool.ID {
	used := []tool.ID{}
	for _, c := range calls {
		if !slices.Contains(used, c.Tool) {
			used = append(used, c.Tool)
		}
	}
	return used
}

// Preview cuts s to at most n characters at a character boundary and says so.
func Preview(s string, n int) string {
	if len(s) <= n {
		return s
	}
	count := 0
	for i := range s {
		if count == n {
			return s[:i] + "…"
		}
		count++
	}
	return s
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}
