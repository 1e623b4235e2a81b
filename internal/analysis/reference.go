package analysis

import (
	"strconv"
	"strings"
)

// referenceKind says how far a chain of names has led.
type referenceKind byte

const (
	noReference    referenceKind = iota
	toRoot                       // mcp
	toServer                     // mcp.fs
	toTool                       // mcp.fs.read
	toCapabilities               // capabilities
	toCapability                 // capabilities.normalize
)

// anyName stands for a name that the program computes.
const anyName = "*"

// reference is what an expression means when it leads to a tool or capability.
type reference struct {
	kind         referenceKind
	server, tool string
	base         node // the identifier that the chain starts with
	dynamic      bool
}

// callable reports whether r is a tool or a capability.
func (r reference) callable() bool { return r.kind == toTool || r.kind == toCapability }

// maxAliases is how many steps from name to name are followed.
const maxAliases = 20

// reference resolves an expression.
func (a *analysis) reference(n node) reference {
	if n < 0 {
		return reference{}
	}
	if a.resolved == nil {
		a.resolved = map[node]reference{}
	}
	n = a.unwrap(n)
	r, ok := a.resolved[n]
	if !ok {
		r = a.follow(n, 0)
		a.resolved[n] = r
	}
	return r
}

// follow resolves an expression that depth aliases led to.
func (a *analysis) follow(n node, depth int) reference {
	if n < 0 || depth > maxAliases || a.limit.over() {
		return reference{}
	}
	n = a.unwrap(n)
	if r, ok := a.resolved[n]; ok {
		return r
	}
	switch kind := a.kind(n); kind {
	case "identifier", "shorthand_property_identifier":
		return a.followName(n, depth)
	case "member_expression":
		return a.follow(a.field(n, "object"), depth+1).step(a.text(a.field(n, "property")))
	case "subscript_expression":
		r := a.follow(a.field(n, "object"), depth+1)
		if r.kind == noReference {
			return r
		}
		if name, ok := a.constant(a.field(n, "index"), 0); ok {
			return r.step(name)
		}
		return r.anyStep()
	case "call_expression":
		if f := a.field(n, "function"); a.kind(f) == "member_expression" && a.text(a.field(f, "property")) == "bind" {
			return a.follow(a.field(f, "object"), depth+1)
		}
	}
	return reference{}
}

// followName resolves an identifier: mcp and capabilities where nothing hides them,
// a name that is bound once, or a parameter by its arguments.
func (a *analysis) followName(n node, depth int) reference {
	b := a.scopes.refersTo(n)
	if b == nil {
		if a.scopes.declared[n] != nil {
			return reference{}
		}
		switch a.text(n) {
		case "mcp":
			return reference{kind: toRoot, base: n}
		case "capabilities":
			return reference{kind: toCapabilities, base: n}
		}
		return reference{}
	}
	d, ok := b.value()
	if !ok {
		return a.followParameter(b, n, depth)
	}
	r := a.follow(d.value, depth+1)
	for _, step := range d.path {
		if r.kind == noReference {
			return r
		}
		if strings.HasPrefix(step, "[") || step == "..." {
			r = r.anyStep()
		} else {
			r = r.step(step)
		}
	}
	r.base = n
	return r
}

// followParameter resolves a parameter of a local function to what its direct
// calls pass, and to any name where they differ.
func (a *analysis) followParameter(b *binding, n node, depth int) reference {
	d, ok := b.single()
	if !ok || d.kind != fromParameter || len(d.path) > 0 {
		return reference{}
	}
	var found reference
	for _, arg := range a.passed[b] {
		r := a.follow(arg, depth+5)
		switch {
		case r.kind == noReference:
			continue
		case found.kind == noReference:
			found = r
		case r.kind != found.kind:
			return reference{}
		}
		if r.server != found.server {
			found.server, found.dynamic = anyName, true
		}
		if r.tool != found.tool {
			found.tool, found.dynamic = anyName, true
		}
	}
	found.base = n
	return found
}

// step is the reference to a property.
func (r reference) step(name string) reference {
	switch r.kind {
	case toRoot:
		r.kind, r.server = toServer, name
	case toServer:
		r.kind, r.tool = toTool, name
	case toCapabilities:
		r.kind, r.tool = toCapability, name
	case toTool, toCapability:
		if name != "call" && name != "apply" && name != "bind" {
			return reference{}
		}
	case noReference:
	}
	return r
}

// anyStep is the reference to a property whose name is computed.
func (r reference) anyStep() reference {
	if r.callable() {
		return reference{}
	}
	r = r.step(anyName)
	r.dynamic = true
	return r
}

// constant is the text that an expression always has.
func (a *analysis) constant(n node, depth int) (string, bool) {
	if n < 0 || depth > 5 {
		return "", false
	}
	n = a.unwrap(n)
	switch a.kind(n) {
	case "string", "template_string":
		v, ok := a.literal(n)
		s, isString := v.(string)
		return s, ok && isString
	case "identifier":
		if b := a.scopes.refersTo(n); b != nil && b.kind == "const" {
			if v, ok := b.whole(); ok {
				return a.constant(v, depth+1)
			}
		}
	}
	return "", false
}

// position is the number of an element, "[3]"; "[]" where it is computed.
func (a *analysis) position(n node) string {
	if n = a.unwrap(n); a.kind(n) == "number" {
		if i, err := strconv.Atoi(a.text(n)); err == nil {
			return "[" + strconv.Itoa(i) + "]"
		}
	}
	return "[]"
}
