package analysis

import "iter"

// node is the index of a syntax node in its tree.
type node int32

// none is no node.
const none node = -1

// syntax is one node of the tree, a token or a phrase.
type syntax struct {
	kind, field         uint16
	named, broken       bool
	start, end          uint32
	parent, child, next node
}

// tree is a program's syntax in pre-order: a node's descendants follow it
// directly, up to last[n].
type tree struct {
	src    string
	at     []syntax
	last   []node // the first node behind each node's descendants
	broken []node // errors and missing tokens
	depth  int
}

// add appends a node behind its sibling before, or as its parent's first child.
func (t *tree) add(s syntax, before node) node {
	id := node(len(t.at))
	t.at = append(t.at, s)
	if s.broken {
		t.broken = append(t.broken, id)
	}
	switch {
	case before >= 0:
		t.at[before].next = id
	case s.parent >= 0:
		t.at[s.parent].child = id
	}
	return id
}

// close fills last, once the tree is complete.
func (t *tree) close() {
	t.last = make([]node, len(t.at))
	for i := len(t.at) - 1; i >= 0; i-- {
		end := node(i) + 1
		for c := t.at[i].child; c >= 0; c = t.at[c].next {
			end = t.last[c]
		}
		t.last[i] = end
	}
}

// all are the named nodes in order, from the program's own down, without types.
func (t *tree) all() iter.Seq2[node, string] {
	return t.within(0)
}

// within are the named nodes of n's range, n first, without types.
func (t *tree) within(n node) iter.Seq2[node, string] {
	return func(yield func(node, string) bool) {
		for i := n; i < t.last[n]; i++ {
			switch kind := t.kind(i); {
			case !t.at[i].named:
			case isType(kind):
				i = t.last[i] - 1
			case !yield(i, kind):
				return
			}
		}
	}
}

// holds reports whether n is outer or inside it.
func (t *tree) holds(outer, n node) bool { return outer >= 0 && n >= outer && n < t.last[outer] }

func (t *tree) kind(n node) string {
	if n < 0 {
		return ""
	}
	return kindNames[t.at[n].kind]
}

func (t *tree) text(n node) string {
	if n < 0 {
		return ""
	}
	return t.src[t.at[n].start:t.at[n].end]
}

func (t *tree) parent(n node) node { return t.at[n].parent }

// field is n's child in a field of the grammar.
func (t *tree) field(n node, name string) node {
	if n < 0 {
		return none
	}
	for c := t.at[n].child; c >= 0; c = t.at[c].next {
		if f := t.at[c].field; f != 0 && fieldNames[f] == name && t.kind(c) != "comment" {
			return c
		}
	}
	return none
}

func (t *tree) fieldName(n node) string { return fieldNames[t.at[n].field] }

// children are n's named children without comments.
func (t *tree) children(n node) []node {
	if n < 0 {
		return nil
	}
	var out []node
	for c := t.at[n].child; c >= 0; c = t.at[c].next {
		if t.at[c].named && t.kind(c) != "comment" {
			out = append(out, c)
		}
	}
	return out
}

// first is n's first named child.
func (t *tree) first(n node) node {
	if n < 0 {
		return none
	}
	for c := t.at[n].child; c >= 0; c = t.at[c].next {
		if t.at[c].named && t.kind(c) != "comment" {
			return c
		}
	}
	return none
}

// tokens are all children of n, with punctuation and comments.
func (t *tree) tokens(n node) iter.Seq[node] {
	return func(yield func(node) bool) {
		for c := t.at[n].child; c >= 0; c = t.at[c].next {
			if !yield(c) {
				return
			}
		}
	}
}

// token is n's child that is this keyword or mark.
func (t *tree) token(n node, text string) node {
	if n < 0 {
		return none
	}
	for c := range t.tokens(n) {
		if !t.at[c].named && t.kind(c) == text {
			return c
		}
	}
	return none
}

func (t *tree) operator(n node) string { return t.text(t.field(n, "operator")) }

