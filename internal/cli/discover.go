package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/httpapi"
)

type discoverCmd struct {
	Intent string `arg:"" optional:"" help:"What you want to do; nothing lists all tools."`
	Server string `help:"Only this server." placeholder:"NAME"`
	Limit  int    `help:"How many." default:"8"`
	Offset int    `help:"How many to skip."`
	Config string `help:"Configuration file." placeholder:"FILE"`
}

// Run lists what pml_discover finds.
func (c *discoverCmd) Run(ctx context.Context, a *app) error {
	request := map[string]any{"intent": c.Intent, "limit": c.Limit, "offset": c.Offset}
	if c.Server != "" {
		request["filter"] = map[string]string{"server": c.Server}
	}
	return a.withGateway(ctx, c.Config, func(client *httpapi.Client) error {
		var raw json.RawMessage
		if err := client.CallTool(ctx, "pml_discover", request, &raw); err != nil {
			return err
		}
		var answer struct {
			Results []struct{ Call, Description string }
			Total   int
		}
		if err := json.Unmarshal(raw, &answer); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		return a.print(raw, func(w io.Writer) {
			for _, r := range answer.Results {
				fmt.Fprintf(w, "%s\n    %s\n", r.Call, execute.Preview(r.Description, 200))
			}
			fmt.Fprintf(w, "%d of %d\n", len(answer.Results), answer.Total)
		})
	})
}
