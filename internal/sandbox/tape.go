package sandbox

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pml-run/pml/internal/sandbox/wire"
)

// tape collects the records of one run and refuses what the program cannot have
// done. Its errors mean that the worker does not keep the protocol.
type tape struct {
	nodes        map[string]NodeKind
	capabilities map[string]map[string]NodeKind // also names the capabilities there are
	limit        int

	records []Record
	owner   map[int]string // open frames, and the capability whose code runs in each
	root    map[int]int    // open frames, and the frame that their code began in
	ended   map[int]bool   // frames of capabilities whose body has ended
	counts  map[site]int   // calls so far
	seq     int            // of the last record
	closed  bool
}

func newTape(p Program, limit int) *tape {
	t := &tape{nodes: p.Nodes, capabilities: map[string]map[string]NodeKind{}, limit: limit, owner: map[int]string{0: ""}, root: map[int]int{0: 0}, ended: map[int]bool{}, counts: map[site]int{}, seq: -1}
	for name := range p.Capabilities {
		t.capabilities[name] = p.CapabilityNodes[name]
	}
	return t
}

// site is a node of the code that began in one frame.
type site struct {
	root int
	node string
}

// occurrence counts the calls at a place, in the order in which the program makes them.
func (t *tape) occurrence(frame int, node string) int {
	p := site{t.root[frame], node}
	t.counts[p]++
	return t.counts[p]
}

// full reports whether the worker notes nothing more.
func (t *tape) full() bool { return len(t.records) >= t.limit }

// call adds what came with a call, and the call.
func (t *tape) call(m wire.CallMessage) error {
	if err := t.addAll(m.Records); err != nil {
		return err
	}
	name := m.Server + ":" + m.Tool
	if m.Recorded {
		return t.add(Record{Type: wire.CallEvent, Seq: m.Seq, Frame: m.Frame, ID: m.Node, Tool: name})
	}
	if !t.full() {
		return fmt.Errorf("the call of %s has no record", name)
	}
	if m.Node != "?"+name && !t.known(m.Node) {
		return fmt.Errorf("a call names the node %q, which the program does not have", m.Node)
	}
	return nil
}

// end adds what came at the end of the run.
func (t *tape) end(m wire.Trailer) error {
	if t.closed {
		return errors.New("the end of the run is told twice")
	}
	t.closed = true
	if err := t.addAll(m.Records); err != nil {
		return err
	}
	if m.Truncated && !t.full() {
		return fmt.Errorf("records are missing below the limit of %d", t.limit)
	}
	for id := range m.Counts {
		if id != "" && !strings.HasPrefix(id, "?") && !t.known(id) {
			return fmt.Errorf("a count names the node %q, which the program does not have", id)
		}
	}
	return nil
}

// addAll adds what is not a call of a tool: such a call is a record by itself.
func (t *tape) addAll(records []Record) error {
	for _, r := range records {
		if r.Type == wire.CallEvent && !isCapability(r.Tool) {
			return fmt.Errorf("a record says that %s was called, but it was not", r.Tool)
		}
		if err := t.add(r); err != nil {
			return err
		}
	}
	return nil
}

func (t *tape) add(r Record) error {
	if t.full() {
		return fmt.Errorf("more than %d records", t.limit)
	}
	if r.Seq <= t.seq {
		return fmt.Errorf("record %d comes after record %d", r.Seq, t.seq)
	}
	t.seq = r.Seq
	if err := t.check(r); err != nil {
		return err
	}
	t.records = append(t.records, r)
	return nil
}

func (t *tape) check(r Record) error {
	if r.Type == wire.FrameOpened || r.Type == wire.Iteration {
		return t.open(r)
	}
	owner, ok := t.owner[r.Frame]
	if !ok {
		return fmt.Errorf("a record is in frame %d, which was not opened", r.Frame)
	}
	if r.Type == wire.FrameEnded {
		return t.close(r)
	}
	if r.Type == wire.CallEvent && r.ID == "?"+r.Tool {
		return nil
	}
	return t.node(owner, r.Type, r.ID)
}

// open checks a record that opens a frame.
func (t *tape) open(r Record) error {
	owner, ok := t.owner[r.Parent]
	if !ok {
		return fmt.Errorf("frame %d is opened in frame %d, which was not", r.Frame, r.Parent)
	}
	if _, twice := t.owner[r.Frame]; twice {
		return fmt.Errorf("frame %d is opened twice", r.Frame)
	}
	if r.Capability != "" {
		if _, ok := t.capabilities[r.Capability]; !ok {
			return fmt.Errorf("a frame is of the capability %q, which the program does not have", r.Capability)
		}
		t.owner[r.Frame], t.root[r.Frame] = r.Capability, r.Frame
		return nil
	}
	t.owner[r.Frame], t.root[r.Frame] = owner, t.root[r.Parent]
	if r.Type == wire.Iteration {
		return t.node(owner, r.Type, r.ID)
	}
	if r.Region != "" {
		return t.node(owner, wire.Fork, r.Region)
	}
	if t.nodesOf(owner) == nil {
		return fmt.Errorf("frame %d is opened by a program without marks", r.Frame)
	}
	return nil
}

// close checks a record of the end of a capability's body.
func (t *tape) close(r Record) error {
	if r.Frame == 0 || t.root[r.Frame] != r.Frame {
		return fmt.Errorf("frame %d is ended, and is no capability's", r.Frame)
	}
	if t.ended[r.Frame] || r.Outcome != wire.EndedOK && r.Outcome != wire.EndedError {
		return fmt.Errorf("frame %d has ended %q, or twice", r.Frame, r.Outcome)
	}
	t.ended[r.Frame] = true
	return nil
}

// node checks that the code of owner has a node that can be the subject of a record.
func (t *tape) node(owner string, typ wire.RecordType, id string) error {
	kind, ok := t.nodesOf(owner)[id]
	if !ok {
		return fmt.Errorf("a record names the node %q, which the program does not have", id)
	}
	fits := false
	switch typ {
	case wire.CallEvent:
		fits = kind == NodeTask || kind == NodeCapability
	case wire.Decision:
		fits = kind == NodeDecision
	case wire.Loop:
		fits = kind == NodeLoop
	case wire.Iteration:
		fits = kind == NodeLoop || kind == NodeFork
	case wire.Fork:
		fits = kind == NodeFork
	case wire.Join:
		fits = kind == NodeJoin
	case wire.FrameOpened, wire.FrameEnded:
	}
	if !fits {
		return fmt.Errorf("a record of type %q names the node %q, which is a %s", typ, id, kind)
	}
	return nil
}

func (t *tape) nodesOf(owner string) map[string]NodeKind {
	if owner == "" {
		return t.nodes
	}
	return t.capabilities[owner]
}

// known reports whether any of the code has the node.
func (t *tape) known(id string) bool {
	if _, ok := t.nodes[id]; ok {
		return true
	}
	for _, nodes := range t.capabilities {
		if _, ok := nodes[id]; ok {
			return true
		}
	}
	return false
}

func isCapability(toolName string) bool { return strings.HasPrefix(toolName, "capability:") }
