// Package structure owns the static structure of a program: what it may do,
// known before it runs. Nodes are tool calls, capability calls, decisions, loops
// and parallel forks; edges say what follows what, what lies inside what, and
// whose result goes where. It holds words, not algorithms: package analysis makes
// structures, package trace refers to their nodes.
package structure

import (
	"encoding/json"
	"strings"
)

// NodeType is the kind of a node.
type NodeType string

// The kinds of nodes. In code the first letter of a node's id tells its kind: n, d, c,
// l, f, j.
const (
	Task       NodeType = "task"
	Decision   NodeType = "decision"
	Capability NodeType = "capability"
	Loop       NodeType = "loop"
	Fork       NodeType = "fork"
	Join       NodeType = "join"
)

// Node is one place of the program. Its id depends only on the order of the
// program's tokens and means something only together with the program's exact hash.
// In a DAG the call of a task has the task's id, and what is inside one an id below it.
type Node struct {
	ID   string   `json:"id"`
	Type NodeType `json:"type"`
	// Tool is the tool of a task, "server:tool"; "fs:*" and the like where the
	// program computes the name.
	Tool string `json:"tool,omitempty"`
	// Ref marks a tool or capability that is passed as a value and not called here.
	Ref bool `json:"ref,omitempty"`
	// CapabilityID is the name by which the program calls a capability.
	CapabilityID string `json:"capabilityId,omitempty"`
	// Mode says which kind of loop (for, of, in, while, do, forEach, map, …) or
	// which combinator (all, allSettled, race, any).
	Mode string `json:"mode,omitempty"`
	// Condition is the text that a decision or loop tests.
	Condition string `json:"condition,omitempty"`
}

// Title is the node in a few words, for a person.
func (n Node) Title() string {
	switch n.Type {
	case Task:
		return n.Tool
	case Capability:
		return "capability " + n.CapabilityID
	case Decision:
		return "if " + n.Condition
	case Loop:
		return strings.TrimSpace("loop " + n.Mode + " " + n.Condition)
	case Fork, Join:
	}
	return string(n.Type) + " " + n.Mode
}

// EdgeType is the kind of an edge.
type EdgeType string

// The kinds of edges.
const (
	Sequence    EdgeType = "sequence"
	Conditional EdgeType = "conditional"
	Contains    EdgeType = "contains"
	Provides    EdgeType = "provides"
)

// Edge joins two nodes.
type Edge struct {
	From string   `json:"from"`
	To   string   `json:"to"`
	Type EdgeType `json:"type"`
	// Outcome labels a conditional edge: true, false, case:<v>, default, throw.
	Outcome string `json:"outcome,omitempty"`
	// Branch numbers the branch of a fork that a contains edge is about.
	Branch *int `json:"branch,omitempty"`
	// Coverage of a provides edge: strict, partial or optional.
	Coverage string `json:"coverage,omitempty"`
	// Via of a provides edge: arg or guard.
	Via string `json:"via,omitempty"`
}

// Structure is the graph of a program.
type Structure struct {
	Nodes []Node `json:"nodes"`
	Edges []Edge `json:"edges"`
}

// Node finds a node by its id.
func (s *Structure) Node(id string) (Node, bool) {
	for _, n := range s.Nodes {
		if n.ID == id {
			return n, true
		}
	}
	return Node{}, false
}

// Info is what is known of a node beside the graph; no hash depends on it.
type Info struct {
	Start   int  `json:"start"` // byte offsets in the source
	End     int  `json:"end"`
	Line    int  `json:"line"`   // one-based
	Column  int  `json:"column"` // one-based, UTF-16 units
	Awaited bool `json:"awaited,omitempty"`
	Dynamic bool `json:"dynamic,omitempty"`
	// Args says for each argument path of a task where its value comes from.
	Args map[string][]Source `json:"args,omitempty"`
}

// Source is one origin of a value: a node's result, or an input "$name".
type Source struct {
	Node string `json:"node"`
	Path string `json:"path"`
	// Exact says that the value is the source's, unchanged.
	Exact bool `json:"exact"`
}

// Parameter is a value that a program can be run with again, lifted from a
// literal or read from args.
type Parameter struct {
	Name     string          `json:"name"`
	Schema   json.RawMessage `json:"schema"`
	Required bool            `json:"required,omitempty"`
	// Start and End are the byte offsets of the literal that it stands for, where
	// there is one.
	Start int `json:"start,omitempty"`
	End   int `json:"end,omitempty"`
}

// Flags say what the analysis could not see.
type Flags struct {
	// Escapes: a server or all of mcp is handed to where calls are not seen.
	Escapes bool `json:"escapes,omitempty"`
	// Dynamic: the program computes a server's or a tool's name.
	Dynamic bool `json:"dynamic,omitempty"`
	// Implicit: a call is made from code that runs without being called visibly.
	Implicit bool `json:"implicit,omitempty"`
}
