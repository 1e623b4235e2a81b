package analysis

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
)

// parameter is a value that the program can be run with again.
type parameter struct {
	name     string
	schema   map[string]any
	literal  string // the JSON of a lifted literal, "" for what the program reads
	required bool
	sites    []node // the literals or names that it stands for
}

// lifter finds what a program could be given from outside.
type lifter struct {
	*analysis
	byName  map[string]*parameter
	list    []*parameter
	bySite  map[node]*parameter
	coupled []string // texts that the program also compares with, as JSON
}

// newLifter collects the names that the program reads. They keep their names;
// literals give way.
func newLifter(a *analysis) *lifter {
	l := &lifter{analysis: a, byName: map[string]*parameter{}, bySite: map[node]*parameter{}}
	for _, p := range append(l.freeNames(), l.readArguments()...) {
		if l.byName[p.name] == nil {
			l.byName[p.name] = p
			l.list = append(l.list, p)
		}
	}
	return l
}

// liftLiterals makes parameters of the literals that the program passes on.
func (l *lifter) liftLiterals() {
	read := l.list
	l.list = nil
	l.couple()
	for _, v := range l.vertices {
		if v.calls() && !v.Ref {
			l.call(v.syntax, l.tools[tool.ID(v.Tool)].InputSchema)
		}
	}
	for n, kind := range l.all() {
		if kind != "call_expression" {
			continue
		}
		if t, own := l.options.taskAt(l.at[n]); own && t.code {
			l.call(n, nil)
		}
	}
	l.list = append(l.list, read...)
}

// call lifts the literals of a call's first argument.
func (l *lifter) call(n node, schema json.RawMessage) {
	if args := l.arguments(n); len(args) > 0 {
		if u := l.unwrap(args[0]); l.kind(u) == "object" {
			l.object(u, schema)
		}
	}
}

// couple collects the texts that are case labels or operands of a comparison.
func (l *lifter) couple() {
	for n, kind := range l.all() {
		if kind != "string" {
			continue
		}
		p := l.parent(n)
		compared := false
		if l.kind(p) == "binary_expression" {
			switch l.operator(p) {
			case "===", "!==", "==", "!=", "in":
				compared = true
			}
		}
		if compared || l.kind(p) == "switch_case" {
			if v, ok := l.literal(n); ok {
				l.coupled = append(l.coupled, encode(v))
			}
		}
	}
}

// stays reports whether a literal must not be lifted: null, and what the program
// also compares with.
func (l *lifter) stays(v any) bool {
	text := encode(v)
	return v == nil || slices.ContainsFunc(l.coupled, func(c string) bool { return strings.Contains(text, c) })
}

// object lifts the literals of an argument object.
func (l *lifter) object(n node, schema json.RawMessage) {
	known, _ := parseKeys(schema)
	for _, c := range l.children(n) {
		switch l.kind(c) {
		case "pair":
			name := l.propertyName(l.field(c, "key"))
			l.property(name, l.field(c, "value"), known.all[name])
		case "shorthand_property_identifier":
			l.property(l.text(c), c, known.all[l.text(c)])
		}
	}
}

func (l *lifter) property(name string, n node, schema json.RawMessage) {
	n = l.unwrap(n)
	if v, ok := l.literal(n); ok {
		l.lift(name, n, v, schema)
		return
	}
	if l.kind(n) == "object" {
		l.object(n, schema)
		return
	}
	b := l.scopes.refersTo(n)
	if b == nil || b.kind != "const" {
		return
	}
	value, ok := b.whole()
	if !ok || l.kind(value) == "as_expression" || l.kind(value) == "satisfies_expression" {
		return
	}
	value = l.unwrap(value)
	if v, ok := l.literal(value); ok {
		l.lift(b.name, value, v, schema)
	}
}

// lift makes a literal a parameter, or adds it to the parameter of the same name
// and value.
func (l *lifter) lift(name string, site node, v any, schema json.RawMessage) {
	if l.bySite[site] != nil || l.stays(v) || l.scopes.find(site, argsName) != nil {
		return
	}
	if !isName(name) {
		name = "value"
	}
	literal := encode(v)
	for i, base := 2, name; ; i++ {
		p := l.byName[name]
		if p == nil {
			p = &parameter{name: name, schema: parameterSchema(v, schema), literal: literal}
			l.byName[name] = p
			l.list = append(l.list, p)
		}
		if p.literal == literal {
			p.sites = append(p.sites, site)
			l.bySite[site] = p
			return
		}
		name = base + strconv.Itoa(i)
	}
}

