package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/httpapi"
	"github.com/pml-run/pml/internal/tool"
)

type capabilityCommand struct {
	Ls       capabilityListCommand     `cmd:"" help:"List capabilities, the most used first."`
	Show     capabilityShowCommand     `cmd:"" help:"Show one: its structure and what was learnt."`
	Add      capabilityAddCommand      `cmd:"" help:"Store a program, or a tool with default arguments, as a candidate."`
	Rename   capabilityRenameCommand   `cmd:"" help:"Give one another name; the old one stays an alias."`
	Rollback capabilityRollbackCommand `cmd:"" help:"Make an earlier version the one that runs."`
	Retire   capabilityRetireCommand   `cmd:"" help:"Put one away: it is no longer found or run."`
	Cache    capabilityCacheCommand    `cmd:"" help:"Show or say whether its results may be answered from the cache."`
	Export   capabilityExportCommand   `cmd:"" help:"Write capabilities to stdout or a file, for another installation."`
	Import   capabilityImportCommand   `cmd:"" help:"Read such a file; what is in it starts as candidates."`
}

type capabilityListCommand struct {
	State  string `help:"Only those in this state." placeholder:"STATE"`
	Query  string `help:"Only those with these words in name or intent." placeholder:"WORDS"`
	Limit  int    `help:"How many." default:"50"`
	Offset int    `help:"How many to skip."`
}

// Run lists capabilities.
func (c *capabilityListCommand) Run(ctx context.Context, a *app) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		list, err := client.Capabilities(ctx, httpapi.CapabilityFilter{State: capability.State(c.State), Query: c.Query, Limit: c.Limit, Offset: c.Offset})
		if err != nil {
			return err
		}
		return a.print(list, func(w io.Writer) { writeCapabilities(w, list) })
	})
}

func writeCapabilities(w io.Writer, list []capability.Capability) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no capabilities")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range list {
		fmt.Fprintf(t, "%s\tv%d\t%s\t%d runs\t%.0f %%\t%s\n", c.Name, c.Version, c.State, c.UsageCount, 100*c.SuccessRate, execute.Preview(c.Intent, 60))
	}
	_ = t.Flush()
}

type capabilityShowCommand struct {
	Name string `arg:"" help:"Name, alias or id."`
}

// Run shows one capability.
func (c *capabilityShowCommand) Run(ctx context.Context, a *app) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		d, err := client.Capability(ctx, c.Name)
		if err != nil {
			return err
		}
		return a.print(d, func(w io.Writer) { writeCapability(w, d) })
	})
}

func writeCapability(w io.Writer, d httpapi.CapabilityDetail) {
	c := d.Capability
	fmt.Fprintf(w, "%s  version %d of %d, %s", c.Name, c.Version, len(d.Versions), c.State)
	if c.StateReason != "" {
		fmt.Fprintf(w, " (%s)", c.StateReason)
	}
	if c.Partial {
		fmt.Fprint(w, ", partial")
	}
	fmt.Fprintf(w, "\n%s\n", c.Intent)
	if len(c.Aliases) > 0 {
		fmt.Fprintf(w, "also called %s\n", strings.Join(c.Aliases, ", "))
	}
	fmt.Fprintf(w, "%d runs, %d succeeded, %d failed, %.1f ms on average\n", c.UsageCount, c.SuccessCount, c.FailureCount, c.AvgDurationMS)
	fmt.Fprintf(w, "hash %s, shape %s\n", c.HashExact, c.HashShape)
	writeParameters(w, c)
	writeOutput(w, c.Learning.Output)
	writeStructure(w, c.Structure)
	writeLearning(w, c.Learning)
	for _, v := range d.Versions {
		fmt.Fprintf(w, "version %d  %s  %s\n", v.Number, shortTime(v.CreatedAt, time.Now()), v.Reason)
	}
}

func writeParameters(w io.Writer, c capability.Capability) {
	for _, p := range c.Interface() {
		need := ""
		if p.Required {
			need = "  required"
		}
		fmt.Fprintf(w, "parameter %s  %s%s\n", p.Name, p.Schema, need)
	}
}

func writeOutput(w io.Writer, o tool.Observed) {
	if o.Count > 0 {
		fmt.Fprintf(w, "result  %s  seen in %d runs\n", tool.TypeOf(o.Schema(), 0), o.Count)
	}
}

func writeLearning(w io.Writer, l capability.Learning) {
	for _, p := range l.Paths {
		mark := "  "
		if p.Hash == l.DominantPath {
			mark = "* "
		}
		fmt.Fprintf(w, "%spath %s  %d runs, success %.2f, %.1f ms\n", mark, strings.Join(p.Path, " → "), p.Count, p.SuccessRate, p.AvgDurationMS)
	}
	for _, d := range l.Decisions {
		fmt.Fprintf(w, "  decision %s = %s  %d runs, success %.2f\n", d.NodeID, d.Outcome, d.Count, d.SuccessRate)
	}
}

