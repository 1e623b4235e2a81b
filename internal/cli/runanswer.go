package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/policy"
)

// runAnswer is the part of pml_execute's answer that is printed for a person.
type runAnswer struct {
	Status        string                    `json:"status"`
	WorkflowID    string                    `json:"workflow_id"`
	Result        json.RawMessage           `json:"result"`
	ResultPreview string                    `json:"result_preview"`
	Next          string                    `json:"next"`
	Logs          []string                  `json:"logs"`
	Error         *fault.Error              `json:"error"`
	Approval      *policy.Approval          `json:"approval"`
	Match         *execute.Matched          `json:"match"`
	Missing       []execute.MissingArgument `json:"missing"`
	Suggestions   []struct {
		Call        string `json:"call"`
		Description string `json:"description"`
	} `json:"suggestions"`
	DryRun       *execute.DryReport `json:"dry_run"`
	ToolFailures []struct {
		Tool   string `json:"tool"`
		NodeID string `json:"node_id"`
		Error  string `json:"error"`
	} `json:"tool_failures"`
	Trace *struct {
		ExecutedPath []string `json:"executed_path"`
		DurationMS   float64  `json:"duration_ms"`
		ToolsCalled  []struct {
			TaskID string `json:"task_id"`
			Tool   string `json:"tool"`
			OK     bool   `json:"ok"`
		} `json:"tools_called"`
	} `json:"trace"`
}

func (c *runCommand) show(a *app, raw json.RawMessage) error {
	var answer runAnswer
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if err := a.print(raw, func(w io.Writer) { answer.write(w, a.env.Stderr) }); err != nil {
		return err
	}
	switch answer.Status {
	case "success":
		return nil
	case "approval_required":
		return exitError(exitApproval)
	default:
		return exitError(exitFailed)
	}
}

// write prints the result to out and everything about it to notes.
func (r *runAnswer) write(out, notes io.Writer) {
	for _, line := range r.Logs {
		fmt.Fprintf(notes, "log  %s\n", line)
	}
	for _, f := range r.ToolFailures {
		fmt.Fprintf(notes, "fail %s at %s: %s\n", f.Tool, f.NodeID, f.Error)
	}
	if r.Match != nil {
		fmt.Fprintf(notes, "match %s version %d, confidence %.2f of %.2f: %s\n", r.Match.Name, r.Match.Version, r.Match.Confidence, r.Match.Threshold, r.Match.Reason)
	}
	if r.DryRun != nil {
		writeDryRun(notes, *r.DryRun)
	}
	if r.Trace != nil {
		fmt.Fprintf(notes, "path %s (%.0f ms, %d calls)\n", strings.Join(r.Trace.ExecutedPath, " → "), r.Trace.DurationMS, len(r.Trace.ToolsCalled))
	}
	switch {
	case r.Error != nil:
		report(notes, r.Error)
	case len(r.Missing) > 0 || len(r.Suggestions) > 0:
		for _, m := range r.Missing {
			fmt.Fprintf(out, "missing %s  %s\n", m.Name, m.Schema)
		}
		for _, s := range r.Suggestions {
			fmt.Fprintf(out, "%s\n    %s\n", s.Call, execute.Preview(s.Description, 160))
		}
		fmt.Fprintln(notes, r.Next)
	case r.Approval != nil:
		writeApproval(notes, *r.Approval)
		fmt.Fprintln(notes, r.Next)
	case r.Result != nil:
		fmt.Fprintln(out, indented(r.Result))
	default:
		fmt.Fprintln(out, r.ResultPreview)
		fmt.Fprintln(notes, r.Next)
	}
}

// writeDryRun writes what a program would do.
func writeDryRun(w io.Writer, r execute.DryReport) {
	fmt.Fprintf(w, "dry run: nothing was changed\npath %s\n", strings.Join(r.Path, " → "))
	for _, c := range r.Calls {
		fmt.Fprintf(w, "call %s  %s %s\n", c.TaskID, c.Tool, execute.Preview(string(c.Args), 200))
		if c.Problem != "" {
			fmt.Fprintf(w, "     refused: %s\n", c.Problem)
			continue
		}
		fmt.Fprintf(w, "     %s answer: %s\n", strings.TrimSpace(string(c.Origin)+" "+c.Connector), execute.Preview(c.Preview, 200))
	}
	for _, q := range r.Approvals {
		fmt.Fprintf(w, "asks %s at line %d: %s\n", q.Tool, q.Line, q.Reason)
	}
	for _, branch := range r.NotVisited {
		fmt.Fprintf(w, "not visited: %s\n", branch)
	}
	for _, text := range r.Warnings {
		fmt.Fprintf(w, "warning: %s\n", text)
	}
}

// indented lays JSON out without decoding it: integers keep every digit.
func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}