// parameterSchema is the tool's own schema of the property, or one made from the
// value; in both cases with the value as the default.
func parameterSchema(v any, known json.RawMessage) map[string]any {
	var out map[string]any
	if len(known) == 0 || json.Unmarshal(known, &out) != nil || out == nil {
		out = schemaOf(v)
	}
	out["default"] = v
	return out
}

const argsName = "args"

// freeNames are the variables that the program reads and nothing declares. What it
// calls is none: nobody can pass a function.
func (l *lifter) freeNames() []*parameter {
	var out []*parameter
	for name, uses := range l.scopes.free {
		if globals[name] || name == argsName || !isName(name) {
			continue
		}
		if slices.ContainsFunc(uses, l.isNoValue) {
			continue
		}
		out = append(out, &parameter{name: name, schema: map[string]any{}, required: true, sites: uses})
	}
	slices.SortFunc(out, bySite)
	return out
}

func bySite(x, y *parameter) int { return int(x.sites[0] - y.sites[0]) }

// isNoValue reports whether a name is called, or the target of an assignment.
func (l *lifter) isNoValue(n node) bool {
	n = l.wrapped(n)
	switch p := l.parent(n); l.kind(p) {
	case "call_expression":
		return l.field(p, "function") == n
	case "new_expression":
		return l.field(p, "constructor") == n
	case "assignment_expression", "augmented_assignment_expression":
		return l.field(p, "left") == n
	case "update_expression", "array_pattern", "object_pattern":
		return true
	}
	return l.kind(n) == "shorthand_property_identifier_pattern"
}

// readArguments are the properties of args that the program reads.
func (l *lifter) readArguments() []*parameter {
	byName := map[string]*parameter{}
	read := func(name string, site node, required bool) {
		p := byName[name]
		if p == nil {
			p = &parameter{name: name, schema: map[string]any{}, required: true}
			byName[name] = p
		}
		p.required = p.required && required
		p.sites = append(p.sites, site)
	}
	for _, n := range l.scopes.free[argsName] {
		top := l.wrapped(n)
		switch p := l.parent(top); l.kind(p) {
		case "member_expression":
			if l.field(p, "object") == top {
				read(l.text(l.field(p, "property")), p, l.isNeeded(p))
			}
		case "subscript_expression":
			if name, ok := l.constant(l.field(p, "index"), 0); ok && l.field(p, "object") == top {
				read(name, p, l.isNeeded(p))
			}
		case "variable_declarator":
			l.readPattern(l.field(p, "name"), read)
		}
	}
	out := slices.Collect(maps.Values(byName))
	slices.SortFunc(out, bySite)
	return out
}

// readPattern reads const { a, b = 1 } = args.
func (l *lifter) readPattern(pattern node, read func(name string, site node, required bool)) {
	if l.kind(pattern) != "object_pattern" {
		return
	}
	for _, c := range l.children(pattern) {
		switch l.kind(c) {
		case "shorthand_property_identifier_pattern":
			read(l.text(c), c, true)
		case "pair_pattern":
			read(l.propertyName(l.field(c, "key")), c, l.kind(l.field(c, "value")) != "assignment_pattern")
		case "object_assignment_pattern":
			read(l.text(l.field(c, "left")), c, false)
		}
	}
}

// isNeeded reports whether the program relies on a value: it has no other for when
// there is none.
func (l *lifter) isNeeded(n node) bool {
	top := l.wrapped(n)
	p := l.parent(top)
	switch l.kind(p) {
	case "binary_expression":
		return !isShort(l.operator(p)) || l.field(p, "left") != top || l.operator(p) == "&&"
	case "member_expression", "subscript_expression", "call_expression":
		return l.field(p, "optional_chain") < 0 && l.token(p, "?.") < 0
	}
	return true
}

// isName reports whether a parameter of this name can be read as args.name.
func isName(s string) bool {
	for i, c := range s {
		if c != '_' && c != '$' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// public are the parameters as others see them.
func (l *lifter) public(inputs []Input) []structure.Parameter {
	for _, in := range inputs {
		if p := l.byName[in.Name]; p != nil && len(p.schema) == 0 {
			p.schema = l.schemaFrom(in.Feeds)
		}
	}
	var out []structure.Parameter
	for _, p := range l.list {
		q := structure.Parameter{Name: p.name, Schema: json.RawMessage(encode(p.schema)), Required: p.required}
		if p.literal != "" {
			site := l.at[p.sites[0]]
			q.Start, q.End = int(site.start), int(site.end)
		}
		out = append(out, q)
	}
	return out
}
