package analysis

import "strings"

func (c *control) expressions(list []node, cur point) point {
	for _, n := range list {
		cur = c.expression(n, cur)
	}
	return cur
}

// expression builds the flow of an expression in the order of its evaluation.
func (c *control) expression(n node, cur point) point {
	if n < 0 || c.limit.over() {
		return cur
	}
	kind := c.kind(n)
	if isFunction(kind) || isType(kind) || kind == "comment" {
		return cur
	}
	if c.late[n] != nil || c.members[n] != nil {
		return c.lateFork(n, cur)
	}
	return c.evaluate(n, kind, cur)
}

func (c *control) evaluate(n node, kind string, cur point) point {
	switch kind {
	case "call_expression":
		return c.call(n, cur)
	case "ternary_expression":
		return c.ternary(n, cur)
	case "binary_expression", "augmented_assignment_expression":
		return c.binary(n, kind, cur)
	case "await_expression":
		return c.await(n, cur)
	case "yield_expression":
		return c.yield(n, cur)
	case "new_expression":
		return c.enter(n, c.expressions(c.children(n), cur))
	case "member_expression", "subscript_expression":
		return c.member(n, kind, cur)
	case "identifier", "shorthand_property_identifier":
		return c.value(n, cur)
	case "assignment_pattern", "object_assignment_pattern":
		cur = c.expression(c.field(n, "left"), cur)
		right := c.field(n, "right")
		if !c.bears(right) {
			return cur
		}
		return c.optional(cur, func(p point) point { return c.expression(right, p) })
	case "class_declaration", "class", "abstract_class_declaration":
		return c.class(n, cur)
	case "assignment_expression":
		if left := c.field(n, "left"); c.kind(left) != "identifier" {
			cur = c.expression(left, cur)
		}
		return c.expression(c.field(n, "right"), cur)
	case "as_expression", "satisfies_expression":
		return c.expression(c.first(n), cur)
	case "spread_element":
		cur = c.expressions(c.children(n), cur)
		c.mayRaise(cur)
		return cur
	}
	return c.expressions(c.children(n), cur)
}

func (c *control) ternary(n node, cur point) point {
	cur, yes, no := c.decide(n, c.expression(c.field(n, "condition"), cur))
	then, other, after := c.newPoint(), c.newPoint(), c.newPoint()
	c.link(cur, then, yes)
	c.link(cur, other, no)
	c.flow(c.expression(c.field(n, "consequence"), then), after)
	c.flow(c.expression(c.field(n, "alternative"), other), after)
	return after
}

func (c *control) binary(n node, kind string, cur point) point {
	op := c.operator(n)
	cur = c.expression(c.field(n, "left"), cur)
	right := c.field(n, "right")
	if !isShort(op) {
		cur = c.expression(right, cur)
		if kind == "augmented_assignment_expression" || op == "in" || op == "instanceof" {
			c.mayRaise(cur)
		}
		return cur
	}
	cur, evaluated, skipped := c.decide(n, cur)
	if !strings.HasPrefix(op, "&&") {
		evaluated, skipped = skipped, evaluated
	}
	inside, after := c.newPoint(), c.newPoint()
	c.link(cur, inside, evaluated)
	c.link(cur, after, skipped)
	c.flow(c.expression(right, inside), after)
	return after
}

// await can throw what it waits for; what a combinator waits for throws from the
// calls in its branches instead.
func (c *control) await(n node, cur point) point {
	for _, e := range c.children(n) {
		cur = c.expression(e, cur)
		if c.joins[c.unwrap(e)] == nil {
			c.raise(cur)
		}
	}
	return cur
}

// yield goes back to the loop that pulls, and on from where it resumes.
func (c *control) yield(n node, cur point) point {
	all := c.token(n, "*") >= 0
	for _, e := range c.children(n) {
		cur = c.expression(e, cur)
		if all {
			cur = c.delegate(e, cur)
		}
	}
	c.mayRaise(cur)
	if !c.function.generator {
		return cur
	}
	c.flow(cur, c.function.paused)
	after := c.newPoint()
	c.flow(c.function.resumed, after)
	if all {
		c.flow(cur, after)
	}
	return after
}

// delegate is a yield* over the program's own generators.
func (c *control) delegate(n node, cur point) point {
	after := c.newPoint()
	for _, g := range c.generators(n) {
		c.flow(cur, g.entry)
		c.flow(g.paused, c.function.paused)
		c.flow(c.function.resumed, g.resumed)
		c.flow(g.exit, after)
		c.link(g.thrown, c.handler, throws)
	}
	c.flow(cur, after)
	return after
}

func (c *control) member(n node, kind string, cur point) point {
	cur = c.expression(c.field(n, "object"), cur)
	if kind == "subscript_expression" {
		index := c.field(n, "index")
		if c.bears(index) && c.isOptional(n) {
			cur = c.optional(cur, func(p point) point { return c.expression(index, p) })
		} else {
			cur = c.expression(index, cur)
		}
	}
	if c.events[n] != nil {
		return c.value(n, cur)
	}
	if c.reference(n).kind != noReference {
		return cur
	}
	c.mayRaise(cur)
	if kind == "member_expression" {
		cur = c.accessors(n, cur)
	}
	return cur
}

// accessors enters the getters that the property may be.
func (c *control) accessors(n node, cur point) point {
	for _, g := range c.methods[c.text(c.field(n, "property"))] {
		if g.bears && c.token(g.syntax, "get") >= 0 {
			cur = c.optional(cur, func(p point) point {
				c.flow(p, g.entry)
				c.link(g.thrown, c.handler, throws)
				return g.exit
			})
		}
	}
	return cur
}

// value is a tool that is used as a value: it may be called from here on.
func (c *control) value(n node, cur point) point {
	v := c.events[n]
	if v == nil {
		return cur
	}
	return c.optional(cur, func(p point) point { return c.visit(v, p) })
}

// class runs the static parts of a class.
func (c *control) class(n node, cur point) point {
	for _, m := range c.children(c.field(n, "body")) {
		switch c.kind(m) {
		case "public_field_definition":
			if c.token(m, "static") >= 0 && c.bears(m) {
				cur = c.expression(c.field(m, "value"), cur)
			}
		case "class_static_block":
			cur = c.statement(c.field(m, "body"), cur)
		}
	}
	return cur
}

// isOptional reports whether n stands behind a ?. of its chain.
func (c *control) isOptional(n node) bool {
	for n >= 0 {
		switch c.kind(n) {
		case "call_expression":
			if c.token(n, "?.") >= 0 {
				return true
			}
			n = c.field(n, "function")
		case "member_expression", "subscript_expression":
			if c.field(n, "optional_chain") >= 0 {
				return true
			}
			n = c.field(n, "object")
		case "non_null_expression":
			n = c.first(n)
		default:
			return false
		}
	}
	return false
}
