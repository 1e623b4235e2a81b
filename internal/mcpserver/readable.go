package mcpserver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/fault"
)

// readable is what a model sees of a failure: code, message, place, the user's
// own stack, what to do next, and which calls had been made.
func readable(answer any, err error) string {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err.Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", f.Code, f.Message)
	if f.Line > 0 {
		fmt.Fprintf(&b, "at line %d, column %d", f.Line, f.Column)
		if f.Source != "" {
			fmt.Fprintf(&b, ": %s", strings.TrimSpace(f.Source))
		}
		b.WriteByte('\n')
	}
	if f.Hint != "" {
		fmt.Fprintf(&b, "hint: %s\n", f.Hint)
	}
	if f.Stack != "" {
		fmt.Fprintf(&b, "%s\n", f.Stack)
	}
	if a, ok := answer.(*execute.Answer); ok {
		writeRun(&b, a)
	}
	return strings.TrimRight(b.String(), "\n")
}

func writeRun(b *strings.Builder, a *execute.Answer) {
	for _, t := range a.ToolFailures {
		fmt.Fprintf(b, "tool failed: %s at %s: %s\n", t.Tool, t.NodeID, t.Error)
	}
	if a.Trace != nil && len(a.Trace.ExecutedPath) > 0 {
		fmt.Fprintf(b, "path: %s\n", strings.Join(a.Trace.ExecutedPath, " → "))
	}
	for _, line := range a.Logs {
		fmt.Fprintf(b, "log: %s\n", line)
	}
	if a.WorkflowID != "" {
		fmt.Fprintf(b, "workflow_id: %s\n", a.WorkflowID)
	}
}
