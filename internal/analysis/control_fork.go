package analysis

// lateFork builds an expression that opens its fork before the combinator: an
// array, a map call, or one of the expressions that are waited for together. The
// main line goes on from the fork.
func (c *control) lateFork(n node, cur point) point {
	if m := c.members[n]; m != nil {
		if m.fork.point < 0 {
			cur = c.visit(m.fork, cur)
		}
		start := c.newPoint()
		c.flow(cur, start)
		c.ends[m.fork] = append(c.ends[m.fork], c.evaluate(n, c.kind(n), start))
		return cur
	}
	f := c.late[n]
	it, isIteration := c.iterationAt(n)
	if isIteration {
		cur = c.inputs(n, it, cur)
	}
	cur = c.visit(f, cur)
	if isIteration {
		c.ends[f] = append(c.ends[f], c.pass(it, cur))
		return cur
	}
	for _, e := range c.children(n) {
		c.ends[f] = append(c.ends[f], c.branch(e, cur))
	}
	return cur
}

// branch builds one branch of a fork and returns its end.
func (c *control) branch(n node, from point) point {
	start := c.newPoint()
	c.flow(from, start)
	return c.expression(n, start)
}

// inputs evaluates what an iteration needs before its first pass.
func (c *control) inputs(n node, it iteration, cur point) point {
	cur = c.expression(it.receiver, cur)
	for _, arg := range c.arguments(n) {
		if arg != it.callback && arg != it.receiver {
			cur = c.expression(arg, cur)
		}
	}
	c.mayRaise(cur)
	return cur
}

// combine builds a combinator: its fork, unless that was opened before, and its join.
func (c *control) combine(n node, cur point) point {
	f := c.forks[n]
	_, arg := c.combinator(n)
	ends := c.ends[f]
	if f.point >= 0 && ends != nil {
		_, isIteration := c.iterationAt(f.source)
		if cur != f.point || isIteration {
			ends = append(ends, cur)
		}
	} else {
		ends = c.openFork(f, c.unwrap(arg), cur)
	}
	join := c.newPoint()
	for _, e := range ends {
		c.flow(e, join)
	}
	if c.isAwaited(n) {
		for _, v := range c.vertices { // any call of any branch may reject
			if v.region == f && v.point >= 0 {
				c.raise(v.point)
			}
		}
	}
	return c.visit(c.joins[n], join)
}

// openFork builds the branches of a combinator's argument and returns their ends.
func (c *control) openFork(f *vertex, arg node, cur point) []point {
	if it, ok := c.iterationAt(arg); ok && it.collects() {
		from := c.visit(f, c.inputs(arg, it, cur))
		return []point{c.pass(it, from), from} // from: there may be no element
	}
	from := c.visit(f, cur)
	if c.kind(arg) != "array" {
		return []point{c.expression(arg, from)}
	}
	var ends []point
	for _, e := range c.children(arg) {
		if !c.bears(e) {
			c.expression(e, from)
			continue
		}
		ends = append(ends, c.branch(e, from))
	}
	return ends
}
