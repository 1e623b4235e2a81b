package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/httpapi"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/trace"
)

type traceCommand struct {
	Ls   traceListCommand `cmd:"" help:"List runs, the latest first."`
	Show traceShowCommand `cmd:"" help:"Show one run: its path, calls and logs."`
}

type traceListCommand struct {
	Status string `help:"Only runs in this state." placeholder:"STATE"`
	Query  string `help:"Only runs whose intent has these words." placeholder:"WORDS"`
	Limit  int    `help:"How many." default:"20"`
	Offset int    `help:"How many to skip."`
}

// Run lists runs.
func (c *traceListCommand) Run(ctx context.Context, a *app) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		runs, err := client.Runs(ctx, httpapi.RunFilter{Status: c.Status, Query: c.Query, Limit: c.Limit, Offset: c.Offset})
		if err != nil {
			return err
		}
		return a.print(runs, func(w io.Writer) { writeRuns(w, runs) })
	})
}

func writeRuns(w io.Writer, runs []trace.Run) {
	if len(runs) == 0 {
		fmt.Fprintln(w, "no runs")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range runs {
		note := ""
		if r.Error != nil {
			note = string(r.Error.Code)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d ms\t%s\t%s\n",
			r.ID, shortTime(r.StartedAt, time.Now()), r.Status, r.Duration.Milliseconds(), execute.Preview(r.Intent, 60), note)
	}
	_ = t.Flush()
}

type traceShowCommand struct {
	ID string `arg:"" help:"Workflow id."`
}

// Run shows one run.
func (c *traceShowCommand) Run(ctx context.Context, a *app) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		t, err := client.Trace(ctx, c.ID)
		if err != nil {
			return err
		}
		return a.print(t, func(w io.Writer) { writeTrace(w, t, structureOf(ctx, client, t)) })
	})
}

// structureOf finds the structure of the program that a run was of, as far as it is
// still known.
func structureOf(ctx context.Context, client *httpapi.Client, t trace.Trace) structure.Structure {
	if t.Run.Capability == uuid.Nil {
		return structure.Structure{}
	}
	d, err := client.Capability(ctx, t.Run.Capability.String())
	if err != nil {
		return structure.Structure{}
	}
	for _, v := range d.Versions {
		if v.Number == t.CapabilityVersion {
			return v.Structure
		}
	}
	return d.Capability.Structure
}

func writeTrace(w io.Writer, t trace.Trace, s structure.Structure) {
	r := t.Run
	fmt.Fprintf(w, "%s  %s\n%s, %s, %d ms", r.ID, r.Intent, r.Status, shortTime(r.StartedAt, time.Now()), r.Duration.Milliseconds())
	if t.SandboxLevel != "" {
		fmt.Fprintf(w, ", sandbox %s", t.SandboxLevel)
	}
	fmt.Fprintln(w)
	if r.Error != nil {
		report(w, r.Error)
	}
	writePath(w, t, s)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range t.Calls {
		note := execute.Preview(string(c.Result), 60)
		if c.Error != nil {
			note = execute.Preview(c.Error.Message, 100)
		}
		fmt.Fprintf(table, "  %s#%d\t%s\t%s\t%.1f ms\t%s\n",
			c.NodeID, c.Occurrence, c.Tool, c.Status, float64(c.Duration.Microseconds())/1000, strings.ReplaceAll(note, "\n", " "))
	}
	_ = table.Flush()
	for _, line := range r.Logs {
		fmt.Fprintf(w, "log   %s\n", line)
	}
}

type cancelCommand struct {
	ID string `arg:"" help:"Workflow id of the run."`
}

// Run ends a run in progress; calls in flight are told to stop.
func (c *cancelCommand) Run(ctx context.Context, a *app) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		if err := client.CancelRun(ctx, c.ID); err != nil {
			return err
		}
		return a.print(struct{}{}, func(w io.Writer) { fmt.Fprintln(w, "cancelled") })
	})
}
