package execute

import (
	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
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
	root  int  // the frame that its code began in
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
	run.FinishedAt = e.now()
	run.Duration = run.FinishedAt.Sub(run.StartedAt)
	if r.gate.past != nil || r.gate.held.Load() {
		run.Duration = outcome.Wall // the time in which a person was asked is not the program's
	}
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
	t.SandboxLevel, t.CapabilityVersion, t.Arguments = outcome.Level, r.ready.capability.Version, r.ready.arguments
	all := []Finished{{Trace: t, Capability: &r.ready.capability, AllowPartial: r.allowPartial, begun: true}}
	return r.gate.addChildren(all, inner, complete)
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

// addChildren adds the traces of the capabilities that ran inside a run, each after
// its caller's.
func (g *gate) addChildren(all []Finished, inner []trace.Inner, complete bool) []Finished {
	at := make([]int, len(inner)) // the place of each in all; 0 where there is none
	for i, in := range inner {
		called, ok := g.inner[in.Name]
		if !ok {
			continue
		}
		caller := 0
		if in.Caller >= 0 {
			caller = at[in.Caller]
		}
		run, begun := g.childRun(in)
		run.Parent = all[caller].Trace.Run.ID
		t := g.trace(in.Root, run, called.program.Structure, in.Records, complete && called.nodes != nil)
		t.Success = in.Ended == trace.EndedOK || !complete && all[0].Trace.Success
		t.Run = ended(t, in.Ended, all[0].Trace.Run)
		t.SandboxLevel, t.CapabilityVersion = all[0].Trace.SandboxLevel, called.capability.Version
		at[i] = len(all)
		all = append(all, Finished{Trace: t, Capability: &called.capability, begun: begun})
		if len(t.Calls) > 0 { // else nothing tells when it ran
			parent := &all[caller].Trace
			parent.Children = append(parent.Children, trace.Child{
				Capability: called.capability.ID, NodeID: in.NodeID, Seq: g.callsBefore(all[caller].root, in.Seq), Success: t.Success,
				StartedAt: t.Run.StartedAt, Duration: t.Run.Duration,
			})
		}
		all[at[i]].root = in.Root
	}
	return all
}

// callsBefore counts the calls that the code which began in a frame has made before
// a record.
func (g *gate) callsBefore(root, seq int) int {
	g.mu.Lock()
	l := g.ledgers[root]
	g.mu.Unlock()
	if l == nil {
		return 0
	}
	return l.before(seq)
}

// ended gives the run of a capability the end that is known of it: the time is that
// of its last call. One whose body did not end was cut short with its caller.
func ended(t trace.Trace, how string, caller trace.Run) trace.Run {
	run := t.Run
	switch {
	case t.Success:
		run.Status = trace.Succeeded
	case how == trace.EndedError:
		run.Status, run.Error = trace.Failed, fault.New(fault.RuntimeError, "the capability ended with an error")
	case caller.Status == trace.Succeeded:
		run.Status, run.Error = trace.InterruptedRun, fault.New(fault.Interrupted, "the program ended before the capability")
	default:
		run.Status, run.Error = caller.Status, caller.Error
	}
	run.FinishedAt = run.StartedAt
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
		return g.child(g.engine.config.NewID(), in.Name, in.Root), false
	}
	run = g.child(l.run, in.Name, in.Root)
	if calls := l.snapshot(); len(calls) > 0 {
		run.StartedAt = calls[0].StartedAt
	}
	return run, true
}

// records are the sandbox's, in our words. The stops after layers are not the
// program's.
func records(in []sandbox.Record) []trace.Record {
	out := make([]trace.Record, 0, len(in))
	for _, r := range in {
		if r.Tool == ownServer+":"+layerTool {
			continue
		}
		out = append(out, trace.Record{
			Type: trace.RecordType(r.Type), Seq: r.Seq, Frame: r.Frame, ID: r.ID, Outcome: r.Outcome, Tool: r.Tool,
			Parent: r.Parent, Capability: r.Capability, Region: r.Region, Branch: r.Branch, Index: r.Index,
		})
	}
	return out
}
