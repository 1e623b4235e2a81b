package analysis

import "slices"

// jump builds a break or continue.
func (c *control) jump(n node, cur point) {
	label := c.text(c.field(n, "label"))
	again := c.kind(n) == "continue_statement"
	for _, t := range slices.Backward(c.targets) {
		to := t.leave
		if again {
			to = t.again
		}
		switch {
		case t.finally != nil, label != "" && t.label != label:
		case label != "" || t.again >= 0 || t.isSwitch && !again:
			c.leave(cur, to, t)
			return
		}
	}
}

// leave goes from cur to a point, through the finally clauses that stand inside stop.
func (c *control) leave(cur, to point, stop *target) {
	var through []*finally
	for _, t := range slices.Backward(c.targets) {
		if t == stop {
			break
		}
		if t.finally != nil {
			through = append(through, t.finally)
		}
	}
	var step func(from point, i int)
	step = func(from point, i int) {
		if i == len(through) {
			c.flow(from, to)
			return
		}
		c.flow(from, through[i].entry)
		through[i].pending = append(through[i].pending, func(exit point) { step(exit, i+1) })
	}
	step(cur, 0)
}

func (c *control) labeled(n node, cur point) point {
	body, label := c.field(n, "body"), c.text(c.field(n, "label"))
	if k := c.kind(body); isLoop(k) || k == "switch_statement" {
		c.label = label
		return c.statement(body, cur)
	}
	after := c.newPoint()
	c.targets = append(c.targets, &target{label: label, leave: after, again: noPoint})
	c.flow(c.statement(body, cur), after)
	c.targets = c.targets[:len(c.targets)-1]
	return after
}

// try builds a try statement. A finally without calls and exits changes nothing.
func (c *control) try(n node, cur point) point {
	handler, last := c.field(n, "handler"), c.field(n, "finalizer")
	outer, after := c.handler, c.newPoint()
	defer func() { c.handler = outer }()
	if last < 0 || !c.bears(last) && !c.returns(last) {
		c.guarded(n, handler, cur, after)
		return after
	}
	f := &finally{entry: c.newPoint()}
	c.targets = append(c.targets, &target{leave: noPoint, again: noPoint, finally: f})
	c.handler = c.newPoint()
	c.flow(c.handler, f.entry)
	c.guarded(n, handler, cur, f.entry)
	c.targets = c.targets[:len(c.targets)-1]
	c.handler = outer
	end := c.quietly(func() point { return c.statements(c.children(last), f.entry) })
	c.flow(end, after)
	c.raise(end)
	for _, p := range f.pending {
		p(end)
	}
	return after
}

// guarded builds the try block and the catch clause; both go on at after.
func (c *control) guarded(n, handler node, cur, after point) {
	if handler < 0 {
		c.flow(c.statement(c.field(n, "body"), cur), after)
		return
	}
	outer, caught := c.handler, c.newPoint()
	c.handler = caught
	quiet := c.quiet
	c.quiet = false
	c.flow(c.statement(c.field(n, "body"), cur), after)
	c.quiet = quiet
	c.handler = outer
	if p := c.field(handler, "parameter"); p >= 0 && c.kind(p) != "identifier" {
		c.mayRaise(caught)
	}
	end := c.quietly(func() point { return c.statement(c.field(handler, "body"), caught) })
	c.flow(end, after)
}

// quietly builds a part in which implicit exceptions do not count.
func (c *control) quietly(build func() point) point {
	before := c.quiet
	c.quiet = true
	defer func() { c.quiet = before }()
	return build()
}
