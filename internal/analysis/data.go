package analysis

import (
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/structure"
)

// data follows values through the program, on demand and regardless of order: a
// binding has the values of all its definitions.
type data struct {
	*analysis
	known   map[*binding]*value
	busy    map[*binding]bool  // being followed: a cycle adds nothing
	running map[*function]bool // the same for results
	depth   int

	sites     map[*function][]node // calls that enter a function
	callbacks map[*function][]node // calls that a function is passed to
}

func newData(a *analysis) *data {
	d := &data{
		analysis: a, known: map[*binding]*value{}, busy: map[*binding]bool{}, running: map[*function]bool{},
		sites: map[*function][]node{}, callbacks: map[*function][]node{},
	}
	for n, kind := range a.all() {
		if kind != "call_expression" {
			continue
		}
		for _, f := range a.callees[n] {
			d.sites[f] = append(d.sites[f], n)
		}
		for _, arg := range a.arguments(n) {
			if f := a.functionAt(arg); f != nil {
				d.callbacks[f] = append(d.callbacks[f], n)
			}
		}
	}
	return d
}

// of is the value of a binding.
func (d *data) of(b *binding) *value {
	if v := d.known[b]; v != nil {
		return v
	}
	if d.busy[b] {
		return nothing
	}
	d.busy[b] = true
	var all []*value
	for _, def := range b.definitions {
		all = append(all, d.defined(def))
	}
	delete(d.busy, b)
	v := union(all...)
	if len(d.busy) == 0 && len(d.running) == 0 {
		d.known[b] = v
	}
	return v
}

func (d *data) defined(def definition) *value {
	switch def.kind {
	case fromValue:
		return d.eval(def.value).along(def.path)
	case fromMutation:
		return elements(d.eval(def.value).along(def.path))
	case fromParameter:
		return d.parameter(d.functions[def.function], def.index).along(def.path)
	case fromFunction, fromUnknown:
	}
	return nothing
}

// parameter is what calls pass at a position.
func (d *data) parameter(f *function, index int) *value {
	if f == nil {
		return nothing
	}
	var all []*value
	for _, call := range d.sites[f] {
		if args := d.passes(call); index < len(args) && d.kind(args[index]) != "spread_element" {
			all = append(all, d.eval(args[index]))
		}
	}
	for _, call := range d.callbacks[f] {
		all = append(all, d.calledBack(f, call, index))
	}
	return union(all...)
}

// calledBack is what a call passes to the function that it was given.
func (d *data) calledBack(f *function, call node, index int) *value {
	it, ok := d.iterationAt(call)
	if !ok || d.functionAt(it.callback) != f {
		callee := d.unwrap(d.field(call, "function"))
		if index == 0 && d.kind(callee) == "member_expression" && d.text(d.field(callee, "property")) == "then" {
			return d.eval(d.field(callee, "object"))
		}
		return nothing
	}
	element := 0
	if it.method == "reduce" || it.method == "reduceRight" {
		if index == 0 {
			return derived(d.result(f))
		}
		element = 1
	}
	if index == element || it.method == "sort" && index < 2 {
		return d.eval(it.receiver).get("[]")
	}
	return nothing
}

// result is what a function returns, or the elements that it yields.
func (d *data) result(f *function) *value {
	if d.running[f] || d.depth > maxDepthOfValues || d.limit.over() {
		return nothing
	}
	d.running[f] = true
	defer delete(d.running, f)
	if d.kind(f.body) != "statement_block" {
		return d.eval(f.body)
	}
	var all []*value
	for n, kind := range d.within(f.body) {
		if kind != "return_statement" && kind != "yield_expression" || d.owner[n] != f {
			continue
		}
		v := d.eval(d.first(n))
		if kind == "yield_expression" {
			if d.token(n, "*") >= 0 {
				v = v.get("[]")
			}
			v = elements(v)
		}
		all = append(all, v)
	}
	return union(all...)
}

// maxDepthOfValues bounds how many expressions deep a value is followed.
const maxDepthOfValues = 80

// sorted orders sources for output.
func sorted(sources []structure.Source) []structure.Source {
	out := slices.Clone(sources)
	slices.SortFunc(out, func(x, y structure.Source) int {
		if x.Node != y.Node {
			return strings.Compare(x.Node, y.Node)
		}
		return strings.Compare(x.Path, y.Path)
	})
	return out
}
