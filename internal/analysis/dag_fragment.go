package analysis

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/fault"
)

// resultsName is what a task's condition and code read results from.
const resultsName = "results"

// fragment is a condition or the code of a task, read by itself.
type fragment struct {
	*tree
	scopes *scopes
}

// newFragment reads a text that has no syntax error.
func newFragment(text string) (fragment, error) {
	t, err := parse(text)
	if err != nil {
		return fragment{}, fault.New(fault.UnsupportedCode, "%v", err).WithHint("write it shorter")
	}
	if len(t.broken) > 0 {
		if err := checkSyntax(text, t); err != nil {
			return fragment{}, err
		}
		if i, b, ok := unbalanced(text); ok {
			return fragment{}, syntaxFault(text, i, `Unexpected "`+b.text+`"`, "the "+b.text+" has no partner here: a task's code is complete by itself")
		}
		e := fault.New(fault.UnsupportedCode, "the analyser does not know this syntax")
		e.Line, e.Column = newLines(text).place(int(t.at[t.broken[0]].start))
		return fragment{}, e.WithHint("write it in another way, or send the dag as code")
	}
	if len(t.at) > maxNodes || t.depth > maxDepth {
		return fragment{}, fault.New(fault.UnsupportedCode, "this is larger than 100,000 syntax nodes or nested more than 500 levels deep").
			WithHint("write it shorter, and pass large values as arguments")
	}
	t.repair()
	return fragment{t, newScopes(t)}, nil
}

// newCondition reads a condition. It is one expression and nothing else.
func newCondition(text string) (fragment, error) {
	wrapped := "(" + text + "\n)"
	p, err := newFragment(wrapped)
	if err == nil {
		all := p.children(0)
		if len(all) == 1 && p.kind(p.first(all[0])) == "parenthesized_expression" && p.at[p.first(all[0])].end == uint32(len(wrapped)) {
			return p, nil
		}
		err = checkSyntax(wrapped, p.tree)
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = fault.New(fault.SyntaxError, "it is more than one expression").
			WithHint("write one JavaScript expression, such as t1.items.length > 0; use code for more")
	}
	g := *f
	g.Message = "condition: " + f.Message
	l := newLines(text)
	switch {
	case f.Line > len(l.starts): // the bracket behind the condition
		g.Line, g.Column = l.place(len(text))
	case f.Line == 1:
		g.Column = max(f.Column-len("("), 1)
	}
	if g.Line >= 1 {
		g.Source = l.text(g.Line)
	}
	return fragment{}, &g
}

// newCode reads the code of a task, and makes its last expression its result as that
// of a program is.
func newCode(text string) (p fragment, runs string, err error) {
	alone, err := Analyse(text, Options{})
	if err == nil {
		p, err = newFragment(text)
	}
	f, ok := errors.AsType[*fault.Error](err)
	switch {
	case ok:
		g := *f
		g.Message = "code: " + f.Message
		return p, "", &g
	case err != nil:
		return p, "", err
	}
	return p, apply(text, slices.Clone(alone.source.result)).out, nil
}

// uses are the places where a fragment reads results.
type uses struct {
	direct  map[string][]node // by the id of a task, where that is a name
	members map[string][]node // results.t1, by the property
	whole   []node            // results itself
}

// uses finds what a fragment reads, ids being those of all tasks.
func (p fragment) uses(ids map[string]bool) uses {
	u := uses{direct: map[string][]node{}, members: map[string][]node{}}
	for name, sites := range p.scopes.free {
		if ids[name] && !globals[name] && name != argsName && name != resultsName {
			u.direct[name] = sites
		}
	}
	for _, n := range p.scopes.free[resultsName] {
		if member, name := p.memberOf(n); member >= 0 {
			u.members[name] = append(u.members[name], member)
		} else {
			u.whole = append(u.whole, n)
		}
	}
	return u
}

// memberOf is the member access around n with the name that it reads, none where that
// is computed.
func (p fragment) memberOf(n node) (member node, name string) {
	top := p.wrapped(n)
	m := p.parent(top)
	if m < 0 || p.field(m, "object") != top {
		return none, ""
	}
	switch p.kind(m) {
	case "member_expression":
		return m, p.text(p.field(m, "property"))
	case "subscript_expression":
		if v, ok := p.literal(p.field(m, "index")); ok {
			if name, ok := v.(string); ok {
				return m, name
			}
		}
	}
	return none, ""
}

// check makes sure that everything that is read by name comes before the task.
func (u uses) check(before, ids map[string]bool) error {
	for _, read := range []map[string][]node{u.direct, u.members} {
		for _, id := range slices.Sorted(maps.Keys(read)) {
			switch {
			case before[id]:
			case ids[id]:
				return fault.New(fault.InvalidInput, "it reads the result of %q, which may not be there yet", id).
					WithHint("add %q to the task's depends_on", id)
			default:
				return fault.New(fault.InvalidInput, "it reads the result of %q, and there is no such task", id).
					WithHint("read the result of a task of the list")
			}
		}
	}
	return nil
}

// reads reports whether a fragment uses a name that it does not declare.
func (p fragment) reads(name string) bool { return len(p.scopes.free[name]) > 0 }

// substitute writes a condition with the results that it reads under their names in
// the program; all is what stands for results itself.
func (p fragment) substitute(u uses, names map[string]string, all string) string {
	var edits []edit
	replace := func(n node, text string) {
		s := p.at[n]
		if p.kind(n) == "shorthand_property_identifier" {
			text = p.text(n) + ": " + text
		}
		edits = append(edits, edit{start: s.start, end: s.end, text: text, opens: true, reach: s.end})
	}
	for _, read := range []map[string][]node{u.direct, u.members} {
		for id, sites := range read {
			for _, n := range sites {
				if p.text(n) != names[id] {
					replace(n, names[id])
				}
			}
		}
	}
	for _, n := range u.whole {
		replace(n, all)
	}
	out := apply(p.src, edits).out
	if inner := strings.TrimSpace(out[1 : len(out)-1]); !strings.ContainsAny(inner, "\n\r") && !strings.Contains(inner, "//") {
		return "(" + inner + ")"
	}
	return out
}
