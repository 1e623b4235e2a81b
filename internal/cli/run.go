package cli

import (
	"cmp"
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
	File    string            `arg:"" optional:"" help:"TypeScript program, or a DAG as .json; - reads a program from stdin. Without one the intent says what to do."`
	Name    string            `name:"capability" help:"Run this capability instead of a file." placeholder:"NAME"`
	Config  string            `help:"Configuration file." placeholder:"FILE"`
	Arg     map[string]string `help:"An argument, k=v; v is JSON or else a string. Repeatable." short:"a" mapsep:"none" placeholder:"K=V"`
	Intent  string            `help:"What it is for; default the program's first comment, or its name."`
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
	implementation, intent, err := c.implementation(a)
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
	request := map[string]any{"intent": intent, "args": args, "options": options}
	if implementation != nil {
		request["implementation"] = implementation
	}
	return request, nil
}

// implementation is what is to be run, and what for; nil where the intent alone says it.
func (c *runCommand) implementation(a *app) (implementation any, intent string, err error) {
	switch {
	case c.Name != "" && c.File != "":
		return nil, "", usageError{errors.New("choose one of a file and --capability")}
	case c.Name != "":
		return map[string]string{"type": execute.CapabilityType, "name": c.Name}, cmp.Or(c.Intent, c.Name), nil
	case c.File == "" && c.Intent == "":
		return nil, "", usageError{errors.New("name a file, a --capability, or an --intent")}
	case c.File == "":
		return nil, c.Intent, nil
	}
	text, err := c.read(a)
	if err != nil {
		return nil, "", err
	}
	if filepath.Ext(c.File) != ".json" {
		return map[string]string{"type": execute.CodeType, "code": text}, c.intent(text), nil
	}
	if !json.Valid([]byte(text)) {
		return nil, "", usageError{fmt.Errorf("%s is not JSON", c.File)}
	}
	return map[string]any{"type": execute.DAGType, "dagStructure": json.RawMessage(text)}, c.intent(""), nil
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
