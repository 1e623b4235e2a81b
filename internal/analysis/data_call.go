package analysis

// call is the value of a call that is no event.
func (d *data) call(n node) *value {
	if mode, arg := d.combinator(n); mode != "" {
		return combined(mode, d.eval(arg))
	}
	known := len(d.callees[n]) > 0
	if it, ok := d.iterationAt(n); ok && (!known || it.method == "from") {
		return d.iterated(n, it)
	}
	callee := d.unwrap(d.field(n, "function"))
	if !known && d.kind(callee) == "member_expression" {
		if v, ok := d.method(n, callee); ok {
			return v
		}
	}
	if known {
		var all []*value
		for _, f := range d.callees[n] {
			all = append(all, d.result(f))
		}
		return union(all...)
	}
	return d.unknownCall(n, callee)
}

// unknownCall computes its result from everything that it is given.
func (d *data) unknownCall(n, callee node) *value {
	var all []*value
	if d.kind(callee) == "member_expression" {
		all = append(all, d.eval(d.field(callee, "object")))
	}
	args := d.field(n, "arguments")
	if d.kind(args) == "template_string" {
		return derived(append(all, d.eval(args))...)
	}
	for _, arg := range d.children(args) {
		if f := d.functionAt(arg); f != nil {
			all = append(all, d.result(f))
		} else {
			all = append(all, d.eval(arg))
		}
	}
	return derived(all...)
}

// combined is the value of a combinator over promises.
func combined(mode string, of *value) *value {
	switch mode {
	case "race", "any":
		return of.get("[]")
	case "allSettled":
		out := &value{sources: of.sources, fields: map[string]*value{}}
		for k, f := range of.fields {
			out.fields[k] = &value{sources: f.sources, fields: map[string]*value{"value": f, "reason": derived(f)}}
		}
		return out
	}
	return of
}

// iterated is the value of xs.map(f) and its kin.
func (d *data) iterated(n node, it iteration) *value {
	of, result := nothing, nothing
	if it.method != "from" {
		of = d.eval(it.receiver)
	}
	if v := d.events[d.unwrap(it.callback)]; v != nil && v.Ref {
		result = fromSource(v.ID, "")
	} else if f := d.functionAt(it.callback); f != nil {
		result = d.result(f)
	}
	switch it.method {
	case "map", "from":
		return elements(result)
	case "flatMap":
		return elements(result.get("[]"))
	case "filter", "sort":
		return of
	case "find", "findLast":
		return of.get("[]")
	case "reduce", "reduceRight":
		return union(append(d.evalAll(d.arguments(n)[1:]), derived(result))...)
	}
	return derived(of, result)
}

// method is the value of a method of the language that is known to hand values on.
func (d *data) method(n, callee node) (*value, bool) {
	name, of := d.text(d.field(callee, "property")), d.field(callee, "object")
	args := d.arguments(n)
	if v, ok := d.static(d.text(of)+"."+name, args); ok {
		return v, true
	}
	switch name {
	case "then":
		return d.results(args), true
	case "catch":
		return union(d.eval(of), d.results(args)), true
	case "finally", "slice", "reverse", "toReversed", "toSorted", "values":
		return d.eval(of), true
	case "at", "pop", "shift":
		return d.eval(of).get("[]"), true
	case "concat":
		return union(append(d.evalAll(args), d.eval(of))...), true
	case "entries":
		if len(args) == 0 {
			return elements(object(map[string]*value{"[1]": d.eval(of).get("[]")})), true
		}
	case "get":
		if len(args) == 1 {
			return union(derived(d.eval(args[0])), d.eval(of).get("[]")), true
		}
	}
	return nil, false
}

// static is the value of a function of the language that hands its arguments on.
func (d *data) static(name string, args []node) (*value, bool) {
	if len(args) == 0 {
		return nil, false
	}
	switch name {
	case "Promise.resolve":
		return d.eval(args[0]), true
	case "Object.freeze", "Object.assign":
		return union(d.evalAll(args)...), true
	case "Object.values":
		return elements(d.eval(args[0]).get("[]")), true
	case "Object.entries":
		v := d.eval(args[0])
		return elements(object(map[string]*value{"[0]": derived(v), "[1]": v.get("[]")})), true
	}
	return nil, false
}

// results is what functions that are passed to a promise return.
func (d *data) results(args []node) *value {
	var all []*value
	for _, arg := range args {
		if f := d.functionAt(arg); f != nil {
			all = append(all, d.result(f))
		}
	}
	return union(all...)
}
