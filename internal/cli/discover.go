package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/pml-run/pml/internal/httpapi"
	"github.com/pml-run/pml/internal/search"
)

type discoverCmd struct {
	Intent   string   `arg:"" optional:"" help:"What you want to do; nothing lists all tools and capabilities."`
	Type     string   `help:"Only these: tool or capability." enum:"all,tool,capability" default:"all"`
	Server   string   `help:"Only this server." placeholder:"NAME"`
	Name     string   `help:"Only names like this." placeholder:"GLOB"`
	MinScore float64  `help:"Leave out what scores lower." placeholder:"N"`
	Detail   string   `help:"With --json: signature, schema or full." enum:"signature,schema,full" default:"signature"`
	After    []string `help:"A tool that was just used, for next steps; may be given several times." placeholder:"SERVER:TOOL"`
	Limit    int      `help:"How many." default:"8"`
	Offset   int      `help:"How many to skip."`
	Config   string   `help:"Configuration file." placeholder:"FILE"`
}

// Run lists what pml_discover finds.
func (c *discoverCmd) Run(ctx context.Context, a *app) error {
	request := search.Request{
		Intent: c.Intent, Limit: c.Limit, Offset: c.Offset, Detail: search.Detail(c.Detail), ContextTools: c.After,
		Filter: search.Filter{Type: c.Type, Server: c.Server, Name: c.Name, MinScore: c.MinScore},
	}
	return a.withGateway(ctx, c.Config, func(client *httpapi.Client) error {
		var raw json.RawMessage
		if err := client.CallTool(ctx, "pml_discover", request, &raw); err != nil {
			return err
		}
		var answer search.Answer
		if err := json.Unmarshal(raw, &answer); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		return a.print(raw, func(w io.Writer) { printFound(w, &answer) })
	})
}

func printFound(w io.Writer, answer *search.Answer) {
	for _, r := range answer.Results {
		fmt.Fprintf(w, "%s", r.Call)
		switch {
		case r.ToolResult != nil && r.Approval != "":
			fmt.Fprintf(w, "  (%s)", r.Approval)
		case r.CapabilityResult != nil:
			fmt.Fprintf(w, "  (%s, used %d times, %.0f %% with success)", r.State, r.UsageCount, 100*r.SuccessRate)
		}
		if r.Score != 0 {
			fmt.Fprintf(w, "  %.3f", r.Score)
		}
		fmt.Fprintf(w, "\n    %s\n    %s\n", r.Description, r.Signature)
	}
	for _, s := range answer.Suggestions {
		fmt.Fprintf(w, "→ %s %s: %s (%.2f)\n", s.ID, s.Name, s.Reason, s.Confidence)
	}
	fmt.Fprintf(w, "%d of %d\n", len(answer.Results), answer.Total)
	for _, note := range answer.Notes {
		fmt.Fprintln(w, note)
	}
	for _, s := range answer.Servers {
		fmt.Fprintf(w, "server %s is %s %s\n", s.Name, s.State, s.Error)
	}
}
