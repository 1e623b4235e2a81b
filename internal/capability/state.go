package capability

import "fmt"

// State is where a capability is in its life.
type State string

// The states.
const (
	Candidate State = "candidate" // analysed; no run has succeeded fully yet
	Active    State = "active"    // a run has succeeded with every tool
	Promoted  State = "promoted"  // has proved itself more than once
	Degraded  State = "degraded"  // worked once, may not now
	Retired   State = "retired"   // put away
)

// Discoverable reports whether a search may find a capability in this state.
func (s State) Discoverable() bool { return s == Active || s == Promoted || s == Degraded }

// RunsByIntent reports whether an intent alone may run a capability in this state.
func (s State) RunsByIntent() bool { return s == Active || s == Promoted }

const (
	// DegradeAfter is how many failures in a row degrade a capability.
	DegradeAfter = 3
	// PromoteRuns is how many runs a capability needs to be promoted.
	PromoteRuns = 3
	// PromoteRate is what its success rate must be above.
	PromoteRate = 0.7

	// reasonUnused is that of candidates which a job has put away.
	reasonUnused = "not used"
)

// Event is something that may move a capability from one state to another.
type Event struct {
	Kind EventKind
	// Tool is the one that an event is about.
	Tool string
	// Reason is a person's.
	Reason string
}

// EventKind is the kind of an Event.
type EventKind string

// The kinds of events.
const (
	FullSuccess   EventKind = "full_success"   // a run in which every tool call succeeded
	FailureInARow EventKind = "failure_in_row" // the last of DegradeAfter failures
	Proved        EventKind = "proved"         // MayPromote held when the job looked
	ToolRemoved   EventKind = "tool_removed"
	SchemaBroken  EventKind = "schema_broken" // a tool's schema changed incompatibly
	PersonRetires EventKind = "person_retires"
	PersonRevives EventKind = "person_revives"
	Unused        EventKind = "unused" // a candidate older than the limit
)

// After returns the state and its reason after an event. Evidence wins over
// suspicion: a full success lifts a degraded capability. What a person has retired
// only a person revives.
func After(s State, reason string, e Event) (State, string) {
	switch e.Kind {
	case FullSuccess:
		if s == Candidate || s == Degraded || s == Retired && reason == reasonUnused {
			return Active, ""
		}
	case FailureInARow:
		if s == Active || s == Promoted {
			return Degraded, fmt.Sprintf("%d failures in a row", DegradeAfter)
		}
	case Proved:
		if s == Active {
			return Promoted, ""
		}
	case ToolRemoved, SchemaBroken:
		if s == Active || s == Promoted || s == Degraded {
			return Degraded, toolReason(e)
		}
	case PersonRetires:
		return Retired, e.Reason
	case PersonRevives:
		if s == Retired {
			return Candidate, ""
		}
	case Unused:
		if s == Candidate {
			return Retired, reasonUnused
		}
	}
	return s, reason
}

func toolReason(e Event) string {
	if e.Kind == ToolRemoved {
		return "tool " + e.Tool + " was removed"
	}
	return "the schema of tool " + e.Tool + " has changed"
}

// MayPromote reports whether a capability has done enough for the promoted state.
func MayPromote(c Capability) bool {
	return c.State == Active && c.UsageCount >= PromoteRuns && c.SuccessRate > PromoteRate
}
