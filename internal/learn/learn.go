package learn

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// Tx is the transaction that stores a finished run.
type Tx interface {
	// Stored reports whether the run was stored, and learnt from, before.
	Stored(run uuid.UUID) bool
	// ReadLearning returns, locked, what a run of this version of a capability (0
	// for its head) changes, and what is known of the results of tools. For the nil
	// id, and for a capability that is gone, there is no evidence.
	ReadLearning(ctx context.Context, id uuid.UUID, version int, tools []tool.ID) (*capability.Evidence, map[tool.ID]tool.Observed, error)
	// KeepLesson has the lesson written with the run.
	KeepLesson(capability.Lesson)
}

// Options of Prepare.
type Options struct {
	// AllowPartial: the caller wants the program saved although tools have failed.
	AllowPartial bool
}

// Study is what a finished run can teach, worked out before its transaction. Apply
// may run more than once, as a transaction may be repeated.
type Study struct {
	trace    trace.Trace
	run      Run
	outcome  capability.Outcome
	edges    []capability.Edge
	observed map[tool.ID]tool.Observed
	tools    []tool.ID
}

// Prepare studies a finished run of c, nil for a run that has no capability. The
// trace must name c and its version already, as it will be stored with both.
func Prepare(t trace.Trace, c *capability.Capability, o Options) *Study {
	s := &Study{
		trace:   t,
		run:     runOf(t),
		outcome: capability.Judge(t.Success, o.AllowPartial, failures(t.Calls)),
	}
	if t.CacheHit != "" {
		return s // nothing was called: it must not count a second time
	}
	if t.Success && t.Exact {
		s.run.Output = tool.Observe(t.Run.Result)
	}
	s.edges = Edges(t, c)
	s.observed = observe(t.Calls)
	s.tools = usedTools(t.Calls)
	return s
}

func runOf(t trace.Trace) Run {
	r := Run{PathHash: t.PathHash, Path: t.ExecutedPath, Success: t.Success, DurationMS: float64(t.Run.Duration.Microseconds()) / 1000}
	for _, d := range t.Decisions {
		r.Decisions = append(r.Decisions, Outcome{d.NodeID, d.Outcome})
	}
	return r
}

// failures lists the calls that failed.
func failures(calls []trace.Call) []capability.ToolFailure {
	var out []capability.ToolFailure
	for _, c := range calls {
		if c.Status != trace.CallError {
			continue
		}
		f := capability.ToolFailure{Tool: c.Tool, NodeID: c.NodeID}
		if c.Error != nil {
			f.Error = c.Error.Message
		}
		out = append(out, f)
	}
	return out
}

// observe gathers the shapes of the results, by tool. A result that is no longer at
// hand shows nothing.
func observe(calls []trace.Call) map[tool.ID]tool.Observed {
	out := map[tool.ID]tool.Observed{}
	for _, c := range calls {
		if c.Status != trace.CallOK {
			continue
		}
		if seen := tool.Observe(c.Result); seen.Count > 0 {
			out[c.Tool] = out[c.Tool].Add(seen)
		}
	}
	return out
}

// Result is what learning has come to.
type Result struct {
	capability.Outcome
	Priority float64
	// Before and After are the capability's states; empty without a capability.
	Before, After capability.State
	// Activated is set when the run's version became the one that runs by name.
	Activated bool
}

// teaches reports whether the run says something about its capability: one that
// was cancelled, interrupted or rejected does not, nor does a cache's answer.
func (s *Study) teaches() bool {
	final := s.trace.Run.Status == trace.Succeeded || s.trace.Run.Status == trace.Failed
	return final && s.trace.CacheHit == ""
}