type capabilityAddCommand struct {
	File   string  `arg:"" optional:"" help:"TypeScript program."`
	Tool   tool.ID `help:"Delegate to this tool instead, server:tool." placeholder:"ID"`
	Args   string  `help:"Default arguments of the tool, as a JSON object." placeholder:"JSON"`
	Name   string  `help:"Name; default made of the intent." placeholder:"NAME"`
	Intent string  `help:"What it is for." required:""`
}

// Run stores a candidate.
func (c *capabilityAddCommand) Run(ctx context.Context, a *app) error {
	source, err := c.source()
	if err != nil {
		return err
	}
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		stored, err := client.AddCapability(ctx, capability.Capability{Name: c.Name, Intent: c.Intent, Source: source})
		if err != nil {
			return err
		}
		return a.print(stored, func(w io.Writer) { fmt.Fprintf(w, "%s  version %d, %s\n", stored.Name, stored.Version, stored.State) })
	})
}

func (c *capabilityAddCommand) source() (capability.Source, error) {
	if (c.File == "") == (c.Tool == "") {
		return capability.Source{}, usageError{errors.New("name either a program's file or a --tool")}
	}
	if c.Tool != "" {
		if c.Args != "" && !json.Valid([]byte(c.Args)) {
			return capability.Source{}, usageError{errors.New("--args is no JSON")}
		}
		return capability.Source{Type: capability.ToolSource, ToolID: c.Tool, DefaultArgs: json.RawMessage(c.Args)}, nil
	}
	b, err := os.ReadFile(c.File)
	if err != nil {
		return capability.Source{}, usageError{err}
	}
	return capability.Source{Type: capability.CodeSource, Code: string(b)}, nil
}

type capabilityRenameCommand struct {
	Name string `arg:"" help:"Present name."`
	To   string `arg:"" help:"New name."`
}

// Run renames a capability.
func (c *capabilityRenameCommand) Run(ctx context.Context, a *app) error {
	return a.changeCapability(ctx, c.Name, httpapi.CapabilityChange{Rename: c.To}, "renamed to "+c.To)
}

type capabilityRollbackCommand struct {
	Name    string `arg:"" help:"Name."`
	Version int    `arg:"" help:"Version that is to run by name."`
}

// Run sets a capability back.
func (c *capabilityRollbackCommand) Run(ctx context.Context, a *app) error {
	if c.Version < 1 {
		return usageError{fmt.Errorf("version %d: use 1 or more", c.Version)}
	}
	return a.changeCapability(ctx, c.Name, httpapi.CapabilityChange{Version: c.Version}, fmt.Sprintf("set back to version %d", c.Version))
}

type capabilityRetireCommand struct {
	Name   string `arg:"" help:"Name."`
	Reason string `help:"Why." default:"retired by a person"`
}

// Run retires a capability.
func (c *capabilityRetireCommand) Run(ctx context.Context, a *app) error {
	return a.changeCapability(ctx, c.Name, httpapi.CapabilityChange{Retire: c.Reason}, "retired")
}

func (a *app) changeCapability(ctx context.Context, name string, change httpapi.CapabilityChange, done string) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		if err := client.ChangeCapability(ctx, name, change); err != nil {
			return err
		}
		return a.done(name + " " + done)
	})
}

type capabilityExportCommand struct {
	Names []string `arg:"" help:"Names."`
	File  string   `help:"File to write; default stdout." placeholder:"FILE"`
}

// Run exports capabilities.
func (c *capabilityExportCommand) Run(ctx context.Context, a *app) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		file, err := client.ExportCapabilities(ctx, c.Names)
		if err != nil {
			return err
		}
		text := indented(file) + "\n"
		if c.File == "" {
			_, err := io.WriteString(a.env.Stdout, text)
			return err
		}
		if err := os.WriteFile(c.File, []byte(text), 0o600); err != nil {
			return fmt.Errorf("write export: %w", err)
		}
		return a.done("exported to " + c.File)
	})
}

type capabilityImportCommand struct {
	File string `arg:"" help:"File of an export; - is stdin."`
}

// Run imports capabilities.
func (c *capabilityImportCommand) Run(ctx context.Context, a *app) error {
	in, err := a.open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		list, err := client.ImportCapabilities(ctx, in)
		if err != nil {
			return err
		}
		return a.print(list, func(w io.Writer) { writeCapabilities(w, list) })
	})
}
