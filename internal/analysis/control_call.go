package analysis

import "strings"

// call builds the flow of a call.
func (c *control) call(n node, cur point) point {
	if v := c.events[n]; v != nil {
		cur = c.names(c.field(n, "function"), cur)
		return c.visit(v, c.expressions(c.arguments(n), cur))
	}
	if c.forks[n] != nil {
		return c.combine(n, cur)
	}
	if c.callbackLoops[n] != nil {
		return c.callbackLoop(n, cur)
	}
	if method, ok := c.promiseMethod(n); ok {
		return c.chain(n, method, cur)
	}
	return c.plainCall(n, cur)
}

func (c *control) plainCall(n node, cur point) point {
	callee, args := c.field(n, "function"), c.field(n, "arguments")
	if !isFunction(c.kind(c.unwrap(callee))) {
		cur = c.expression(callee, cur)
	}
	if c.kind(args) == "template_string" {
		cur = c.expression(args, cur)
		c.mayRaise(cur)
		return c.enter(n, cur)
	}
	rest := func(p point) point { return c.enter(n, c.expressions(c.children(args), p)) }
	if c.bears(args) && c.isOptional(n) {
		return c.optional(cur, rest)
	}
	return rest(cur)
}

// names visits the computed names of a tool's reference.
func (c *control) names(callee node, cur point) point {
	callee = c.unwrap(callee)
	switch c.kind(callee) {
	case "member_expression":
		return c.names(c.field(callee, "object"), cur)
	case "subscript_expression":
		cur = c.names(c.field(callee, "object"), cur)
		return c.expression(c.field(callee, "index"), cur)
	}
	return cur
}

// enter goes into the functions that a call can enter, or that it may call back.
func (c *control) enter(n node, cur point) point {
	c.mayRaise(cur)
	var callees []*function
	for _, f := range c.callees[n] {
		if f.bears && !f.generator {
			callees = append(callees, f)
		}
	}
	if len(callees) > 0 {
		next := c.newPoint()
		for _, f := range callees {
			c.flow(cur, f.entry)
			c.flow(f.exit, next)
			c.link(f.thrown, c.handler, throws)
		}
		if !c.isDirect(n) {
			c.flow(cur, next)
		}
		c.mayRaise(next)
		return next
	}
	return c.callBack(n, cur)
}

// callBack lets an unknown callee call what it was handed any number of times.
func (c *control) callBack(n node, cur point) point {
	hub := noPoint
	for _, f := range c.handed[n] {
		if !f.bears {
			continue
		}
		if hub < 0 {
			hub = c.newPoint()
			c.flow(cur, hub)
		}
		c.flow(hub, f.entry)
		c.flow(f.exit, hub)
		c.link(f.thrown, hub, throws)
		c.link(f.thrown, c.handler, throws)
	}
	if hub < 0 {
		return cur
	}
	next := c.newPoint()
	c.flow(hub, next)
	return next
}

// isDirect reports whether the callees of a call are all that it can enter; others
// were found by their name only.
func (c *control) isDirect(n node) bool {
	if c.kind(n) != "call_expression" {
		return false
	}
	callee := c.unwrap(c.field(n, "function"))
	if c.called(callee) != nil {
		return true
	}
	switch c.kind(callee) {
	case "identifier":
		b := c.scopes.refersTo(callee)
		return b != nil && len(b.definitions) > 0 && b.definitions[0].kind == fromParameter
	case "member_expression":
		object := c.unwrap(c.field(callee, "object"))
		if c.kind(object) == "this" {
			return true
		}
		if b := c.scopes.refersTo(object); b != nil {
			v, ok := b.whole()
			k := c.kind(c.unwrap(v))
			return ok && (k == "object" || k == "new_expression")
		}
	}
	return false
}

// promiseMethod is the then, catch or finally that a call is of.
func (c *control) promiseMethod(n node) (string, bool) {
	callee := c.unwrap(c.field(n, "function"))
	if c.kind(callee) != "member_expression" || len(c.callees[n]) > 0 {
		return "", false
	}
	method := c.text(c.field(callee, "property"))
	return method, method == "then" || method == "catch" || method == "finally"
}

// chain builds receiver.then(f, g), .catch(g) and .finally(h).
func (c *control) chain(n node, method string, cur point) point {
	args := c.arguments(n)
	argument := func(i int) (*function, bool) {
		if i >= len(args) {
			return nil, false
		}
		return c.functionAt(args[i]), true
	}
	fulfilled, hasFulfilled := argument(0)
	rejected, hasRejected := argument(1)
	if method == "catch" {
		rejected, hasRejected, hasFulfilled = fulfilled, hasFulfilled, false
	}
	outer, next, caught := c.handler, c.newPoint(), noPoint
	if hasRejected || method == "finally" {
		caught = c.newPoint()
		c.handler = caught
	}
	end := c.expression(c.field(c.unwrap(c.field(n, "function")), "object"), cur)
	c.mayRaise(end)
	c.handler = outer
	if hasFulfilled {
		c.continueWith(fulfilled, end, next)
	} else {
		c.flow(end, next)
	}
	switch {
	case method == "finally" && hasFulfilled && fulfilled != nil && fulfilled.bears:
		c.flow(caught, fulfilled.entry)
		c.link(fulfilled.exit, outer, throws)
	case method == "finally":
		c.link(caught, outer, throws)
	case hasRejected:
		c.continueWith(rejected, caught, next)
	}
	return next
}

// continueWith goes from a settled promise through a function to next.
func (c *control) continueWith(f *function, from, next point) {
	if f == nil || !f.bears {
		c.flow(from, next)
		c.raise(from)
		return
	}
	c.flow(from, f.entry)
	c.flow(f.exit, next)
	c.link(f.thrown, c.handler, throws)
}

// callbackLoop builds xs.forEach(f) and its kin.
func (c *control) callbackLoop(n node, cur point) point {
	it, _ := c.iterationAt(n)
	if it.method != "from" {
		cur = c.expression(it.receiver, cur)
	}
	for _, arg := range c.arguments(n) {
		if arg != it.callback {
			cur = c.expression(arg, cur)
		}
	}
	c.mayRaise(cur)
	loop := c.visit(c.callbackLoops[n], cur)
	inside, after := c.newPoint(), c.newPoint()
	c.link(loop, inside, "true")
	c.link(loop, after, "false")
	end := c.pass(it, inside)
	c.flow(end, loop)
	if it.method == "some" || it.method == "every" || strings.HasPrefix(it.method, "find") {
		c.flow(end, after)
	}
	return after
}

// pass builds one pass of an iteration from cur.
func (c *control) pass(it iteration, cur point) point {
	end := c.newPoint()
	if v := c.events[c.unwrap(it.callback)]; v != nil && v.Ref {
		p := c.visit(v, cur)
		c.flow(p, end)
		c.raise(p)
		return end
	}
	if f := c.functionAt(it.callback); f != nil {
		c.flow(cur, f.entry)
		c.flow(f.exit, end)
		c.link(f.thrown, c.handler, throws)
		return end
	}
	c.flow(c.expression(it.callback, cur), end)
	return end
}
