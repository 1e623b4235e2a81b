package analysis

import (
	"slices"

	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
)

// Options say what is known beside the program.
type Options struct {
	// Resolve gives the tool that a server's and a tool's name mean as written, with
	// its exact id and its schemas; nil takes names as written.
	Resolve func(server, name string) (t tool.Tool, ok bool)

	tasks []taskSpan // of a program that was a DAG; they name its nodes
}

// Severity says how much a diagnostic matters.
type Severity string

// The severities.
const (
	Warning Severity = "warning" // the program runs, but less is known of it
	Note    Severity = "note"
)

// Diagnostic is a remark about a place of the program; line and column are one-based,
// zero where it is about the whole.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Line     int      `json:"line,omitempty"`
	Column   int      `json:"column,omitempty"`
	Message  string   `json:"message"`
}

// Input is something that the program reads from outside.
type Input struct {
	// Name is the variable, or the property of args; empty for args as a whole.
	Name string `json:"name"`
	// Free says that it is a variable which the program does not declare.
	Free bool `json:"free,omitempty"`
	// Feeds are the arguments of calls that it reaches.
	Feeds []Feed `json:"feeds,omitempty"`
}

// Feed is one argument that an input reaches.
type Feed struct {
	Node     string `json:"node"`
	Argument string `json:"argument"`
	Path     string `json:"path,omitempty"` // inside the input
	Exact    bool   `json:"exact"`          // unchanged
}

// Program is what is known of a program without running it. It does not change and
// can be used by several goroutines.
type Program struct {
	Source     string                    `json:"source"`
	Structure  structure.Structure       `json:"static_structure"`
	Info       map[string]structure.Info `json:"node_info,omitempty"`
	Inputs     []Input                   `json:"inputs,omitempty"`
	Parameters []structure.Parameter     `json:"parameters,omitempty"`
	Flags      structure.Flags           `json:"flags"`
	// HashExact is the same for programs that do the same in the same words, whatever
	// their layout; HashShape also where only parameters differ.
	HashExact string `json:"hash_exact"`
	HashShape string `json:"hash_shape"`
	// Recorder and Frame are the names that the instrumented text uses.
	Recorder string `json:"recorder"`
	Frame    string `json:"frame"`
	// Exact is false when the program was over a limit: it can run, but without
	// marks, and the structure is empty or incomplete.
	Exact       bool         `json:"exact"`
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`

	plain  Code // for options that change nothing
	source origin
}

// Tools are the distinct tools of the structure in order, "fs:*" where the name is
// computed.
func (p *Program) Tools() []string {
	var out []string
	for _, n := range p.Structure.Nodes {
		if n.Type == structure.Task && !slices.Contains(out, n.Tool) {
			out = append(out, n.Tool)
		}
	}
	return out
}

// Capabilities are the names that the program calls capabilities by, in order.
func (p *Program) Capabilities() []string {
	var out []string
	for _, n := range p.Structure.Nodes {
		if n.Type == structure.Capability && !slices.Contains(out, n.CapabilityID) {
			out = append(out, n.CapabilityID)
		}
	}
	return out
}
