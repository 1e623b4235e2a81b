package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/pml-run/pml/internal/httpapi"
)

type serversCommand struct {
	Config string        `help:"Configuration file." placeholder:"FILE"`
	Wait   time.Duration `help:"Wait at most this long for servers that are starting." default:"30s" placeholder:"DURATION"`
}

// serverRow is one line of the list.
type serverRow struct {
	Name            string `json:"name"`
	State           string `json:"state"`
	Error           string `json:"error,omitempty"`
	Tools           int    `json:"tools"`
	Restarts        int    `json:"restarts,omitempty"`
	ProtocolVersion string `json:"protocol_version,omitempty"`
}

// waitEvery is the pause between two looks at servers that start.
const waitEvery = 200 * time.Millisecond

// Run lists the servers behind the gateway and their states.
func (c *serversCommand) Run(ctx context.Context, a *app) error {
	var rows []serverRow
	err := a.withGateway(ctx, c.Config, func(client *httpapi.Client) error {
		var err error
		rows, err = c.settled(ctx, client)
		return err
	})
	if err != nil {
		return err
	}
	return a.print(rows, func(w io.Writer) {
		if len(rows) == 0 {
			fmt.Fprintln(w, "no servers are configured; write a pml.json or run pml import")
			return
		}
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, r := range rows {
			fmt.Fprintf(t, "%s\t%s\t%d tools\t%s\t%s\n", r.Name, r.State, r.Tools, r.ProtocolVersion, r.Error)
		}
		_ = t.Flush()
	})
}

// settled reads the states until none is starting or the time is over.
func (c *serversCommand) settled(ctx context.Context, client *httpapi.Client) ([]serverRow, error) {
	deadline := time.Now().Add(c.Wait)
	for {
		var rows []serverRow
		if err := client.Servers(ctx, &rows); err != nil {
			return nil, err
		}
		starting := slices.ContainsFunc(rows, func(r serverRow) bool { return r.State == "starting" })
		if !starting || time.Now().After(deadline) {
			return rows, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(waitEvery):
		}
	}
}
