package analysis

import (
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
)

// findEvents makes a vertex of each call of a tool or capability, and of each
// place where one is used as a value.
func (a *analysis) findEvents() {
	for n, kind := range a.all() {
		if kind != "call_expression" {
			continue
		}
		callee := a.field(n, "function")
		r := a.reference(callee)
		if !r.callable() || a.isBind(callee) {
			continue
		}
		v := a.newEvent(n, r)
		v.awaited = a.isAwaited(n)
	}
	for n, kind := range a.all() {
		if !isIdentifier(kind) && kind != "member_expression" && kind != "subscript_expression" || a.scopes.declared[n] != nil {
			continue
		}
		r := a.reference(n)
		if r.kind == noReference || !a.isValue(n) {
			continue
		}
		if r.callable() {
			a.newEvent(n, r).Ref = true
		} else {
			a.flags.Escapes = true
		}
	}
}

func (a *analysis) isBind(callee node) bool {
	c := a.unwrap(callee)
	return a.kind(c) == "member_expression" && a.text(a.field(c, "property")) == "bind" &&
		a.reference(a.field(c, "object")).callable()
}

func (a *analysis) newEvent(n node, r reference) *vertex {
	kind := structure.Task
	if r.kind == toCapability {
		kind = structure.Capability
	}
	v := a.newVertex(kind, n, a.at[n].end, rankCall)
	v.base, v.dynamic = r.base, r.dynamic
	if r.kind == toCapability {
		v.CapabilityID = r.tool
	} else {
		v.Tool = string(a.toolOf(r))
	}
	a.events[n] = v
	a.flags.Dynamic = a.flags.Dynamic || r.dynamic
	return v
}

// toolOf is the tool that a reference means, by its exact name where that is known.
func (a *analysis) toolOf(r reference) tool.ID {
	id := tool.MakeID(r.server, r.tool)
	if a.options.Resolve == nil || r.server == anyName || r.tool == anyName {
		return id
	}
	t, ok := a.options.Resolve(r.server, r.tool)
	if !ok {
		return id
	}
	a.tools[t.ID] = t
	return t.ID
}

func (a *analysis) isAwaited(n node) bool {
	return a.kind(a.parent(a.wrapped(n))) == "await_expression"
}

// isValue reports whether a reference is used as a value at n: it is not called,
// not part of a longer chain, and not passed to where it is followed.
func (a *analysis) isValue(n node) bool {
	top := a.wrapped(n)
	p := a.parent(top)
	switch a.kind(p) {
	case "member_expression", "subscript_expression":
		return a.field(p, "object") != top
	case "call_expression":
		return a.field(p, "function") != top
	case "await_expression":
		return false
	case "variable_declarator":
		d := a.parent(p)
		k := a.field(d, "kind")
		return a.field(p, "value") != top || a.kind(d) != "lexical_declaration" || k >= 0 && a.text(k) != "const"
	case "arguments":
		call := a.parent(p)
		callee := a.unwrap(a.field(call, "function"))
		if a.functionAt(callee) != nil {
			return false
		}
		return !a.takesThis(callee)
	}
	return true
}

// takesThis reports whether callee is the bind, call or apply of a reference.
func (a *analysis) takesThis(callee node) bool {
	if a.kind(callee) != "member_expression" || a.reference(a.field(callee, "object")).kind == noReference {
		return false
	}
	switch a.text(a.field(callee, "property")) {
	case "bind", "call", "apply":
		return true
	}
	return false
}