// Apply joins the study with what is stored, inside the transaction that stores
// the run. The priority is that of the run before it was learnt from.
func (s *Study) Apply(ctx context.Context, tx Tx) (Result, error) {
	r := Result{Outcome: s.outcome}
	id := s.trace.Run.ID
	if tx.Stored(id) {
		return r, nil
	}
	tools := slices.Sorted(maps.Keys(s.observed))
	before, known, err := tx.ReadLearning(ctx, s.trace.Run.Capability, s.trace.CapabilityVersion, tools)
	if err != nil {
		return r, fmt.Errorf("read what is known: %w", err)
	}
	lesson := capability.Lesson{Run: id, Edges: s.edges, Observed: merge(known, s.observed)}
	if before != nil {
		r.Before, r.After = before.State, before.State
		lesson.Priority = s.priority(*before)
		if s.teaches() {
			s.teach(&lesson, *before)
			r.After, r.Activated = lesson.Evidence.State, lesson.Activate
		}
	}
	r.Priority = lesson.Priority
	tx.KeepLesson(lesson)
	return r, nil
}

// priority of a run whose path is not exactly known is measured by the
// capability's success as a whole.
func (s *Study) priority(e capability.Evidence) float64 {
	switch {
	case !s.teaches():
		return 0
	case s.trace.Exact:
		return Priority(e.Learning, s.run)
	case e.UsageCount == 0:
		return 1
	}
	whole := capability.Learning{Paths: []capability.PathStats{{
		Hash: s.run.PathHash, Count: e.UsageCount, SuccessRate: e.SuccessRate, AvgDurationMS: e.AvgDurationMS,
	}}}
	return Priority(whole, s.run)
}

// teach fills the lesson with the evidence after the run. The capability as a whole
// is judged by the runs of its head; another version's only teach about its paths,
// until it has proved itself and becomes the head.
func (s *Study) teach(lesson *capability.Lesson, e capability.Evidence) {
	lesson.Activate = s.outcome.Save && e.Version != e.Head && !e.Proven
	if lesson.Activate {
		e.Head, e.ConsecutiveFailures = e.Version, 0
		if e.State != capability.Retired { // what the head has earned is not the new program's
			e.State, e.StateReason = capability.Candidate, ""
		}
	}
	if s.trace.Exact { // nothing is learnt from guessed paths
		e.Learning = Update(e.Learning, s.run)
	}
	if s.run.Success && s.trace.Arguments != nil {
		e.Learning.Parameters = UpdateValues(e.Learning.Parameters, s.trace.Arguments)
	}
	if e.Version == e.Head {
		lesson.Proves = s.outcome.Save && !e.Proven
		e = s.judge(count(e, s.run.Success, s.run.DurationMS))
		if s.outcome.Full {
			lesson.Invocations, lesson.InvocationsDropped = invocations(s.trace.Calls)
		}
	}
	lesson.Evidence = &e
}

// judge moves the capability's state.
func (s *Study) judge(e capability.Evidence) capability.Evidence {
	switch {
	case s.outcome.Full || s.outcome.Partial && e.State == capability.Candidate:
		e.Partial = s.outcome.Partial
		e.State, e.StateReason = capability.After(e.State, e.StateReason, capability.Event{Kind: capability.FullSuccess})
	case e.ConsecutiveFailures >= capability.DegradeAfter:
		e.State, e.StateReason = capability.After(e.State, e.StateReason, capability.Event{Kind: capability.FailureInARow})
	}
	if s.outcome.Save {
		e.Proven = true
		e.ToolsUsed = unite(e.ToolsUsed, s.tools)
	}
	return e
}

func merge(known, more map[tool.ID]tool.Observed) map[tool.ID]tool.Observed {
	out := map[tool.ID]tool.Observed{}
	for id, seen := range more {
		if have, ok := known[id]; ok { // a tool that is not in the catalog has no row
			out[id] = have.Add(seen)
		}
	}
	return out
}

func unite(a, b []tool.ID) []tool.ID {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// invocations are the calls in order, at most as many as are kept, and how many
// more there were.
func invocations(calls []trace.Call) ([]capability.Invocation, int) {
	kept := calls[:min(len(calls), capability.MostInvocations)]
	out := make([]capability.Invocation, len(kept))
	occurrences := map[tool.ID]int{}
	for i, c := range kept {
		out[i] = capability.Invocation{
			ID: fmt.Sprintf("%s#%d", c.Tool.Name(), occurrences[c.Tool]), Tool: c.Tool,
			At: c.StartedAt, Sequence: c.Seq, DurationMS: float64(c.Duration.Microseconds()) / 1000,
		}
		occurrences[c.Tool]++
	}
	return out, len(calls) - len(kept)
}
