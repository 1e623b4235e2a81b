package daemon

import (
	"context"
	"fmt"
	"strings"
)

// Checkup is what pml doctor shows.
type Checkup struct {
	Checks []Check `json:"checks"`
}

// Check is one line of a Checkup. State is "ok", "warning" or "problem".
type Check struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

// The states of a Check.
const (
	checkOK      = "ok"
	checkWarning = "warning"
	checkProblem = "problem"
)

// Doctor reports what is in force.
func (g *Gateway) Doctor(ctx context.Context) (any, error) {
	p, err := g.await(ctx)
	if err != nil {
		return Checkup{Checks: []Check{{"gateway", checkProblem, err.Error(), ""}}}, nil //nolint:nilerr // the report is what was asked for
	}
	c := &Checkup{}
	c.add("version", checkOK, "%s", g.options.Version)
	c.add("data folder", checkOK, "%s", g.options.Home)
	c.add("deno", checkOK, "%s at %s", p.deno.Version, p.deno.Path)
	p.checkSandbox(c)
	p.checkStore(ctx, c)
	p.checkConfig(c)
	p.checkServers(c)
	p.checkJobs(ctx, c)
	return c, nil
}

func (c *Checkup) add(name, state, format string, args ...any) {
	c.Checks = append(c.Checks, Check{Name: name, State: state, Detail: fmt.Sprintf(format, args...)})
}

// hint tells what to do about the last check.
func (c *Checkup) hint(format string, args ...any) {
	c.Checks[len(c.Checks)-1].Hint = fmt.Sprintf(format, args...)
}

func (p *parts) checkSandbox(c *Checkup) {
	r := p.sandbox.Report()
	if len(r.Missing) == 0 {
		c.add("sandbox", checkOK, "%s, jit %v", r.Level, r.JIT)
		return
	}
	c.add("sandbox", checkWarning, "%s, jit %v", r.Level, r.JIT)
	c.hint("not in force: %s", strings.Join(r.Missing, "; "))
}

func (p *parts) checkStore(ctx context.Context, c *Checkup) {
	backend, err := p.store.Backend(ctx)
	if err != nil {
		c.add("database", checkProblem, "%v", err)
		return
	}
	c.add("database", checkOK, "%s", backend)
	if v, err := p.store.VectorVersion(ctx); err != nil {
		c.add("pgvector", checkProblem, "%v", err)
	} else {
		c.add("pgvector", checkOK, "%s", v)
	}
}

func (p *parts) checkConfig(c *Checkup) {
	path, problems := p.config.status()
	if path == "" {
		c.add("configuration", checkWarning, "no file found")
		c.hint("write a pml.json, or run pml import")
		return
	}
	if len(problems) == 0 {
		c.add("configuration", checkOK, "%s", path)
	}
	for _, problem := range problems {
		c.add("configuration", checkWarning, "%s", problem)
	}
}

func (p *parts) checkServers(c *Checkup) {
	for _, s := range p.upstream.States() {
		state := checkOK
		if s.Error != "" {
			state = checkProblem
		}
		c.add("server "+s.Name, state, "%s, %d tools %s", s.State, s.Tools, s.Error)
		if s.Hint != "" {
			c.hint("%s", s.Hint)
		}
	}
}
