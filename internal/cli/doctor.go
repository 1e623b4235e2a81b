package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/pml-run/pml/internal/httpapi"
)

type doctorCommand struct {
	Config string `help:"Configuration file." placeholder:"FILE"`
}

// checkup is what the gateway says about itself.
type checkup struct {
	Checks []struct {
		Name   string `json:"name"`
		State  string `json:"state"` // ok, warning, problem
		Detail string `json:"detail"`
		Hint   string `json:"hint,omitempty"`
	} `json:"checks"`
}

// Run shows what is in force; a problem gives exit code 1.
func (c *doctorCommand) Run(ctx context.Context, a *app) error {
	return a.withGateway(ctx, c.Config, func(client *httpapi.Client) error {
		var found checkup
		if err := client.Doctor(ctx, &found); err != nil {
			return err
		}
		if err := a.print(found, func(w io.Writer) { found.write(w) }); err != nil {
			return err
		}
		for _, check := range found.Checks {
			if check.State == "problem" {
				return exitError(exitFailed)
			}
		}
		return nil
	})
}

func (c *checkup) write(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, check := range c.Checks {
		fmt.Fprintf(t, "%s\t%s\t%s\n", check.State, check.Name, check.Detail)
		if check.Hint != "" {
			fmt.Fprintf(t, "\t\t→ %s\n", check.Hint)
		}
	}
	_ = t.Flush()
}
