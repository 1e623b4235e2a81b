package analysis

import "strings"

func (c *control) statements(list []node, cur point) point {
	for _, s := range list {
		cur = c.statement(s, cur)
	}
	return cur
}

// statement builds the flow of one statement from cur and returns where it ends.
func (c *control) statement(n node, cur point) point {
	if c.limit.over() {
		return cur
	}
	label := c.label
	c.label = ""
	switch c.kind(n) {
	case "comment", "empty_statement", "import_statement", "function_declaration", "generator_function_declaration",
		"interface_declaration", "type_alias_declaration", "ambient_declaration", "function_signature":
		return cur
	case "statement_block", "program":
		return c.statements(c.children(n), cur)
	case "lexical_declaration", "variable_declaration":
		return c.declaration(n, cur)
	case "if_statement":
		return c.ifStatement(n, cur)
	case "switch_statement":
		return c.switchStatement(n, label, cur)
	case "for_in_statement":
		return c.forOf(n, label, cur)
	case "for_statement":
		return c.forLoop(n, label, cur)
	case "while_statement":
		return c.whileLoop(n, label, cur)
	case "do_statement":
		return c.doLoop(n, label, cur)
	case "try_statement":
		return c.try(n, cur)
	case "return_statement":
		cur = c.expressions(c.children(n), cur)
		c.leave(cur, c.function.exit, nil)
		return c.newPoint()
	case "throw_statement":
		c.raise(c.expressions(c.children(n), cur))
		return c.newPoint()
	case "break_statement", "continue_statement":
		c.jump(n, cur)
		return c.newPoint()
	case "labeled_statement":
		return c.labeled(n, cur)
	}
	return c.expressions(c.children(n), cur)
}

func (c *control) declaration(n node, cur point) point {
	for _, d := range c.children(n) {
		if c.kind(d) != "variable_declarator" {
			continue
		}
		if v := c.field(d, "value"); v >= 0 {
			cur = c.expression(v, cur)
		}
		if name := c.field(d, "name"); c.kind(name) != "identifier" {
			c.mayRaise(cur)
			if c.bears(name) {
				cur = c.expression(name, cur)
			}
		}
	}
	return cur
}

// decide visits the decision of n, if it has one, and returns the labels of its ways.
func (c *control) decide(n node, cur point) (p point, yes, no string) {
	if d := c.decisions[n]; d != nil {
		return c.visit(d, cur), "true", "false"
	}
	return cur, "", ""
}

func (c *control) ifStatement(n node, cur point) point {
	cur, yes, no := c.decide(n, c.expression(c.field(n, "condition"), cur))
	then, after := c.newPoint(), c.newPoint()
	c.link(cur, then, yes)
	c.flow(c.statement(c.field(n, "consequence"), then), after)
	alt := c.field(n, "alternative")
	if alt < 0 {
		c.link(cur, after, no)
		return after
	}
	other := c.newPoint()
	c.link(cur, other, no)
	c.flow(c.statements(c.children(alt), other), after)
	return after
}

func (c *control) switchStatement(n node, label string, cur point) point {
	cur = c.expression(c.field(n, "value"), cur)
	clauses := c.children(c.field(n, "body"))
	for _, clause := range clauses {
		if v := c.field(clause, "value"); c.bears(v) {
			cur = c.optional(cur, func(p point) point { return c.expression(v, p) })
		}
	}
	d := c.decisions[n]
	if d != nil {
		cur = c.visit(d, cur)
	}
	outcome := func(s string) string {
		if d == nil {
			return ""
		}
		return s
	}
	after := c.newPoint()
	c.targets = append(c.targets, &target{label: label, leave: after, again: noPoint, isSwitch: true})
	before, hasDefault := noPoint, false
	for _, clause := range clauses {
		hasDefault = hasDefault || c.kind(clause) == "switch_default"
		p := c.newPoint()
		c.link(cur, p, outcome(c.caseOutcome(clause)))
		c.flow(before, p)
		for s := range c.tokens(clause) {
			if c.at[s].named && c.fieldName(s) == "body" {
				p = c.statement(s, p)
			}
		}
		before = p
	}
	c.targets = c.targets[:len(c.targets)-1]
	c.flow(before, after)
	if !hasDefault {
		c.link(cur, after, outcome("default"))
	}
	return after
}

