package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/trace"
)

// writeStructure lists the nodes, those inside a loop or fork indented, each with
// what may follow it and where its result goes.
func writeStructure(w io.Writer, s structure.Structure) {
	parents := parents(s)
	next := map[string][]string{}
	for _, e := range s.Edges {
		switch e.Type {
		case structure.Sequence:
			next[e.From] = append(next[e.From], "→ "+e.To)
		case structure.Conditional:
			next[e.From] = append(next[e.From], "→ "+e.To+" ["+e.Outcome+"]")
		case structure.Provides:
			next[e.From] = append(next[e.From], "⇢ "+e.To+" ("+e.Coverage+")")
		case structure.Contains: // shown by the indentation
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, n := range s.Nodes {
		indent := strings.Repeat("  ", depth(n.ID, parents))
		fmt.Fprintf(t, "  %s%s\t%s\t%s\n", indent, n.ID, n.Title(), strings.Join(next[n.ID], "  "))
	}
	_ = t.Flush() // the writer's own errors show with what is printed next
}

// parents maps each node to the innermost loop or fork around it.
func parents(s structure.Structure) map[string]string {
	out := map[string]string{}
	for _, e := range s.Edges {
		if e.Type == structure.Contains {
			out[e.To] = e.From
		}
	}
	return out
}

func depth(id string, parents map[string]string) int {
	d := 0
	for p := parents[id]; p != "" && d < 20; p = parents[p] {
		d++
	}
	return d
}

// writePath draws the path that a run took: one node a line, indented where a loop
// or fork contains it, with the outcome of decisions and how often and how well
// tools were called.
func writePath(w io.Writer, t trace.Trace, s structure.Structure) {
	around := parents(s)
	outcomes := map[string][]string{}
	for _, d := range t.Decisions {
		outcomes[d.NodeID] = append(outcomes[d.NodeID], d.Outcome)
	}
	calls := tally(t.Calls)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, id := range t.ExecutedPath {
		bend := "├─"
		if i == len(t.ExecutedPath)-1 {
			bend = "╰─"
		}
		n, known := s.Node(id)
		if !known {
			n = structure.Node{ID: id, Type: structure.Task, Tool: strings.TrimPrefix(id, "?")}
		}
		note := ""
		if list := outcomes[id]; len(list) > 0 {
			note, outcomes[id] = "= "+list[0], list[1:]
		} else if c, ok := calls[id]; ok {
			note = c.String()
		}
		fmt.Fprintf(table, "  %s%s %s\t%s\t%s\n", strings.Repeat("│ ", depth(id, around)), bend, id, n.Title(), note)
	}
	_ = table.Flush()
}

// tallied counts the calls of one node.
type tallied struct {
	ok, failed, open int
	ms               float64
}

func tally(calls []trace.Call) map[string]tallied {
	out := map[string]tallied{}
	for _, c := range calls {
		n := out[c.NodeID]
		switch c.Status {
		case trace.CallOK:
			n.ok++
		case trace.CallError:
			n.failed++
		case trace.CallStarted:
			n.open++
		}
		n.ms += float64(c.Duration.Microseconds()) / 1000
		out[c.NodeID] = n
	}
	return out
}

// String shows how the calls of a node ended.
func (t tallied) String() string {
	var parts []string
	if t.ok > 0 {
		parts = append(parts, fmt.Sprintf("%d ok", t.ok))
	}
	if t.failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", t.failed))
	}
	if t.open > 0 {
		parts = append(parts, fmt.Sprintf("%d of unknown outcome", t.open))
	}
	return fmt.Sprintf("%s, %.1f ms", strings.Join(parts, ", "), t.ms)
}
