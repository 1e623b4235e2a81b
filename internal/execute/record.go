package execute

import (
	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/trace"
)

// Finished is a run with all that it leaves to be stored and learnt from.
type Finished struct {
	Trace        trace.Trace
	Capability   *capability.Capability
	AllowPartial bool

	begun bool // its row is stored
}

// Learnt says what a stored run has done to its capability.
type Learnt struct {
	State     capability.State
	Saved     bool // it may be found and run again
	Promoted  bool
	Activated bool // its version became the one that runs by name
}

// conclude makes the trace of a run that has ended and those of the capabilities
// that ran inside it.
func (e *Engine) conclude(r *activeRun, outcome sandbox.Outcome, err error) []Finished {
	run := r.run
	run.FinishedAt = e.config.Now()
	run.Duration = run.FinishedAt.Sub(run.StartedAt)
	run.Logs = outcome.Logs
	if err != nil {
		run.Error = e.fault(run.ID, err)
		run.Status = statusOf(run.Error.Code)
	} else {
		run.Status, run.Result = trace.Succeeded, outcome.Result
	}
	own, inner := trace.Split(records(outcome.Records))
	complete := !outcome.RecordsTruncated
	t := r.gate.trace(0, run, r.ready.program.Structure, own, complete && r.ready.code.Nodes != nil)
	t.SandboxLevel, t.CapabilityVersion = outcome.Level, r.ready.capability.Version
	all := []Finished{{Trace: t, Capability: &r.ready.capability, AllowPartial: r.allowPartial, begun: true}}
	return append(all, r.gate.children(t, inner, complete)...)
}

// trace makes the trace of the code that began in the frame root.
func (g *gate) trace(root int, run trace.Run, s structure.Structure, own []trace.Record, exact bool) trace.Trace {
	g.mu.Lock()
	l := g.ledgers[root]
	g.mu.Unlock()
	t := trace.Trace{Run: run, Calls: []trace.Call{}, Decisions: []trace.Decision{}, Success: run.Status == trace.Succeeded}
	if l != nil {
		t.Calls = l.close(trace.Places(s, own))
	}
	t.ToolsUsed = toolsUsed(t.Calls)
	if exact {
		trace.Fold(s, own).Put(&t)
	} else {
		trace.FoldCalls(t.Calls).Put(&t)
	}
	return t
}

// children makes the traces of the capabilities that ran inside a run. What a
// capability returned is its caller's business; it succeeded if its caller did, or
// if none of its calls failed.
func (g *gate) children(parent trace.Trace, inner []trace.Inner, complete bool) []Finished {
	out := make([]Finished, 0, len(inner))
	ids := make([]trace.Run, len(inner))
	for i, in := range inner {
		called, ok := g.inner[in.Name]
		if !ok {
			continue
		}
		run, begun := g.childRun(in)
		if in.Caller >= 0 {
			run.Parent = ids[in.Caller].ID
		}
		t := g.trace(in.Root, run, called.program.Structure, in.Records, complete && called.nodes != nil)
		t.Success = parent.Success || !failed(t.Calls)
		t.Run = ended(t.Run, parent.Run, t)
		t.SandboxLevel, t.CapabilityVersion = parent.SandboxLevel, called.capability.Version
		ids[i] = t.Run
		out = append(out, Finished{Trace: t, Capability: &called.capability, begun: begun})
	}
	return out
}

func failed(calls []trace.Call) bool {
	for _, c := range calls {
		if c.Status != trace.CallOK {
			return true
		}
	}
	return false
}

// ended gives a child run the end that is known of it: that of its last call.
func ended(run, parent trace.Run, t trace.Trace) trace.Run {
	run.Status, run.FinishedAt = trace.Succeeded, run.StartedAt
	if !t.Success {
		run.Status, run.Error = parent.Status, parent.Error
		if run.Status == trace.Succeeded {
			run.Status = trace.Failed
		}
	}
	for _, c := range t.Calls {
		if end := c.StartedAt.Add(c.Duration); end.After(run.FinishedAt) {
			run.FinishedAt = end
		}
	}
	run.Duration = run.FinishedAt.Sub(run.StartedAt)
	return run
}

// childRun is the run of a capability: the row that its first call has made, or a
// new one where it made no call.
func (g *gate) childRun(in trace.Inner) (run trace.Run, begun bool) {
	g.mu.Lock()
	l := g.ledgers[in.Root]
	g.mu.Unlock()
	if l == nil {
		return g.child(g.engine.config.NewID(), in.Name), false
	}
	run = g.child(l.run, in.Name)
	if calls := l.snapshot(); len(calls) > 0 {
		run.StartedAt = calls[0].StartedAt
	}
	return run, true
}

// records are the sandbox's, in our words.
func records(in []sandbox.Record) []trace.Record {
	out := make([]trace.Record, len(in))
	for i, r := range in {
		out[i] = trace.Record{
			Type: trace.RecordType(r.Type), Seq: r.Seq, Frame: r.Frame, ID: r.ID, Outcome: r.Outcome, Tool: r.Tool,
			Parent: r.Parent, Capability: r.Capability, Region: r.Region, Branch: r.Branch, Index: r.Index,
		}
	}
	return out
}
