package config

import (
	"fmt"
	"strings"
)

// Problem is one thing in a file that is wrong or odd, and where it stands.
type Problem struct {
	// Path leads to the value, like mcpServers.fs.timeout_ms; empty for the file.
	Path    string `json:"path,omitempty"`
	Line    int    `json:"line,omitempty"` // one-based
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

// String is the problem in one line: "3:14: mcpServers.fs.args: want a list".
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:%d: ", p.Line, p.Column)
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Invalid is the error for a file with values that cannot be used: all of them.
type Invalid struct {
	File     string
	Problems []Problem
}

// Error implements error: one line for each problem.
func (e *Invalid) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
		if e.File != "" {
			sep := ":"
			if p.Line == 0 {
				sep = ": "
			}
			lines[i] = e.File + sep + p.String()
		}
	}
	return strings.Join(lines, "\n")
}
