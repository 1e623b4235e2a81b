package analysis

import "strconv"

// declareAt declares what node n declares.
func (s *scopes) declareAt(n node, kind string) {
	unknown := definition{kind: fromUnknown, value: none}
	switch kind {
	case "variable_declarator":
		s.declareVariable(n)
	case "function_declaration", "generator_function_declaration":
		s.declareFunction(s.scopeOf(n, "let"), n)
	case "function_expression", "generator_function":
		s.declareFunction(n, n)
	case "class_declaration", "abstract_class_declaration", "enum_declaration":
		if name := s.field(n, "name"); name >= 0 {
			b := s.declare(s.scopeOf(n, "let"), name, "class")
			b.definitions = append(b.definitions, unknown)
		}
	case "enum_body":
		for _, m := range s.children(n) {
			if name := s.field(m, "name"); name >= 0 {
				m = name
			}
			b := s.declare(n, m, "member")
			b.definitions = append(b.definitions, unknown)
		}
	case "for_in_statement":
		if k := s.field(n, "kind"); k >= 0 {
			s.pattern(s.field(n, "left"), n, s.text(k), s.eachOf(n))
		}
	case "catch_clause":
		if p := s.field(n, "parameter"); p >= 0 {
			s.pattern(p, n, "catch", unknown)
		}
	case "import_statement":
		for i, k := range s.within(n) {
			if k == "identifier" {
				b := s.declare(0, i, "import")
				b.definitions = append(b.definitions, unknown)
			}
		}
	}
	if isFunction(kind) {
		s.declareParameters(n)
	}
}

// eachOf is what the head of a for-of or for-in binds.
func (s *scopes) eachOf(loop node) definition {
	return definition{value: s.field(loop, "right"), element: true, path: []string{"[]"}}
}

func (s *scopes) declareVariable(n node) {
	kind := "var"
	if p := s.parent(n); s.kind(p) == "lexical_declaration" {
		kind = "const" // also for using
		if k := s.field(p, "kind"); k >= 0 {
			kind = s.text(k)
		}
	}
	scope := s.scopeOf(n, kind)
	name, value := s.field(n, "name"), s.field(n, "value")
	s.pattern(name, scope, kind, definition{value: value})
	if value >= 0 && kind == "const" && s.kind(name) == "identifier" {
		if f := s.unwrap(value); isFunction(s.kind(f)) {
			s.declared[name].function = f
		}
	}
}

func (s *scopes) declareFunction(scope, n node) {
	name := s.field(n, "name")
	if name < 0 {
		return
	}
	b := s.declare(scope, name, "function")
	b.function = n
	b.definitions = append(b.definitions, definition{kind: fromFunction, value: none, function: n})
}

// parameters are the patterns of a function's parameters, without this.
func (t *tree) parameters(function node) []node {
	if p := t.field(function, "parameter"); p >= 0 {
		return []node{p}
	}
	var out []node
	for _, c := range t.children(t.field(function, "parameters")) {
		if p := t.field(c, "pattern"); p >= 0 && t.kind(p) != "this" {
			out = append(out, p)
		}
	}
	return out
}

func (s *scopes) declareParameters(function node) {
	for i, p := range s.parameters(function) {
		s.pattern(p, function, "parameter", definition{kind: fromParameter, value: none, function: function, index: i})
		if v := s.field(s.parent(p), "value"); v >= 0 && s.parent(p) != function {
			s.fallback(p, v)
		}
	}
}

// fallback adds a default to the name that a pattern binds.
func (s *scopes) fallback(name, value node) {
	if name >= 0 && s.declared[name] != nil {
		b := s.declared[name]
		b.definitions = append(b.definitions, definition{value: value, fallback: true})
	}
}

