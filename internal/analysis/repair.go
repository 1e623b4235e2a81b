package analysis

// What the grammar reads differently from JavaScript is put right here, before
// anything else looks at the tree.

// repair rewrites misread constructs and puts the tree into pre-order again.
func (t *tree) repair() {
	changed := false
	for n := range node(len(t.at)) {
		switch t.kind(n) {
		case "call_expression", "subscript_expression":
			changed = t.splitArrow(n) || t.hoistAwait(n) || changed
		case "assignment_expression":
			changed = t.declareUsing(n) || changed
		}
	}
	if changed {
		t.renumber()
	}
	t.close()
}

// hoistAwait turns (await f)<T>(x) into await (f<T>(x)), with the members and
// calls behind it inside the await.
func (t *tree) hoistAwait(call node) bool {
	wait := t.field(call, "function")
	if t.kind(wait) != "await_expression" {
		return false
	}
	keyword, callee := t.at[wait].child, t.first(wait)
	if callee < 0 || t.kind(keyword) != "await" {
		return false
	}
	top := t.chainTop(call)
	// The callee takes the await's place, and the await the place of the chain.
	t.at[callee].field, t.at[callee].next, t.at[callee].parent = t.at[wait].field, t.at[wait].next, call
	t.at[call].child = callee
	t.replace(top, wait)
	t.at[wait].start, t.at[wait].end, t.at[wait].child = t.at[keyword].start, t.at[top].end, keyword
	t.at[keyword].next, t.at[keyword].parent = top, wait
	t.at[top].parent, t.at[top].next, t.at[top].field = wait, none, 0
	for n := call; ; n = t.parent(n) {
		t.at[n].start = t.at[callee].start
		if n == top {
			return true
		}
	}
}

// chainTop climbs from n over the members, subscripts and calls that it begins.
func (t *tree) chainTop(n node) node {
	for {
		p := t.parent(n)
		switch t.kind(p) {
		case "member_expression", "subscript_expression", "call_expression", "non_null_expression":
			if t.at[p].child == n {
				n = p
				continue
			}
		}
		return n
	}
}

// replace puts node with into old's place among its siblings.
func (t *tree) replace(old, with node) {
	p := t.parent(old)
	if t.at[p].child == old {
		t.at[p].child = with
	}
	for c := range t.tokens(p) {
		if t.at[c].next == old {
			t.at[c].next = with
		}
	}
	t.at[with].parent, t.at[with].next, t.at[with].field = p, t.at[old].next, t.at[old].field
}

// declareUsing makes a declaration of what was read as the assignment of `using x = v`.
func (t *tree) declareUsing(assign node) bool {
	keyword := t.token(assign, "using")
	if keyword < 0 {
		return false
	}
	statement := t.parent(assign)
	if t.kind(statement) == "await_expression" {
		await := statement
		statement = t.parent(await)
		t.replace(await, assign)
	}
	if t.kind(statement) != "expression_statement" {
		return false
	}
	t.at[assign].kind, t.at[statement].kind = kindOf("variable_declarator"), kindOf("lexical_declaration")
	for c := range t.tokens(assign) {
		switch t.fieldName(c) {
		case "left":
			t.at[c].field = fieldIndex["name"]
		case "right":
			t.at[c].field = fieldIndex["value"]
		}
	}
	return true
}

// splitArrow makes two statements of an arrow function with a block and the
// bracket on the line after it: JavaScript ends the statement there.
func (t *tree) splitArrow(n node) bool {
	arrow := t.at[n].child
	if t.kind(arrow) != "arrow_function" || t.token(n, "?.") >= 0 {
		return false
	}
	top := t.chainTop(n)
	statement := t.parent(top)
	switch t.kind(statement) {
	case "variable_declarator", "assignment_expression":
		statement = t.parent(statement)
	}
	switch t.kind(statement) {
	case "lexical_declaration", "variable_declaration", "expression_statement", "return_statement":
	default:
		return false
	}
	rest := t.at[arrow].next
	t.replace(top, arrow)
	for p := t.parent(arrow); p != t.parent(statement); p = t.parent(p) {
		t.at[p].end = t.at[arrow].end
	}
	second := t.behind(statement, syntax{
		kind: kindOf("expression_statement"), named: true, start: t.at[rest].start, end: t.at[top].end, child: top,
	})
	t.at[top].parent, t.at[top].next, t.at[top].field = second, none, 0
	for c := n; c != second; c = t.parent(c) {
		t.at[c].start = t.at[rest].start
	}
	t.openBracket(n, rest)
	return true
}

// behind adds a node after its sibling.
func (t *tree) behind(before node, s syntax) node {
	id := node(len(t.at))
	s.parent, s.next = t.parent(before), t.at[before].next
	t.at = append(t.at, s)
	t.at[before].next = id
	return id
}

// openBracket makes n, a call or subscript that lost its callee, the expression
// in parentheses or the array that it is.
func (t *tree) openBracket(n, rest node) {
	if t.kind(rest) == "arguments" {
		t.at[n].kind, rest = kindOf("parenthesized_expression"), t.at[rest].child
	} else {
		t.at[n].kind = kindOf("array")
	}
	t.at[n].child = rest
	before := rest
	for c := rest; c >= 0; {
		if t.kind(n) == "array" && t.kind(c) == "sequence_expression" {
			c = t.inline(before, c)
			continue
		}
		t.at[c].parent, t.at[c].field = n, 0
		before, c = c, t.at[c].next
	}
}

// inline puts the children of seq into its own place, behind before, and returns
// the first of them.
func (t *tree) inline(before, seq node) node {
	last := t.at[seq].child
	for t.at[last].next >= 0 {
		last = t.at[last].next
	}
	t.at[before].next, t.at[last].next = t.at[seq].child, t.at[seq].next
	return t.at[seq].child
}

// renumber copies the tree in the order of its links.
func (t *tree) renumber() {
	old := t.at
	t.at, t.broken = make([]syntax, 0, len(old)), nil
	var copyTree func(from, parent, before node) node
	copyTree = func(from, parent, before node) node {
		s := old[from]
		child := s.child
		s.parent, s.child, s.next = parent, none, none
		id := t.add(s, before)
		last := none
		for ; child >= 0; child = old[child].next {
			last = copyTree(child, id, last)
		}
		return id
	}
	copyTree(0, none, none)
}

// kindOf is the number of a named kind.
func kindOf(name string) uint16 {
	for i, k := range kindNames {
		if k == name && kindNamed[i] {
			return uint16(i)
		}
	}
	panic("analysis: the grammar has no " + name)
}
