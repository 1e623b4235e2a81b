package analysis

import "github.com/pml-run/pml/internal/structure"

// loopMatters reports whether loop n becomes a vertex.
func (a *analysis) loopMatters(n node) bool {
	return a.owner[n].bears && (a.bears(n) || a.returns(n))
}

// findLoops makes vertices of the loops that calls happen in.
func (a *analysis) findLoops() {
	for n, kind := range a.all() {
		if !isLoop(kind) || !a.loopMatters(n) {
			continue
		}
		mode, condition := "for", a.field(n, "condition")
		switch kind {
		case "do_statement":
			mode = "do"
		case "while_statement":
			mode = "while"
		case "for_in_statement":
			mode, condition = a.operator(n), a.field(n, "right")
		}
		var v *vertex
		if kind == "for_statement" {
			condition = a.forCondition(n)
			v = a.newVertex(structure.Loop, n, a.at[a.field(n, "body")].start-1, rankTest)
		} else {
			v = a.newVertex(structure.Loop, n, a.at[condition].end, rankTest)
		}
		v.Mode = mode
		v.Condition = a.normal(condition)
		a.loops[n] = v
	}
}

// forCondition is what a for statement tests, none where it tests nothing.
func (a *analysis) forCondition(n node) node {
	c := a.field(n, "condition")
	switch a.kind(c) {
	case "expression_statement":
		return a.first(c)
	case "empty_statement", ";":
		return none
	}
	return c
}

// The methods of arrays that call a function for each element.
var callbackMethods = map[string]bool{
	"forEach": true, "map": true, "filter": true, "flatMap": true, "some": true, "every": true, "find": true,
	"findIndex": true, "findLast": true, "findLastIndex": true, "reduce": true, "reduceRight": true, "sort": true,
}

// iteration is a call that calls a function for each element: xs.map(f), Array.from(xs, f).
type iteration struct {
	method   string
	receiver node // what is iterated over
	callback node
}

// iterationAt is the iteration that call n is.
func (a *analysis) iterationAt(n node) (iteration, bool) {
	if a.kind(n) != "call_expression" {
		return iteration{}, false
	}
	callee := a.unwrap(a.field(n, "function"))
	if a.kind(callee) != "member_expression" {
		return iteration{}, false
	}
	args := a.arguments(n)
	method := a.text(a.field(callee, "property"))
	if a.text(callee) == "Array.from" && len(args) == 2 {
		return iteration{"from", args[0], args[1]}, true
	}
	if !callbackMethods[method] || len(args) == 0 {
		return iteration{}, false
	}
	return iteration{method, a.field(callee, "object"), args[0]}, true
}

// collects reports whether the iteration makes an element of each pass, so that a
// combinator can wait for all of them.
func (it iteration) collects() bool {
	return it.method == "map" || it.method == "flatMap" || it.method == "from"
}

// findCallbackLoops makes vertices of the calls that iterate with a function in
// which calls happen, except where a fork does so.
func (a *analysis) findCallbackLoops() {
	for n, kind := range a.all() {
		if kind != "call_expression" || a.events[n] != nil {
			continue
		}
		it, ok := a.iterationAt(n)
		if !ok {
			continue
		}
		f := a.functionAt(it.callback)
		if (f == nil || !f.bears) && !a.bears(it.callback) {
			continue
		}
		if len(a.callees[n]) > 0 && it.method != "map" && it.method != "from" {
			continue // a method of that name in the program
		}
		region := a.forkOf(n)
		if region == nil || !it.collects() {
			region = a.newCallbackLoop(n, it)
		}
		if f != nil && isFunction(a.kind(a.unwrap(it.callback))) {
			f.pass = region
		}
	}
}

func (a *analysis) newCallbackLoop(n node, it iteration) *vertex {
	callee := a.field(n, "function")
	v := a.newVertex(structure.Loop, n, a.at[callee].end, rankTest)
	v.Mode = it.method
	v.Condition = a.normal(it.receiver)
	if it.method == "from" {
		v.Condition = a.normal(callee)
	}
	a.callbackLoops[n] = v
	return v
}
