package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pml-run/pml/internal/httpapi"
	"github.com/pml-run/pml/internal/jobs"
)

// startJobs starts what is done in the background. It comes last: the jobs use all
// that is before them.
func (p *parts) startJobs(ctx context.Context, o Options, registry prometheus.Registerer) error {
	r, err := jobs.New(p.store.Pool(), []jobs.Kind{
		jobs.Promote(p.store, registry),
		jobs.Retire(p.store, time.Now),
		jobs.Expire(p.store, func() int64 { return p.config.current().Results.Quota() }, time.Now),
		jobs.Retain(p.store, time.Now),
		jobs.Graph(p.store),
		jobs.Replay(p.store, time.Now),
		jobs.Embed(p.found),
		jobs.Forget(p.dropOldResults),
	}, jobs.Options{Logger: o.Logger, Registerer: registry})
	if err != nil {
		return err
	}
	if err := r.Start(ctx); err != nil {
		return err
	}
	p.jobs = r
	p.onStop(r.Stop)
	return nil
}

// Jobs lists the kinds of background jobs with what became of the latest of each.
func (g *Gateway) Jobs(ctx context.Context) ([]httpapi.Job, error) {
	p, err := g.await(ctx)
	if err != nil {
		return nil, asFault(err)
	}
	states, err := p.jobs.States(ctx)
	out := make([]httpapi.Job, len(states))
	for i, s := range states {
		out[i] = jobOf(s)
	}
	return out, err
}

// RunJob has a job done now and waits for its end.
func (g *Gateway) RunJob(ctx context.Context, kind string) (httpapi.Job, error) {
	p, err := g.await(ctx)
	if err != nil {
		return httpapi.Job{}, asFault(err)
	}
	s, err := p.jobs.Run(ctx, kind)
	return jobOf(s), err
}

func jobOf(s jobs.State) httpapi.Job {
	j := httpapi.Job{
		Kind: s.Kind.Name, About: s.Kind.About, EverySeconds: s.Kind.Every.Seconds(),
		Outcome: string(s.Outcome), Detail: s.Detail, DurationMS: float64(s.Took.Microseconds()) / 1000, NextRun: s.Next,
	}
	if !s.At.IsZero() {
		j.LastRun = &s.At
	}
	return j
}

// checkJobs shows each kind of job with its latest and its next run.
func (p *parts) checkJobs(ctx context.Context, c *Checkup) {
	states, err := p.jobs.States(ctx)
	if err != nil {
		c.add("jobs", checkProblem, "%v", err)
		return
	}
	for _, s := range states {
		name, last := "job "+s.Kind.Name, string(s.Outcome)
		if !s.At.IsZero() {
			last += " " + s.At.UTC().Format(time.DateTime)
		}
		if s.Took > 0 {
			last += fmt.Sprintf(" in %s", s.Took.Round(time.Millisecond))
		}
		if s.Detail != "" {
			last += ": " + s.Detail
		}
		state := checkOK
		if s.Outcome == jobs.Failed {
			state = checkWarning
		}
		c.add(name, state, "%s; next %s", last, s.Next.UTC().Format(time.DateTime))
		if s.Outcome == jobs.Failed {
			c.hint("try it with 'pml jobs run %s'", s.Kind.Name)
		}
	}
}
