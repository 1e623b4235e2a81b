package analysis

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// canonical writes a program in a form that does not depend on how it is laid out,
// commented, typed or on what its locals are called.
type canonical struct {
	*lifter
	out    strings.Builder
	shape  bool // parameters by number instead of by value
	locals map[*binding]int
	params map[string]int
}

// hashes are the hash of the program and that of its shape.
func (l *lifter) hashes() (exact, shape string) {
	return l.hash(false), l.hash(true)
}

func (l *lifter) hash(shape bool) string {
	c := &canonical{lifter: l, shape: shape, locals: map[*binding]int{}, params: map[string]int{}}
	for _, s := range l.children(0) {
		c.write(s)
	}
	return hashText(c.out.String())
}

// hashText is 128 bits of a text's hash in hexadecimal digits.
func hashText(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

func (c *canonical) atom(s string) {
	c.out.WriteByte(' ')
	c.out.WriteString(s)
}

// list writes (name …).
func (c *canonical) list(name string, parts ...node) {
	c.open(name)
	for _, p := range parts {
		c.write(p)
	}
	c.close()
}

func (c *canonical) open(name string) { c.atom("(" + name) }

func (c *canonical) close() { c.out.WriteByte(')') }

// write writes one node.
func (c *canonical) write(n node) {
	if n < 0 || c.limit.over() {
		return
	}
	if c.endsChain(n) {
		c.list("group", c.first(n))
		return
	}
	n = c.unwrap(n)
	kind := c.kind(n)
	if b := c.scopes.declared[n]; b != nil && kind == "type_identifier" { // a class
		c.atom("v" + ordinal(c.locals, b))
		return
	}
	if c.isNothing(n, kind) {
		return
	}
	if p := c.bySite[n]; p != nil && c.shape && p.literal != "" {
		c.parameter(p.name)
		return
	}
	if kind != "array" && kind != "object" {
		if v, ok := c.literal(n); ok {
			c.atom(encode(v))
			return
		}
	}
	if !c.name(n, kind) && !c.special(n, kind) {
		c.phrase(n, kind)
	}
}

// isNothing reports whether a node leaves nothing behind when the program runs.
func (c *canonical) isNothing(n node, kind string) bool {
	switch kind {
	case "comment", "import_statement":
		return true
	case "empty_statement":
		switch c.kind(c.parent(n)) {
		case "program", "statement_block", "switch_case", "switch_default", "class_body":
			return true
		}
	}
	return isType(kind)
}

// endsChain reports whether n's parentheses end an optional chain: (a?.b).c throws
// where a?.b.c does not.
func (c *canonical) endsChain(n node) bool {
	if c.kind(n) != "parenthesized_expression" {
		return false
	}
	switch p := c.parent(n); c.kind(p) {
	case "member_expression", "subscript_expression", "call_expression":
		return c.at[p].child == n && strings.Contains(c.text(n), "?.")
	}
	return false
}

// phrase writes a node of any other kind: its name, its parts and its keywords.
func (c *canonical) phrase(n node, kind string) {
	c.open(kind)
	for p := range c.tokens(n) {
		if c.at[p].named {
			c.write(p)
			continue
		}
		switch t := c.kind(p); t {
		case ";", ",", "(", ")", "{", "}":
		default:
			c.atom(t)
		}
	}
	c.close()
}

// ordinal numbers a key by its first occurrence.
func ordinal[K comparable](seen map[K]int, key K) string {
	i, ok := seen[key]
	if !ok {
		i = len(seen)
		seen[key] = i
	}
	return strconv.Itoa(i)
}

func (c *canonical) parameter(name string) { c.atom("P" + ordinal(c.params, name)) }

// name writes identifiers and references to tools.
func (c *canonical) name(n node, kind string) bool {
	switch kind {
	case "identifier", "shorthand_property_identifier", "shorthand_property_identifier_pattern":
		c.identifier(n, kind)
	case "member_expression", "subscript_expression":
		if object := c.field(n, "object"); c.shape && kind == "member_expression" && c.text(object) == argsName && c.scopes.refersTo(object) == nil {
			c.parameter(c.text(c.field(n, "property")))
			return true
		}
		r := c.reference(n)
		if r.kind == noReference || r.dynamic {
			return false
		}
		c.tool(r)
	case "property_identifier", "statement_identifier", "private_property_identifier":
		c.key(c.text(n))
	case "regex":
		c.atom(encode(c.text(n)))
	default:
		return false
	}
	return true
}

// key writes the name of a property.
func (c *canonical) key(name string) {
	if !isName(name) {
		name = encode(name)
	}
	c.atom("." + name)
}

// tool writes a reference by the tool's exact name, whichever alias stands there.
func (c *canonical) tool(r reference) {
	if r.kind == toTool {
		id := c.toolOf(r)
		r.server, r.tool = id.Server(), id.Name()
	}
	c.atom("T:" + strconv.Quote(r.server) + ":" + strconv.Quote(r.tool))
}

func (c *canonical) identifier(n node, kind string) {
	b := c.scopes.binding(n)
	if c.scopes.declared[n] == nil {
		if r := c.reference(n); r.kind != noReference {
			c.tool(r)
			return
		}
	}
	if kind == "shorthand_property_identifier_pattern" {
		c.open("pair ." + c.text(n))
		defer c.close()
	}
	name := c.text(n)
	switch {
	case b != nil && b.kind != "member":
		c.atom("v" + ordinal(c.locals, b))
	case b == nil && c.shape && c.byName[name] != nil:
		c.parameter(name)
	default:
		c.atom("$" + name)
	}
}
