package execute

import (
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/trace"
)

// What an answer of pml_get_task_result says beside the content is kept short: less
// than 2,000 bytes in all. Sizes are in characters, where nothing else is said.
const (
	maxName    = 80  // of an id or a name of the caller's own
	maxKnown   = 300 // bytes of the tasks that an error names
	maxNodes   = 20  // of a run that are looked at for it
	maxMessage = 400
	maxAdvice  = 400
	maxStack   = 200
	maxRecent  = 8    // calls of a run in progress, the latest
	maxTrace   = 1200 // bytes of its trace, as JSON
)

// brief cuts an error down; nil stays nil. What a tool said beside its message stays
// in the journal.
func brief(f *fault.Error) *fault.Error {
	if f == nil {
		return nil
	}
	b := *f
	b.Detail = nil
	b.Message, b.Hint = Preview(f.Message, maxMessage), Preview(f.Hint, maxAdvice)
	b.Source, b.Stack = Preview(f.Source, maxName), Preview(f.Stack, maxStack)
	b.NodeID, b.Tool = Preview(f.NodeID, maxName), Preview(f.Tool, maxName)
	return &b
}

// latest is the trace of a run in progress cut down to its latest calls, as many as
// there is room for.
func latest(t trace.Trace) *Summary {
	calls := t.Calls
	for room := maxRecent; ; room-- {
		omitted := max(0, len(calls)-room)
		t.Calls = calls[omitted:]
		t.ExecutedPath = callPath(t.Calls)
		s := summarize(t)
		s.CallsOmitted = omitted
		if room == 0 || len(mustJSON(s)) <= maxTrace {
			return s
		}
	}
}