// realEnd is where n's last token ends: a statement without a semicolon may
// extend over a comment behind it.
func (t *tree) realEnd(n node) uint32 {
	for {
		last := none
		for c := range t.tokens(n) {
			if t.at[c].end > t.at[c].start && t.kind(c) != "comment" {
				last = c
			}
		}
		if last < 0 || isText(t.kind(n)) {
			return t.at[n].end
		}
		n = last
	}
}

// unwrap takes parentheses and type-only wrappers off an expression.
func (t *tree) unwrap(n node) node {
	for n >= 0 {
		inner := none
		switch t.kind(n) {
		case "parenthesized_expression", "as_expression", "satisfies_expression", "non_null_expression":
			inner = t.first(n)
		case "type_assertion":
			if c := t.children(n); len(c) > 0 {
				inner = c[len(c)-1]
			}
		}
		if inner < 0 {
			return n
		}
		n = inner
	}
	return n
}

// wrapped climbs from n to the outermost wrapper that unwrap would take off.
func (t *tree) wrapped(n node) node {
	for p := t.parent(n); p >= 0; p = t.parent(p) {
		switch t.kind(p) {
		case "parenthesized_expression", "as_expression", "satisfies_expression", "non_null_expression":
			n = p
		default:
			return n
		}
	}
	return n
}

func isText(kind string) bool {
	return kind == "string" || kind == "template_string" || kind == "regex"
}

func isIdentifier(kind string) bool {
	return kind == "identifier" || kind == "shorthand_property_identifier"
}

func isFunction(kind string) bool {
	switch kind {
	case "arrow_function", "function_expression", "function", "function_declaration",
		"generator_function", "generator_function_declaration", "method_definition":
		return true
	}
	return false
}

func isLoop(kind string) bool {
	return kind == "for_statement" || kind == "for_in_statement" || kind == "while_statement" || kind == "do_statement"
}

// isType reports whether nodes of this kind exist for the type checker only.
func isType(kind string) bool {
	switch kind {
	case "type_annotation", "type_arguments", "type_parameters", "interface_declaration", "type_alias_declaration",
		"ambient_declaration", "asserts_annotation", "type_predicate_annotation", "implements_clause", "index_signature",
		"function_signature", "method_signature", "abstract_method_signature", "extends_type_clause",
		"omitting_type_annotation", "opting_type_annotation", "adding_type_annotation", "type_query", "object_type",
		"union_type", "intersection_type", "function_type", "constructor_type", "array_type", "tuple_type", "generic_type",
		"conditional_type", "literal_type", "lookup_type", "index_type_query", "template_literal_type", "readonly_type",
		"parenthesized_type", "infer_type", "predefined_type", "type_identifier", "nested_type_identifier":
		return true
	}
	return false
}

// isGenerator reports whether function n yields.
func (t *tree) isGenerator(n node) bool {
	switch t.kind(n) {
	case "generator_function", "generator_function_declaration":
		return true
	case "method_definition":
		return t.token(n, "*") >= 0
	}
	return false
}

// propertyName is the name of a property key; "[]" when it is computed.
func (t *tree) propertyName(key node) string {
	switch t.kind(key) {
	case "string":
		return t.quoted(key)
	case "computed_property_name":
		if c := t.first(key); t.kind(c) == "string" {
			return t.quoted(c)
		}
		return "[]"
	}
	return t.text(key)
}

// quoted is the text between a string's quotes.
func (t *tree) quoted(n node) string {
	s := t.text(n)
	if len(s) >= 2 {
		return s[1 : len(s)-1]
	}
	return s
}

// root is the identifier that a chain of members and subscripts starts with.
func (t *tree) root(n node) node {
	for {
		n = t.unwrap(n)
		switch t.kind(n) {
		case "member_expression", "subscript_expression":
			n = t.field(n, "object")
		case "identifier":
			return n
		default:
			return none
		}
	}
}
