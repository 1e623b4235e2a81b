package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/httpapi"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/tool"
)

// byCommand is how an answer from the command line is signed.
const byCommand = "cli"

type approvalsCommand struct{}

// Run lists what waits for a person.
func (approvalsCommand) Run(ctx context.Context, a *app) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		waiting, err := client.Approvals(ctx)
		if err != nil {
			return err
		}
		return a.print(waiting, func(w io.Writer) {
			for _, q := range waiting {
				writeApproval(w, q)
			}
			if len(waiting) == 0 {
				fmt.Fprintln(w, "nothing waits for an answer")
			}
		})
	})
}

// writeApproval writes a question the way a person decides on it.
func writeApproval(w io.Writer, a policy.Approval) {
	fmt.Fprintf(w, "%s  %s, asked %s", a.ID, a.Status, shortTime(a.CreatedAt, time.Now()))
	if !a.ExpiresAt.IsZero() {
		fmt.Fprintf(w, ", expires %s", a.ExpiresAt.Local().Format("Jan 2 15:04"))
	}
	fmt.Fprintf(w, "\n  %s\n", a.Requested.Intent)
	for _, q := range a.Requested.Asks {
		call := q.Call
		if call == "" {
			call = execute.Preview(string(q.Args), 400)
		}
		place := ""
		if q.Line > 0 {
			place = fmt.Sprintf("  line %d:", q.Line)
		}
		fmt.Fprintf(w, "  %s asks: %s\n   %s %s\n", q.Tool, q.Reason, place, call)
	}
}

type approveCommand struct {
	ID       string    `arg:"" help:"Approval, or the run that waits."`
	Workflow bool      `help:"Allow these tools for the rest of the run."`
	Always   bool      `help:"Allow these tools from now on."`
	Tool     []tool.ID `help:"With --always: only this tool. Repeatable." placeholder:"ID"`
	Reason   string    `help:"Kept with the answer." placeholder:"TEXT"`
}

// Run lets a run go on.
func (c *approveCommand) Run(ctx context.Context, a *app) error {
	answer := policy.Answer{Approved: true, Scope: policy.Once, Always: c.Tool, Reason: c.Reason, By: byCommand}
	switch {
	case c.Always && c.Workflow:
		return usageError{errors.New("choose one of --always and --workflow")}
	case c.Always:
		answer.Scope = policy.Always
	case c.Workflow:
		answer.Scope = policy.ForWorkflow
	case len(c.Tool) > 0:
		return usageError{errors.New("--tool says which tools --always is about")}
	}
	return decide(ctx, a, c.ID, answer)
}

type rejectCommand struct {
	ID     string `arg:"" help:"Approval, or the run that waits."`
	Reason string `arg:"" optional:"" help:"What the agent is told."`
}

// Run ends a run that waits.
func (c *rejectCommand) Run(ctx context.Context, a *app) error {
	return decide(ctx, a, c.ID, policy.Answer{Reason: c.Reason, By: byCommand})
}

func decide(ctx context.Context, a *app, id string, answer policy.Answer) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		decided, err := client.Decide(ctx, id, answer)
		if err != nil {
			return err
		}
		return a.print(decided, func(w io.Writer) {
			fmt.Fprintf(w, "%s: %s\n", decided.Status, decided.Requested.Intent)
			if decided.Status == policy.Approved {
				fmt.Fprintf(w, "run %s goes on; see pml trace show %s\n", decided.WorkflowID, decided.WorkflowID)
			}
		})
	})
}

type policyCommand struct {
	List   policyListCommand   `cmd:"" name:"ls" default:"1" help:"List the rules in force."`
	Allow  policyAllowCommand  `cmd:"" help:"Allow the tools that a pattern matches."`
	Ask    policyAskCommand    `cmd:"" help:"Ask before the tools that a pattern matches."`
	Deny   policyDenyCommand   `cmd:"" help:"Never call the tools that a pattern matches."`
	Revoke policyRevokeCommand `cmd:"" help:"End a rule."`
}

type policyListCommand struct{}

// Run lists the rules.
func (policyListCommand) Run(ctx context.Context, a *app) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		rules, err := client.Rules(ctx)
		if err != nil {
			return err
		}
		return a.print(rules, func(w io.Writer) {
			t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			for _, r := range rules {
				number, by := "", ""
				if r.ID > 0 {
					number = strconv.FormatInt(r.ID, 10)
				}
				if r.CreatedBy != "" {
					by = "by " + r.CreatedBy
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", number, r.Effect, r.Pattern, r.Origin, by)
			}
			_ = t.Flush()
			if len(rules) == 0 {
				fmt.Fprintln(w, "no rules: what a tool's server says of it decides")
			}
		})
	})
}

// pattern is what the commands that add a rule take.
type pattern struct {
	Pattern string `arg:"" help:"server:tool, server:*, *:delete_* or *."`
}

func (p pattern) add(ctx context.Context, a *app, effect policy.Effect) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		return client.AddRule(ctx, policy.Rule{Pattern: p.Pattern, Effect: effect, Origin: policy.FromPerson, CreatedBy: byCommand})
	})
}

type policyAllowCommand struct{ pattern }

// Run adds a rule.
func (c *policyAllowCommand) Run(ctx context.Context, a *app) error {
	return c.add(ctx, a, policy.Allow)
}

type policyAskCommand struct{ pattern }

// Run adds a rule.
func (c *policyAskCommand) Run(ctx context.Context, a *app) error { return c.add(ctx, a, policy.Ask) }

type policyDenyCommand struct{ pattern }

// Run adds a rule.
func (c *policyDenyCommand) Run(ctx context.Context, a *app) error { return c.add(ctx, a, policy.Deny) }

type policyRevokeCommand struct {
	ID int64 `arg:"" help:"Number of the rule."`
}

// Run ends a rule.
func (c *policyRevokeCommand) Run(ctx context.Context, a *app) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error { return client.RevokeRule(ctx, c.ID) })
}

// askOnTerminal asks the person at the keyboard. ok is false where nobody is there.
func askOnTerminal(a *app, q policy.Approval) (answer policy.Answer, ok bool) {
	f, isFile := a.env.Stdin.(*os.File)
	if !isFile {
		return answer, false
	}
	if !term.IsTerminal(int(f.Fd())) {
		return answer, false
	}
	writeApproval(a.env.Stderr, q)
	fmt.Fprint(a.env.Stderr, "allow it? [y]es, [a]lways, [N]o: ")
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		return answer, false
	}
	answer.By = byCommand
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		answer.Approved, answer.Scope = true, policy.Once
	case "a", "always":
		answer.Approved, answer.Scope = true, policy.Always
	}
	return answer, true
}
