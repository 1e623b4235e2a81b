package trace

import "strings"

// RecordType is what a Record tells.
type RecordType string

// The types of records. FrameOpened and Iteration open the frame Record.Frame; the
// rest happened in it.
const (
	FrameOpened RecordType = "frame"
	Iteration   RecordType = "iter"
	CallEvent   RecordType = "call"
	DecisionSet RecordType = "dec"
	LoopEntered RecordType = "loop"
	ForkOpened  RecordType = "fork"
	ForkJoined  RecordType = "join"
	FrameEnded  RecordType = "end" // of a capability's body
)

// Record is one thing that an instrumented program did, in the order in which it
// did it. Frame 0 is the program's own; every other frame is opened by a
// FrameOpened (a function or a capability) or an Iteration (one pass of a loop, or
// one callback of a fork).
type Record struct {
	Type  RecordType
	Seq   int // order over the whole run
	Frame int // where it happened, or the frame that it opens
	// ID is the node: of the event, or of the loop or fork that an Iteration is of.
	// A call without a known place is "?server:tool".
	ID      string
	Outcome string // of a DecisionSet; of a FrameEnded EndedOK or EndedError
	Tool    string // of a CallEvent: "server:tool" or "capability:name"

	// What follows is for records that open a frame.
	Parent     int    // the frame that it was opened in
	Capability string // the frame is the root of this capability's body
	Region     string // the fork whose branch the frame runs in
	Branch     int
	Index      int // of an Iteration: counted per node and parent, from zero
}

// How the body of a capability has ended.
const (
	EndedOK    = "ok"
	EndedError = "error"
)

// unknownPlace marks the id of a call that no node of the structure stands for.
const unknownPlace = "?"

// opens reports whether r opens a frame.
func (r Record) opens() bool { return r.Type == FrameOpened || r.Type == Iteration }

// Inner is one call of a capability: a program within the program, with nodes,
// a path and a trace of its own.
type Inner struct {
	Name string
	// NodeID is the node of the caller that called it; empty when it is not known.
	NodeID string
	// Caller is the index of the Inner that called it, or -1 for the program itself.
	Caller int
	// Seq is the order of the record that opened it, Root the frame that it opened.
	Seq, Root int
	// Ended is how its body ended: EndedOK, EndedError, or nothing where it did not.
	Ended string
	// Records are its own, without those of the capabilities that it called; its root
	// is frame 0.
	Records []Record
}

// Split parts the records of a run into the program's own and those of each
// capability that it called, in the order of the calls.
func Split(records []Record) (own []Record, inner []Inner) {
	owner := map[int]int{}         // frame → one more than its index in inner; 0 is the program
	root := map[int]int{}          // index → its root frame
	called := map[callKey]string{} // node of the last such call
	keep := func(at int, r Record) {
		if at < 0 {
			own = append(own, r)
			return
		}
		if r.Frame == root[at] {
			r.Frame = 0
		}
		if r.opens() && r.Parent == root[at] {
			r.Parent = 0
		}
		inner[at].Records = append(inner[at].Records, r)
	}
	for _, r := range records {
		if r.Type == FrameEnded {
			if at := owner[r.Frame] - 1; at >= 0 {
				inner[at].Ended = r.Outcome
			}
			continue
		}
		if !r.opens() {
			if r.Type == CallEvent && strings.HasPrefix(r.Tool, capabilityPrefix) {
				called[callKey{r.Frame, r.Tool}] = r.ID
			}
			keep(owner[r.Frame]-1, r)
			continue
		}
		from := owner[r.Parent] - 1
		if r.Capability == "" {
			owner[r.Frame] = from + 1
			keep(from, r)
			continue
		}
		at := len(inner)
		owner[r.Frame], root[at] = at+1, r.Frame
		inner = append(inner, Inner{
			Name: r.Capability, NodeID: called[callKey{r.Parent, capabilityPrefix + r.Capability}], Caller: from, Seq: r.Seq, Root: r.Frame,
		})
	}
	return own, inner
}

// callKey tells the calls of one name in one frame apart from all others.
type callKey struct {
	frame int
	tool  string
}

// capabilityPrefix begins the tool name of a capability's call.
const capabilityPrefix = "capability:"
