package analysis

import "github.com/pml-run/pml/internal/structure"

// member is an expression that is started before the combinator that waits for it.
type member struct {
	fork   *vertex
	branch int
}

// combinator returns the mode and the argument of Promise.all and its kin.
func (a *analysis) combinator(n node) (mode string, argument node) {
	if a.kind(n) != "call_expression" {
		return "", none
	}
	callee := a.unwrap(a.field(n, "function"))
	if a.kind(callee) != "member_expression" || a.text(a.field(callee, "object")) != "Promise" {
		return "", none
	}
	args := a.arguments(n)
	switch mode = a.text(a.field(callee, "property")); mode {
	case "all", "allSettled", "race", "any":
		if len(args) == 1 {
			return mode, args[0]
		}
	}
	return "", none
}

// findForks makes a fork and a join of each combinator that waits for calls.
func (a *analysis) findForks() {
	for n, kind := range a.all() {
		if kind != "call_expression" {
			continue
		}
		mode, arg := a.combinator(n)
		if mode == "" {
			continue
		}
		if a.bears(arg) {
			a.newFork(n, mode, a.at[a.field(n, "function")].end)
			continue
		}
		if source := a.lateSource(arg); source >= 0 {
			f := a.newFork(n, mode, a.lateOffset(source))
			f.source = source
			a.late[source] = f
			continue
		}
		if members := a.lateMembers(n, arg); len(members) > 1 {
			f := a.newFork(n, mode, a.at[members[0]].start)
			for i, m := range members {
				a.members[m] = &member{f, i}
			}
		}
	}
}

func (a *analysis) newFork(n node, mode string, offset uint32) *vertex {
	f := a.newVertex(structure.Fork, n, offset, rankFork)
	f.Mode = mode
	a.forks[n] = f
	j := a.newVertex(structure.Join, n, a.at[n].end, rankJoin)
	j.Mode, j.fork = mode, f
	a.joins[n] = j
	return f
}

// lateSource is the array or map call that a combinator's argument was bound to
// earlier.
func (a *analysis) lateSource(arg node) node {
	n := a.unwrap(arg)
	if a.kind(n) != "identifier" || a.scopes.refersTo(n) == nil {
		return none
	}
	v, ok := a.scopes.refersTo(n).whole()
	if !ok || !a.bears(v) {
		return none
	}
	v = a.unwrap(v)
	if it, ok := a.iterationAt(v); a.kind(v) == "array" || ok && it.collects() {
		return v
	}
	return none
}

func (a *analysis) lateOffset(source node) uint32 {
	if _, ok := a.iterationAt(source); ok {
		return a.at[a.field(source, "function")].end
	}
	return a.at[source].start
}

// lateMembers are the started expressions that the identifiers of an array are
// bound to; nil unless all of them are.
func (a *analysis) lateMembers(call, arg node) []node {
	n := a.unwrap(arg)
	if a.kind(n) != "array" {
		return nil
	}
	var out []node
	for _, e := range a.children(n) {
		b := a.scopes.refersTo(a.unwrap(e))
		if b == nil || b.kind != "const" {
			return nil
		}
		v, ok := b.whole()
		if !ok || !a.bears(v) || a.owner[v] != a.owner[call] {
			return nil
		}
		v = a.unwrap(v)
		if k := a.kind(v); k == "await_expression" || isFunction(k) || a.members[v] != nil || a.late[v] != nil {
			return nil
		}
		out = append(out, v)
	}
	return out
}
