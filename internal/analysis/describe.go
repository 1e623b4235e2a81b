package analysis

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/pml-run/pml/internal/structure"
)

// Describe writes what is known of a program for a person to read.
func Describe(w io.Writer, p *Program) {
	marks := "with marks"
	if !p.Exact {
		marks = "without marks"
	}
	fmt.Fprintf(w, "hash   %s\nshape  %s\nruns   %s\n", p.HashExact, p.HashShape, marks)
	describeNodes(w, p)
	describeEdges(w, p.Structure.Edges)
	describeParameters(w, p)
	for _, d := range p.Diagnostics {
		where := ""
		if d.Line > 0 {
			where = fmt.Sprintf(" %d:%d", d.Line, d.Column)
		}
		fmt.Fprintf(w, "%s%s  %s\n", d.Severity, where, d.Message)
	}
}

func describeNodes(w io.Writer, p *Program) {
	if len(p.Structure.Nodes) == 0 {
		fmt.Fprintln(w, "\nno calls of tools")
		return
	}
	fmt.Fprintln(w, "\nnodes")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, n := range p.Structure.Nodes {
		i := p.Info[n.ID]
		var notes []string
		if n.Ref {
			notes = append(notes, "passed as a value")
		}
		for _, path := range sortedPaths(i.Args) {
			if from := describeSources(i.Args[path]); from != "" {
				notes = append(notes, path+" ← "+from)
			}
		}
		fmt.Fprintf(t, "  %s\t%d:%d\t%s\t%s\n", n.ID, i.Line, i.Column, n.Title(), strings.Join(notes, ", "))
	}
	_ = t.Flush() // the writer's own errors show with what is printed next
}

// describeSources lists where a value comes from; ~ marks what is changed on the way.
func describeSources(sources []structure.Source) string {
	var out []string
	for _, s := range sources {
		name := s.Node
		if s.Path != "" {
			name = join(name, s.Path)
		}
		if !s.Exact {
			name = "~" + name
		}
		out = append(out, name)
	}
	return strings.Join(out, " | ")
}

func describeEdges(w io.Writer, edges []structure.Edge) {
	if len(edges) == 0 {
		return
	}
	fmt.Fprintln(w, "\nedges")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, e := range edges {
		note := e.Outcome
		switch {
		case e.Branch != nil:
			note = fmt.Sprintf("branch %d", *e.Branch)
		case e.Coverage != "":
			note = e.Coverage + " by " + e.Via
		}
		fmt.Fprintf(t, "  %s\t→ %s\t%s\t%s\n", e.From, e.To, e.Type, note)
	}
	_ = t.Flush()
}

func describeParameters(w io.Writer, p *Program) {
	if len(p.Parameters) == 0 {
		return
	}
	fmt.Fprintln(w, "\nparameters")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, q := range p.Parameters {
		need := "optional"
		if q.Required {
			need = "required"
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", q.Name, need, q.Schema)
	}
	_ = t.Flush()
}
