package analysis

import (
	"slices"
)

// definitionKind says how a binding gets a value.
type definitionKind byte

const (
	fromValue     definitionKind = iota // of an expression
	fromParameter                       // of an argument
	fromMutation                        // an element or property is written
	fromFunction                        // a function declaration
	fromUnknown                         // a catch, an import, an increment
)

// definition is one place where a binding gets a value.
type definition struct {
	kind  definitionKind
	value node
	// path leads from the value to what is bound: "name", "[3]", "[]" for an
	// element, "..." for the rest.
	path     []string
	function node // the parameter's function
	index    int  // the parameter's position
	element  bool // bound to each element of an iterable
	fallback bool // a default, for when there is no value
}

// at is the definition of the part of d's value that step leads to.
func (d definition) at(step string) definition {
	if d.kind != fromUnknown {
		d.path = append(slices.Clone(d.path), step)
	}
	return d
}

// binding is one declared name.
type binding struct {
	id          int
	name        string
	kind        string // const, let, var, function, class, parameter, catch, import, member
	definitions []definition
	function    node // the function that the name stands for
}

// single returns the only definition of b that gives it a value; defaults do not count.
func (b *binding) single() (definition, bool) {
	var found definition
	n := 0
	for _, d := range b.definitions {
		if !d.fallback {
			found = d
			n++
		}
	}
	return found, n == 1
}

// value returns the expression whose value b always has.
func (b *binding) value() (definition, bool) {
	d, ok := b.single()
	return d, ok && d.kind == fromValue && !d.element && d.value >= 0
}

// whole returns the expression that b is bound to as a whole, without destructuring.
func (b *binding) whole() (node, bool) {
	d, ok := b.value()
	return d.value, ok && len(d.path) == 0 && len(b.definitions) == 1
}

// scopes holds the names of a program.
type scopes struct {
	*tree
	names    map[node]map[string]*binding // by scope
	around   []node                       // the innermost scope around each node
	bindings []*binding
	declared []*binding        // by identifier that declares
	refers   []*binding        // by identifier that refers
	free     map[string][]node // identifiers that nothing declares
}

// newScopes resolves every identifier of the tree.
func newScopes(t *tree) *scopes {
	s := &scopes{
		tree: t, names: map[node]map[string]*binding{}, around: make([]node, len(t.at)), free: map[string][]node{},
		declared: make([]*binding, len(t.at)), refers: make([]*binding, len(t.at)),
	}
	s.around[0] = none
	for n := node(1); n < node(len(t.at)); n++ {
		if p := t.parent(n); isScope(t.kind(p)) {
			s.around[n] = p
		} else {
			s.around[n] = s.around[p]
		}
	}
	for n, kind := range t.all() {
		s.declareAt(n, kind)
	}
	s.resolve()
	for n, kind := range t.all() {
		s.assignAt(n, kind)
	}
	return s
}

func isScope(kind string) bool {
	switch kind {
	case "program", "statement_block", "for_statement", "for_in_statement", "catch_clause", "class_body",
		"switch_body", "enum_body", "class_static_block", "class", "class_declaration":
		return true
	}
	return isFunction(kind)
}

// scopeOf is the innermost scope around n; for var, the innermost function.
func (s *scopes) scopeOf(n node, kind string) node {
	scope := s.around[n]
	for kind == "var" && scope > 0 {
		if k := s.kind(scope); isFunction(k) || k == "class_static_block" {
			break
		}
		scope = s.around[scope]
	}
	return max(scope, 0)
}

// declare adds a name to a scope, or finds it there.
func (s *scopes) declare(scope, id node, kind string) *binding {
	names := s.names[scope]
	if names == nil {
		names = map[string]*binding{}
		s.names[scope] = names
	}
	name := s.text(id)
	b := names[name]
	if b == nil {
		b = &binding{id: len(s.bindings), name: name, kind: kind, function: none}
		names[name] = b
		s.bindings = append(s.bindings, b)
	}
	s.declared[id] = b
	return b
}

// resolve finds for each identifier the binding that it refers to.
func (s *scopes) resolve() {
	for n, kind := range s.all() {
		if !isIdentifier(kind) && kind != "shorthand_property_identifier_pattern" {
			continue
		}
		if s.declared[n] != nil || s.kind(s.parent(n)) == "labeled_statement" || s.inType(n) {
			continue
		}
		if b := s.find(n, s.text(n)); b != nil {
			s.refers[n] = b
		} else {
			s.free[s.text(n)] = append(s.free[s.text(n)], n)
		}
	}
}

// find looks a name up from n outwards.
func (s *scopes) find(n node, name string) *binding {
	for scope := s.around[n]; scope >= 0; scope = s.around[scope] {
		if b := s.names[scope][name]; b != nil {
			return b
		}
	}
	return nil
}

// inType reports whether an identifier stands in the type part of its parent.
func (s *scopes) inType(n node) bool {
	p := s.parent(n)
	if p < 0 {
		return false
	}
	switch s.kind(p) {
	case "as_expression", "satisfies_expression":
		return s.first(p) != n
	case "type_query", "nested_type_identifier", "generic_type":
		return true
	case "type_assertion":
		c := s.children(p)
		return c[len(c)-1] != n
	}
	return false
}

// binding is what identifier n declares or refers to.
func (s *scopes) binding(n node) *binding {
	if n < 0 {
		return nil
	}
	if b := s.refers[n]; b != nil {
		return b
	}
	return s.declared[n]
}

// refersTo is the binding that expression n names.
func (s *scopes) refersTo(n node) *binding {
	if n < 0 {
		return nil
	}
	return s.refers[n]
}
