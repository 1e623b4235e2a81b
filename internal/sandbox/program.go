package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/pml-run/pml/internal/sandbox/wire"
)

// Program is one program to run.
type Program struct {
	// Source is TypeScript: the body of an async function over mcp, capabilities,
	// args, progress(done, total, message), console, and the recorder's names.
	Source string
	// Original is the text that the user wrote, when Source was instrumented:
	// errors quote its lines.
	Original string
	// Recorder and Frame are the names that Source uses for the recorder and the
	// program's own frame. Defaults "__t" and "__s0".
	Recorder, Frame string

	Args json.RawMessage
	// Capabilities are bodies like Source, by name. They run in the same worker.
	Capabilities map[string]string
	// Nodes are the nodes that the program's records and calls may carry; nil for a
	// program that is not instrumented. CapabilityNodes are those of each capability.
	Nodes           map[string]NodeKind
	CapabilityNodes map[string]map[string]NodeKind
	// Position maps a one-based line and UTF-16 column of Source to the user's own;
	// nil is the identity.
	Position func(line, column int) (int, int)
	// Site is where the user's own text has a node, for a failed call that the stack
	// does not lead to, such as one that is returned without await. It may be nil.
	Site func(node string) (line, column int, ok bool)

	Client string // for fairness between clients in the queue
	Limits Limits
	Seed   *Determinism // nil: real time and chance
}

// NodeKind is the kind of a node of the program's static structure.
type NodeKind string

// The kinds of nodes.
const (
	NodeTask       NodeKind = "task"
	NodeCapability NodeKind = "capability"
	NodeDecision   NodeKind = "decision"
	NodeLoop       NodeKind = "loop"
	NodeFork       NodeKind = "fork"
	NodeJoin       NodeKind = "join"
)

// Determinism fixes what a program sees of time and chance. Its clock starts at Now
// and moves with the replies to its calls and its own timers; between these each look
// is one millisecond after the one before. So the same replies at the same times, in
// the same order, make the same run.
type Determinism struct {
	Now    time.Time
	Random uint32
}

// Limits bound one run. A zero field has the default that its comment names.
type Limits struct {
	Wall       time.Duration // 60 s
	CPU        time.Duration // 30 s
	MemoryMB   int           // 256, and never more than Options.MemoryMB
	Calls      int           // 1,000
	InFlight   int           // 50; further calls wait
	Depth      int           // 10 capabilities inside each other
	Argument   int64         // 8 MB of JSON for one call
	ToolResult int64         // 64 MB of JSON
	Result     int64         // 8 MB of JSON
	LogLines   int           // 200, then counted
	LogBytes   int64         // 16 KB, then counted
	Records    int           // 20,000, then counted by node
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Wall:       cmp.Or(l.Wall, time.Minute),
		CPU:        cmp.Or(l.CPU, 30*time.Second),
		MemoryMB:   cmp.Or(l.MemoryMB, 256),
		Calls:      cmp.Or(l.Calls, 1000),
		InFlight:   cmp.Or(l.InFlight, 50),
		Depth:      cmp.Or(l.Depth, 10),
		Argument:   cmp.Or(l.Argument, 8<<20),
		ToolResult: cmp.Or(l.ToolResult, 64<<20),
		Result:     cmp.Or(l.Result, 8<<20),
		LogLines:   cmp.Or(l.LogLines, 200),
		LogBytes:   cmp.Or(l.LogBytes, 16<<10),
		Records:    cmp.Or(l.Records, 20_000),
	}
}

// Call is one call that the program makes of a tool.
type Call struct {
	ID     uint32
	Server string
	Tool   string
	Args   json.RawMessage // always an object or an array
	Raw    bool            // the program asked for the unprocessed result
	NodeID string          // "?server:tool" when no call site is known
	Frame  int
	Seq    int // order among the run's records
	// Root is the frame that the calling code began in: 0 for the program itself, else
	// that of Capability.
	Root       int
	Capability string
	Occurrence int // one-based, of the node in the code that began in Root
}

// Reply is what comes back for a call. Its Seal counts beside an error, too.
type Reply struct {
	Value json.RawMessage
	// Seal, where it is set, is called once, right before the reply is sent: replies
	// are sealed and sent one after the other. It returns when the reply comes by the
	// clock of a program whose time is fixed; zero leaves that as it is. Its error
	// takes the place of the value.
	Seal func() (at time.Time, err error)
}

// Host answers a running program. Both methods must return soon after ctx has
// ended: Run waits for them.
type Host interface {
	// Call returns what the program sees. A *tool.CallError or *fault.Error becomes a
	// ToolError with its message, code and content; any other error becomes one with
	// the code "internal" and no detail. It is called concurrently.
	Call(ctx context.Context, c Call) (Reply, error)
	// Progress passes on what the program reports. A report may be left out when a
	// newer one has come.
	Progress(done, total float64, message string)
	// Log passes on an entry of the program's console at once; Outcome.Logs has it, too.
	// It must not wait: the program does.
	Log(text string)
}

// Record is one thing that an instrumented program did.
type Record = wire.Record

// Outcome is what is known of a run, filled as far as possible when it failed.
type Outcome struct {
	Result      json.RawMessage
	Logs        []string
	LogsDropped int
	// Records are in order. When RecordsTruncated is set, RecordCounts says how many
	// more each node would have had.
	Records          []Record
	RecordsTruncated bool
	RecordCounts     map[string]int
	Calls            int
	Level            string
	Wall             time.Duration // from the start in a worker; without holds
	CPU              time.Duration // zero where the system does not tell
}
