package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/httpapi"
	"github.com/pml-run/pml/internal/policy"
)

type runCommand struct {
	File    string            `arg:"" help:"TypeScript program; - reads stdin."`
	Config  string            `help:"Configuration file." placeholder:"FILE"`
	Arg     map[string]string `help:"An argument, k=v; v is JSON or else a string. Repeatable." short:"a" mapsep:"none" placeholder:"K=V"`
	Intent  string            `help:"What the program is for; default its first comment, or its name."`
	URL     string            `name:"url" help:"Run through the MCP server at this URL instead of the data folder's gateway."`
	Timeout int               `help:"Deadline in ms." placeholder:"MS"`
	Dry     bool              `name:"dry-run" help:"Show what it would do; call nothing that may change something."`
	Reads   bool              `name:"real-reads" help:"With --dry-run: call tools that change nothing."`
	Yes     bool              `help:"Allow what the program asks for, once." short:"y"`
}

// Run runs one program and prints its result; the exit code tells success.
func (c *runCommand) Run(ctx context.Context, a *app) error {
	request, err := c.request(a)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if c.URL != "" {
		raw, err = callOverMCP(ctx, c.URL, a.env.Version, request)
	} else {
		err = a.withGateway(ctx, c.Config, func(client *httpapi.Client) error {
			if err := client.CallTool(ctx, "pml_execute", request, &raw); err != nil {
				return err
			}
			raw, err = c.answer(ctx, a, client, raw)
			return err
		})
	}
	if err != nil {
		return err
	}
	return c.show(a, raw)
}

// answer answers what the run asks a person, as often as it asks: with --yes, or
// with what the person at the terminal says. Where nobody can answer, the question
// is the run's answer.
func (c *runCommand) answer(ctx context.Context, a *app, client *httpapi.Client, raw json.RawMessage) (json.RawMessage, error) {
	for {
		var asked struct {
			Status     string
			WorkflowID string           `json:"workflow_id"`
			Approval   *policy.Approval `json:"approval"`
		}
		if err := json.Unmarshal(raw, &asked); err != nil {
			return raw, fmt.Errorf("read answer: %w", err)
		}
		if asked.Status != "approval_required" || asked.Approval == nil {
			return raw, nil
		}
		answer, ok := policy.Answer{Approved: true, Scope: policy.Once, By: byCommand}, true
		if !c.Yes {
			answer, ok = askOnTerminal(a, *asked.Approval)
		}
		if !ok {
			return raw, nil
		}
		if _, err := client.Decide(ctx, asked.Approval.ID.String(), answer); err != nil {
			return raw, err
		}
		next := map[string]any{"continue": map[string]string{"workflow_id": asked.WorkflowID}, "options": map[string]any{"wait_ms": 3_600_000}}
		if err := client.CallTool(ctx, "pml_execute", next, &raw); err != nil {
			return raw, err
		}
	}
}

// request builds the arguments of pml_execute.
func (c *runCommand) request(a *app) (map[string]any, error) {
	code, err := c.read(a)
	if err != nil {
		return nil, err
	}
	args := map[string]json.RawMessage{}
	for k, v := range c.Arg {
		if !json.Valid([]byte(v)) {
			b, _ := json.Marshal(v) // a string always encodes
			v = string(b)
		}
		args[k] = json.RawMessage(v)
	}
	options := map[string]any{"wait_ms": 3_600_000}
	if c.Timeout != 0 {
		options["timeout_ms"] = c.Timeout
	}
	switch {
	case c.Dry && c.Reads:
		options["dry_run"] = map[string]string{"reads": "real"}
	case c.Dry:
		options["dry_run"] = true
	case c.Reads:
		return nil, usageError{errors.New("--real-reads belongs to --dry-run")}
	}
	return map[string]any{
		"intent": c.intent(code), "args": args, "options": options,
		"implementation": map[string]string{"type": "code", "code": code},
	}, nil
}

func (c *runCommand) read(a *app) (string, error) {
	if c.File == "-" {
		b, err := io.ReadAll(a.env.Stdin)
		return string(b), err
	}
	b, err := os.ReadFile(c.File)
	if err != nil {
		return "", usageError{err}
	}
	return string(b), nil
}

// intent is what was said, the program's opening comment, or its file's name.
func (c *runCommand) intent(code string) string {
	if c.Intent != "" {
		return c.Intent
	}
	first, _, _ := strings.Cut(strings.TrimSpace(code), "\n")
	if comment, ok := strings.CutPrefix(first, "//"); ok && strings.TrimSpace(comment) != "" {
		return strings.TrimSpace(comment)
	}
	name := strings.TrimSuffix(filepath.Base(c.File), filepath.Ext(c.File))
	return strings.NewReplacer("-", " ", "_", " ").Replace(name)
}

// callOverMCP calls pml_execute as any MCP client would.
func callOverMCP(ctx context.Context, url, version string, request map[string]any) (json.RawMessage, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "pml-run", Version: version}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "connect to %s: %v", url, err).WithHint("is pml serve --http running there?")
	}
	defer func() { _ = session.Close() }()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "pml_execute", Arguments: request})
	if err != nil {
		return nil, fmt.Errorf("call pml_execute: %w", err)
	}
	if result.StructuredContent == nil {
		return nil, errors.New("the server's answer has no structured content; is it PML?")
	}
	return json.Marshal(result.StructuredContent)
}

// runAnswer is the part of pml_execute's answer that is printed for a person.
type runAnswer struct {
	Status        string             `json:"status"`
	WorkflowID    string             `json:"workflow_id"`
	Result        json.RawMessage    `json:"result"`
	ResultPreview string             `json:"result_preview"`
	Next          string             `json:"next"`
	Logs          []string           `json:"logs"`
	Error         *fault.Error       `json:"error"`
	Approval      *policy.Approval   `json:"approval"`
	DryRun        *execute.DryReport `json:"dry_run"`
	ToolFailures  []struct {
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
	if r.DryRun != nil {
		writeDryRun(notes, *r.DryRun)
	}
	if r.Trace != nil {
		fmt.Fprintf(notes, "path %s (%.0f ms, %d calls)\n", strings.Join(r.Trace.ExecutedPath, " → "), r.Trace.DurationMS, len(r.Trace.ToolsCalled))
	}
	switch {
	case r.Error != nil:
		report(notes, r.Error)
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
		fmt.Fprintf(w, "     %s answer: %s\n", c.Origin, execute.Preview(c.Preview, 200))
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