// pattern declares the names of a binding pattern; d defines the whole of it.
func (s *scopes) pattern(n, scope node, kind string, d definition) {
	switch s.kind(n) {
	case "identifier", "shorthand_property_identifier_pattern":
		b := s.declare(scope, n, kind)
		b.definitions = append(b.definitions, d)
	case "object_pattern":
		for _, c := range s.children(n) {
			s.propertyPattern(c, scope, kind, d)
		}
	case "array_pattern":
		s.arrayPattern(n, scope, kind, d)
	case "assignment_pattern":
		left := s.field(n, "left")
		s.pattern(left, scope, kind, d)
		s.fallback(left, s.field(n, "right"))
	case "rest_pattern":
		s.pattern(s.first(n), scope, kind, d.at("..."))
	case "non_null_expression", "parenthesized_expression", "as_expression":
		s.pattern(s.first(n), scope, kind, d)
	}
}

func (s *scopes) propertyPattern(n, scope node, kind string, d definition) {
	switch s.kind(n) {
	case "shorthand_property_identifier_pattern":
		s.pattern(n, scope, kind, d.at(s.text(n)))
	case "pair_pattern":
		s.pattern(s.field(n, "value"), scope, kind, d.at(s.propertyName(s.field(n, "key"))))
	case "object_assignment_pattern":
		left := s.field(n, "left")
		s.pattern(left, scope, kind, d.at(s.text(left)))
		s.fallback(left, s.field(n, "right"))
	case "rest_pattern":
		s.pattern(s.first(n), scope, kind, d.at("..."))
	}
}

func (s *scopes) arrayPattern(n, scope node, kind string, d definition) {
	index := 0
	for c := range s.tokens(n) {
		switch {
		case s.kind(c) == ",":
			index++
		case !s.at[c].named || s.kind(c) == "comment":
		default:
			s.pattern(c, scope, kind, d.at("["+strconv.Itoa(index)+"]"))
		}
	}
}

// assignAt adds the definitions that node n gives to names declared elsewhere.
func (s *scopes) assignAt(n node, kind string) {
	switch kind {
	case "assignment_expression", "augmented_assignment_expression":
		s.assign(s.field(n, "left"), definition{value: s.field(n, "right")})
	case "update_expression":
		if b := s.refersTo(s.unwrap(s.field(n, "argument"))); b != nil {
			b.definitions = append(b.definitions, definition{kind: fromUnknown, value: none})
		}
	case "for_in_statement":
		if s.field(n, "kind") < 0 {
			s.assign(s.field(n, "left"), s.eachOf(n))
		}
	case "call_expression":
		s.mutateBy(n)
	}
}

// assign gives the target of an assignment a definition.
func (s *scopes) assign(target node, d definition) {
	target = s.unwrap(target)
	switch s.kind(target) {
	case "identifier", "shorthand_property_identifier_pattern":
		if b := s.refersTo(target); b != nil {
			b.definitions = append(b.definitions, d)
		}
	case "member_expression", "subscript_expression":
		if b := s.refersTo(s.root(target)); b != nil {
			d.kind = fromMutation
			b.definitions = append(b.definitions, d)
		}
	case "array_pattern", "object_pattern", "array", "object":
		for _, c := range s.children(target) {
			s.assign(c, d.at("[]"))
		}
	}
}

// mutateBy records the elements that a method call adds to a collection.
func (s *scopes) mutateBy(call node) {
	callee := s.field(call, "function")
	if s.kind(callee) != "member_expression" {
		return
	}
	method := s.text(s.field(callee, "property"))
	switch method {
	case "push", "unshift", "add", "set", "splice":
	default:
		return
	}
	b := s.refersTo(s.root(s.field(callee, "object")))
	if b == nil {
		return
	}
	for i, arg := range s.children(s.field(call, "arguments")) {
		if method == "set" && i == 0 {
			continue
		}
		d := definition{kind: fromMutation, value: arg}
		if s.kind(arg) == "spread_element" {
			d.value, d.path = s.first(arg), []string{"[]"}
		}
		b.definitions = append(b.definitions, d)
	}
}
