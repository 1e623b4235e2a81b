package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/pml-run/pml/internal/httpapi"
)

type jobsCommand struct {
	List jobsListCommand `cmd:"" name:"ls" default:"1" help:"List the kinds of jobs with their last and next runs."`
	Run  jobsRunCommand  `cmd:"" help:"Do one now."`
}

type jobsListCommand struct{}

// Run lists the jobs.
func (jobsListCommand) Run(ctx context.Context, a *app) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		list, err := client.Jobs(ctx)
		if err != nil {
			return err
		}
		return a.print(list, func(w io.Writer) { writeJobs(w, list, time.Now()) })
	})
}

func writeJobs(w io.Writer, list []httpapi.Job, now time.Time) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, j := range list {
		last := "-"
		if j.LastRun != nil {
			last = shortTime(*j.LastRun, now)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.0f ms\tnext in %s\t%s\n", j.Kind, j.Outcome, last, j.DurationMS, j.NextRun.Sub(now).Round(time.Second), j.Detail)
	}
	_ = t.Flush()
}

type jobsRunCommand struct {
	Kind string `arg:"" help:"Kind of job."`
}

// Run does one job; one that fails gives exit code 1.
func (c *jobsRunCommand) Run(ctx context.Context, a *app) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		job, err := client.RunJob(ctx, c.Kind)
		if err != nil {
			return err
		}
		err = a.print(job, func(w io.Writer) {
			fmt.Fprintf(w, "%s  %s, %.0f ms: %s\n", job.Kind, job.Outcome, job.DurationMS, job.Detail)
		})
		if err == nil && job.Outcome == "failed" {
			err = exitError(exitFailed)
		}
		return err
	})
}
