package analysis

import (
	"cmp"
	"slices"
)

// function is one function of the program; the program itself is one.
type function struct {
	syntax, body node
	name         string
	generator    bool
	bears        bool // a call of a tool or capability can happen in it
	parameters   []node
	// pass is the loop or fork whose passes are the calls of this function.
	pass *vertex

	// Points of the control flow: where a call enters, returns, throws, and where a
	// generator is resumed and pauses.
	entry, exit, thrown, resumed, paused point
}

// collectFunctions finds the functions and what their names are.
func (a *analysis) collectFunctions() {
	a.program = &function{name: "program"}
	a.owner = make([]*function, len(a.at))
	for i := range node(len(a.at)) {
		if p := a.parent(i); p >= 0 {
			a.owner[i] = a.owner[p]
			if f := a.functions[p]; f != nil {
				a.owner[i] = f
			}
		} else {
			a.owner[i] = a.program
		}
		if !a.at[i].named || !isFunction(a.kind(i)) {
			continue
		}
		if body := a.field(i, "body"); body >= 0 {
			f := &function{syntax: i, body: body, name: a.functionName(i), generator: a.isGenerator(i), parameters: a.parameters(i)}
			a.functions[i] = f
			a.functionList = append(a.functionList, f)
		}
	}
	a.collectMethods()
	a.collectArguments()
}

// functionName is a function's own name or that of what it is put into.
func (a *analysis) functionName(n node) string {
	name := a.field(n, "name")
	if name < 0 {
		switch p := a.parent(n); a.kind(p) {
		case "variable_declarator", "public_field_definition":
			name = a.field(p, "name")
		case "pair":
			name = a.field(p, "key")
		}
	}
	if name < 0 {
		return "anon"
	}
	return a.propertyName(name)
}

// collectMethods files functions under the property names that they are called by.
func (a *analysis) collectMethods() {
	for _, f := range a.functionList {
		parent := a.kind(a.parent(f.syntax))
		switch {
		case a.kind(f.syntax) == "method_definition" || parent == "public_field_definition":
			a.methods[f.name] = append(a.methods[f.name], f)
		case parent == "pair":
			a.methods[f.name] = append(a.methods[f.name], f)
			a.pool = append(a.pool, f)
		case parent == "array":
			a.pool = append(a.pool, f)
		}
	}
	for n, kind := range a.all() {
		switch kind {
		case "shorthand_property_identifier":
			if f := a.functionAt(n); f != nil {
				a.methods[a.text(n)] = append(a.methods[a.text(n)], f)
			}
		case "pair":
			if v := a.field(n, "value"); a.kind(v) == "identifier" && a.functionAt(v) != nil {
				name := a.propertyName(a.field(n, "key"))
				a.methods[name] = append(a.methods[name], a.functionAt(v))
			}
		}
	}
}

// collectArguments notes for each parameter what direct calls pass.
func (a *analysis) collectArguments() {
	for n, kind := range a.all() {
		if kind != "call_expression" || a.kind(a.field(n, "arguments")) != "arguments" {
			continue
		}
		f := a.functionAt(a.field(n, "function"))
		if f == nil {
			continue
		}
		for i, arg := range a.arguments(n) {
			if b := a.parameterBinding(f, i); b != nil {
				a.passed[b] = append(a.passed[b], arg)
			}
		}
	}
}

// arguments are the expressions that a call passes.
func (t *tree) arguments(call node) []node { return t.children(t.field(call, "arguments")) }

// parameterBinding is the name that f's parameter i is bound to as a whole.
func (a *analysis) parameterBinding(f *function, i int) *binding {
	if i >= len(f.parameters) {
		return nil
	}
	p := f.parameters[i]
	if a.kind(p) == "assignment_pattern" {
		p = a.field(p, "left")
	}
	return a.scopes.declared[p]
}

// functionAt is the function that an expression is or names.
func (a *analysis) functionAt(n node) *function {
	if n < 0 {
		return nil
	}
	n = a.unwrap(n)
	kind := a.kind(n)
	if isFunction(kind) {
		return a.functions[n]
	}
	if isIdentifier(kind) {
		if b := a.scopes.refersTo(n); b != nil && b.function >= 0 {
			return a.functions[b.function]
		}
	}
	return nil
}

// unique sorts functions by their place and drops repetitions.
func unique(fs []*function) []*function {
	slices.SortFunc(fs, func(x, y *function) int { return cmp.Compare(x.syntax, y.syntax) })
	return slices.Compact(fs)
}
