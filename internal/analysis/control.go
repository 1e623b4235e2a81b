package analysis

import (
	"slices"

	"github.com/pml-run/pml/internal/structure"
)

// point is a place of the control flow between two steps of evaluation.
type point int32

const noPoint point = -1

// throws labels a step to a handler; other labels are outcomes.
const throws = "throw"

// branchEdge is a step from one point to the next.
type branchEdge struct {
	to    point
	label string
}

// control is the control flow of the program and its bearing functions.
type control struct {
	*analysis
	next    [][]branchEdge
	visible []*vertex // by point
	ends    map[*vertex][]point

	// What follows is about the function that is being built.
	function *function
	handler  point // where an exception goes
	targets  []*target
	label    string // of the statement that comes next
	quiet    bool   // inside catch and finally: implicit exceptions do not count
}

// target is something that break and continue can be about, or a finally that
// stands between them and it.
type target struct {
	label    string
	leave    point // break, noPoint where it is not allowed
	again    point // continue
	isSwitch bool
	finally  *finally
}

// finally is a finally clause: one copy, that everything that leaves goes through.
type finally struct {
	entry   point
	pending []func(exit point)
}

// newControl builds the control flow of everything that bears.
func newControl(a *analysis) *control {
	c := &control{analysis: a, ends: map[*vertex][]point{}}
	for _, f := range append([]*function{a.program}, a.functionList...) {
		f.entry, f.exit, f.thrown = c.newPoint(), c.newPoint(), c.newPoint()
		f.resumed, f.paused = noPoint, noPoint
		if f.generator {
			f.resumed, f.paused = c.newPoint(), c.newPoint()
		}
	}
	c.build(a.program)
	for _, f := range a.functionList {
		if f.bears {
			c.build(f)
			continue
		}
		c.flow(f.entry, f.exit)
		c.link(f.entry, f.thrown, throws)
	}
	return c
}

func (c *control) newPoint() point {
	c.next = append(c.next, nil)
	c.visible = append(c.visible, nil)
	return point(len(c.next) - 1)
}

// link adds a step. Steps from or to nowhere are dropped.
func (c *control) link(from, to point, label string) {
	if from < 0 || to < 0 || slices.Contains(c.next[from], branchEdge{to, label}) {
		return
	}
	c.next[from] = append(c.next[from], branchEdge{to, label})
}

func (c *control) flow(from, to point) { c.link(from, to, "") }

// raise adds a step to the handler.
func (c *control) raise(from point) { c.link(from, c.handler, throws) }

// mayRaise does so for what can throw without saying so.
func (c *control) mayRaise(from point) {
	if !c.quiet {
		c.raise(from)
	}
}

// visit puts a vertex behind cur.
func (c *control) visit(v *vertex, cur point) point {
	if v.point < 0 {
		v.point = c.newPoint()
		c.visible[v.point] = v
	}
	c.flow(cur, v.point)
	return v.point
}

// optional runs build on a way of its own, beside the direct way from cur.
func (c *control) optional(cur point, build func(point) point) point {
	after := c.newPoint()
	c.flow(build(cur), after)
	c.flow(cur, after)
	return after
}

// build makes the flow of one function.
func (c *control) build(f *function) {
	c.function, c.handler, c.targets, c.label, c.quiet = f, f.thrown, nil, "", false
	cur := f.entry
	if f != c.program {
		for _, p := range c.children(c.field(f.syntax, "parameters")) {
			if v := c.field(p, "value"); c.bears(v) {
				cur = c.optional(cur, func(p point) point { return c.expression(v, p) })
			}
			if p := c.field(p, "pattern"); c.bears(p) {
				cur = c.expression(p, cur)
			}
		}
	}
	switch c.kind(f.body) {
	case "statement_block", "program":
		cur = c.statements(c.children(f.body), cur)
	default:
		cur = c.expression(f.body, cur)
	}
	c.flow(cur, f.exit)
}

// contract turns paths through invisible points into edges between vertices.
func (c *control) contract() []structure.Edge {
	var out []structure.Edge
	seen := map[structure.Edge]bool{}
	for _, v := range c.vertices {
		if v.point < 0 {
			continue
		}
		for _, first := range c.next[v.point] {
			c.reach(first, func(to *vertex, thrown bool) {
				e := structure.Edge{From: v.ID, To: to.ID, Type: structure.Sequence}
				switch {
				case first.label != "" && first.label != throws:
					e.Type, e.Outcome = structure.Conditional, first.label
				case thrown:
					e.Type, e.Outcome = structure.Conditional, throws
				}
				if !seen[e] {
					seen[e] = true
					out = append(out, e)
				}
			})
		}
	}
	return out
}

// reach calls found for each vertex that a path from a first step leads to.
func (c *control) reach(first branchEdge, found func(v *vertex, thrown bool)) {
	type state struct {
		at     point
		thrown bool
	}
	stack := []state{{first.to, first.label == throws}}
	seen := map[state]bool{}
	for len(stack) > 0 && !c.limit.over() {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		if v := c.visible[s.at]; v != nil {
			found(v, s.thrown)
			continue
		}
		for _, e := range c.next[s.at] {
			stack = append(stack, state{e.to, s.thrown || e.label == throws})
		}
	}
}

// reachable are the vertices that the program can come to, as far as the control
// flow tells.
func (c *control) reachable() map[*vertex]bool {
	out := map[*vertex]bool{}
	seen := make([]bool, len(c.next))
	stack := []point{c.program.entry}
	for len(stack) > 0 {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[p] {
			continue
		}
		seen[p] = true
		if v := c.visible[p]; v != nil {
			out[v] = true
		}
		for _, e := range c.next[p] {
			stack = append(stack, e.to)
		}
	}
	return out
}
