package analysis

import (
	"slices"

	"github.com/pml-run/pml/internal/structure"
)

// CodeOptions say what the program's text reads from args.
type CodeOptions struct {
	// Lift makes each lifted literal read its parameter.
	Lift bool
	// Provided are the names present in args: free variables of these names read
	// args.name.
	Provided []string
}

// Code is a text that can run in place of the program. Its lines are those of the
// program.
type Code struct {
	Text string
	// Nodes are the nodes that the text's marks name; nil when it has no marks.
	Nodes map[string]structure.NodeType

	text text
}

// Position maps a one-based line and UTF-16 column of Text to the program's source.
func (c Code) Position(line, column int) (int, int) { return c.text.position(line, column) }

// Code makes the text to run: with marks where the program could be analysed, and
// without where not.
func (p *Program) Code(o CodeOptions) (Code, error) {
	if !o.Lift && len(o.Provided) == 0 {
		return p.plain, nil
	}
	return p.source.code(o, p.Exact), nil
}

// origin is what remains of an analysis, to make code from. It is not written to
// once the analysis is complete.
type origin struct {
	src      string
	marks    []edit
	result   []edit // the implicit result, imports blanked, and checkpoints
	lifted   []edit
	provided map[string][]edit
	nodes    map[string]structure.NodeType
}

// code applies the edits, and leaves the marks out if the text would not parse.
func (g *origin) code(o CodeOptions, exact bool) Code {
	var reads []edit
	if o.Lift {
		reads = append(reads, g.lifted...)
	}
	for _, name := range o.Provided {
		reads = append(reads, g.provided[name]...)
	}
	if exact {
		made := apply(g.src, slices.Concat(g.result, reads, g.marks))
		if parses(made.out) {
			return Code{Text: made.out, Nodes: g.nodes, text: made}
		}
	}
	for _, edits := range [][]edit{slices.Concat(g.result, reads), g.result} {
		if made := apply(g.src, edits); len(edits) > 0 && parses(made.out) {
			return Code{Text: made.out, text: made}
		}
	}
	made := apply(g.src, nil)
	return Code{Text: made.out, text: made}
}

// readLiterals makes the lifted literals read their parameters. The line breaks of
// a literal stay, in front of what replaces it.
func (l *lifter) readLiterals() []edit {
	var out []edit
	for _, p := range l.list {
		if p.literal == "" {
			continue
		}
		for _, n := range p.sites {
			out = append(out, l.read(n, p.name))
		}
	}
	return out
}

// readNames makes the free variables read args, by name.
func (l *lifter) readNames() map[string][]edit {
	out := map[string][]edit{}
	for _, p := range l.list {
		if p.literal != "" || len(l.scopes.free[p.name]) == 0 {
			continue
		}
		for _, n := range l.scopes.free[p.name] {
			if l.scopes.find(n, argsName) != nil {
				continue
			}
			e := l.read(n, p.name)
			if l.kind(n) == "shorthand_property_identifier" {
				e.text = p.name + ":" + e.text
			}
			out[p.name] = append(out[p.name], e)
		}
	}
	return out
}

func (l *lifter) read(n node, name string) edit {
	s := l.at[n]
	e := edit{start: s.start, end: s.end, text: argsName + "." + name, opens: true, reach: s.end, layer: layerValue + 1, node: n}
	if e.start > 0 && isNameByte(l.src[e.start-1]) {
		e.text = " " + e.text
	}
	return e
}

// implicitResult makes the value of a last expression the program's result, unless
// the program returns one itself.
func (a *analysis) implicitResult() []edit {
	list := a.children(0)
	if len(list) == 0 || a.kind(list[len(list)-1]) != "expression_statement" {
		return nil
	}
	for _, e := range a.exits {
		if a.kind(e.at) == "return_statement" && a.owner[e.at] == a.program {
			return nil
		}
	}
	n := a.first(list[len(list)-1])
	if n < 0 {
		return nil
	}
	m := marker{analysis: a}
	m.wrap(n, layerBody, "return (", ")")
	return m.edits
}