// body builds a loop's body.
func (c *control) body(n node, t target, from point) point {
	c.targets = append(c.targets, &t)
	end := c.statement(c.field(n, "body"), from)
	c.targets = c.targets[:len(c.targets)-1]
	return end
}

// enterLoop visits the loop of n, if it is a vertex, and returns the labels of its ways.
func (c *control) enterLoop(n node, cur point) (p point, yes, no string) {
	if l := c.loops[n]; l != nil {
		return c.visit(l, cur), "true", "false"
	}
	return cur, "", ""
}

func (c *control) forOf(n node, label string, cur point) point {
	right := c.field(n, "right")
	cur = c.expression(right, cur)
	c.mayRaise(cur)
	pull, after, inside := c.newPoint(), c.newPoint(), c.newPoint()
	c.flow(cur, pull)
	head := c.newPoint()
	generators := c.generators(right)
	if len(generators) == 0 {
		c.flow(pull, head)
	}
	for _, g := range generators {
		c.flow(pull, g.entry)
		c.flow(pull, g.resumed)
		c.flow(g.paused, head)
		c.flow(g.exit, head)
		c.link(g.thrown, c.handler, throws)
	}
	at, yes, no := c.enterLoop(n, head)
	c.link(at, inside, yes)
	c.link(at, after, no)
	c.mayRaise(at)
	c.flow(c.body(n, target{label: label, leave: after, again: pull}, inside), pull)
	return after
}

func (c *control) forLoop(n node, label string, cur point) point {
	if init := c.field(n, "initializer"); init >= 0 {
		if strings.HasSuffix(c.kind(init), "declaration") || c.kind(init) == "expression_statement" {
			cur = c.statement(init, cur)
		} else {
			cur = c.expression(init, cur)
		}
	}
	top, update := c.newPoint(), c.newPoint()
	c.flow(cur, top)
	condition := c.forCondition(n)
	after := c.preTested(n, label, c.expression(condition, top), update, condition < 0)
	c.flow(c.expression(c.field(n, "increment"), update), top)
	return after
}

func (c *control) whileLoop(n node, label string, cur point) point {
	top, update := c.newPoint(), c.newPoint()
	c.flow(cur, top)
	condition := c.field(n, "condition")
	after := c.preTested(n, label, c.expression(condition, top), update, c.normal(condition) == "true")
	c.flow(update, top)
	return after
}

// preTested builds a loop behind its condition, whose passes end at update.
func (c *control) preTested(n node, label string, cur, update point, endless bool) point {
	at, yes, no := c.enterLoop(n, cur)
	inside, after := c.newPoint(), c.newPoint()
	c.link(at, inside, yes)
	if !endless {
		c.link(at, after, no)
	}
	c.flow(c.body(n, target{label: label, leave: after, again: update}, inside), update)
	return after
}

func (c *control) doLoop(n node, label string, cur point) point {
	top, after, test := c.newPoint(), c.newPoint(), c.newPoint()
	c.flow(cur, top)
	c.flow(c.body(n, target{label: label, leave: after, again: test}, top), test)
	at, yes, no := c.enterLoop(n, c.expression(c.field(n, "condition"), test))
	c.link(at, top, yes)
	c.link(at, after, no)
	return after
}

// generators are the functions of the program that produce what n iterates over.
func (c *control) generators(n node) []*function {
	n = c.unwrap(n)
	candidates := c.functionList
	byName := true
	if c.kind(n) == "call_expression" {
		candidates, byName = c.callees[n], false
	}
	var out []*function
	for _, f := range candidates {
		if f.generator && f.bears && (!byName || strings.HasPrefix(f.name, "[")) {
			out = append(out, f)
		}
	}
	return out
}
