package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/httpapi"
)

type graphCommand struct {
	Node string `arg:"" optional:"" help:"A tool's id or a capability's name: shows what comes before and after it."`
}

// Run shows which tools and capabilities go together.
func (c *graphCommand) Run(ctx context.Context, a *app) error {
	return a.withGateway(ctx, "", func(client *httpapi.Client) error {
		g, err := client.Graph(ctx, c.Node)
		if err != nil {
			return err
		}
		return a.print(g, func(w io.Writer) { writeGraph(w, g, time.Now()) })
	})
}

func writeGraph(w io.Writer, g httpapi.Graph, now time.Time) {
	fmt.Fprintf(w, "version %d of %s, modularity %.2f\n", g.Version, shortTime(g.ComputedAt, now), g.Modularity)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "COMMUNITY\tCLUSTER\tRANK\tNODE")
	names := map[string]string{}
	for _, n := range g.Nodes {
		names[n.ID] = nodeName(n)
		fmt.Fprintf(t, "%d\t%d\t%.3f\t%s\n", n.Community, n.Cluster, n.Rank, nodeName(n))
	}
	for _, e := range g.Edges {
		arrow, other := "→", e.To
		if e.To == g.Nodes[0].ID {
			arrow, other = "←", e.From
		}
		fmt.Fprintf(t, "%s\t\t%.2f\t%s\t%s\n", arrow, e.Weight, cmp.Or(names[other], other), edgeText(e))
	}
	_ = t.Flush()
}

func nodeName(n httpapi.GraphNode) string { return cmp.Or(n.Name, n.ID) }

// edgeText says how an edge is known, and which field it fills with which.
func edgeText(e capability.Edge) string {
	text := fmt.Sprintf("%s, %s", e.Type, e.Source)
	if e.Count > 0 {
		text += fmt.Sprintf(" %d times", e.Count)
	}
	fields := make([]string, len(e.FieldMapping))
	for i, m := range e.FieldMapping {
		fields[i] = m.From + " ⇢ " + m.To
	}
	if len(fields) > 0 {
		text += ": " + strings.Join(fields, ", ")
	}
	return text
}
