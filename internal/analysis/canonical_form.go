package analysis

import "strings"

// special writes what is the same in several forms.
func (c *canonical) special(n node, kind string) bool {
	switch kind {
	case "template_string":
		c.template(n)
	case "object":
		c.object(n)
	case "lexical_declaration", "variable_declaration":
		c.declaration(n, kind)
	case "statement_block":
		return c.block(n)
	case "expression_statement":
		c.list("do", c.children(n)...)
	case "call_expression":
		c.open("call")
		if c.token(n, "?.") >= 0 {
			c.atom("?.")
		}
		c.write(c.field(n, "function"))
		c.write(c.field(n, "arguments"))
		c.close()
	case "array", "array_pattern":
		c.array(n)
	case "for_statement":
		c.forStatement(n)
	case "required_parameter", "optional_parameter":
		if v := c.field(n, "value"); v >= 0 {
			c.list("default", c.field(n, "pattern"), v)
			return true
		}
		c.write(c.field(n, "pattern"))
	case "else_clause", "template_substitution", "computed_property_name":
		for _, p := range c.children(n) {
			c.write(p)
		}
	case "formal_parameters", "arguments":
		c.list("args", c.children(n)...)
	case "arrow_function":
		c.arrow(n)
	default:
		return false
	}
	return true
}

func (c *canonical) template(n node) {
	c.open("template")
	at := c.at[n].start + 1
	for p := range c.tokens(n) {
		if c.kind(p) != "template_substitution" {
			continue
		}
		c.atom(encode(strings.ReplaceAll(c.src[at:c.at[p].start], "\r\n", "\n")))
		c.write(c.first(p))
		at = c.at[p].end
	}
	c.atom(encode(strings.ReplaceAll(c.src[at:c.at[n].end-1], "\r\n", "\n")))
	c.close()
}

func (c *canonical) object(n node) {
	c.open("object")
	for _, p := range c.children(n) {
		switch c.kind(p) {
		case "pair":
			c.open("pair")
			key := c.field(p, "key")
			if name := c.propertyName(key); c.kind(key) == "computed_property_name" && name == "[]" {
				c.write(c.first(key))
			} else {
				c.key(name)
			}
			c.write(c.field(p, "value"))
			c.close()
		case "shorthand_property_identifier":
			c.list("pair ."+c.text(p), p)
		default:
			c.write(p)
		}
	}
	c.close()
}

// array writes the elements, and the holes between them.
func (c *canonical) array(n node) {
	c.open("array")
	hole := true
	for e := range c.tokens(n) {
		switch {
		case c.at[e].named && c.kind(e) != "comment":
			c.write(e)
			hole = false
		case c.kind(e) == ",":
			if hole {
				c.atom("_")
			}
			hole = true
		}
	}
	c.close()
}

func (c *canonical) forStatement(n node) {
	c.open("for")
	for _, part := range []node{c.field(n, "initializer"), c.forCondition(n), c.field(n, "increment")} {
		if part < 0 || c.kind(part) == "empty_statement" || c.kind(part) == ";" {
			c.atom("_")
		} else {
			c.write(part)
		}
	}
	c.write(c.field(n, "body"))
	c.close()
}

// declaration writes each declared name by itself and leaves names of tools out.
func (c *canonical) declaration(n node, kind string) {
	for _, d := range c.children(n) {
		if c.kind(d) != "variable_declarator" {
			continue
		}
		name, value := c.field(d, "name"), c.field(d, "value")
		if value >= 0 && kind == "lexical_declaration" && c.reference(value).kind != noReference {
			continue
		}
		keyword := "const"
		if b := c.scopes.binding(name); b != nil && len(b.definitions) > 1 {
			keyword = "let"
		}
		if c.field(n, "kind") < 0 && kind == "lexical_declaration" {
			keyword = "using"
		}
		c.list(keyword, name, value)
	}
}

// block leaves the braces around one statement out, and the return of an arrow
// function that does nothing else.
func (c *canonical) block(n node) bool {
	list := c.children(n)
	if len(list) != 1 {
		return false
	}
	only, parent := list[0], c.kind(c.parent(n))
	switch {
	case !isFunction(parent) && !strings.Contains(c.kind(only), "declaration"):
		c.write(only)
	case parent == "arrow_function" && c.kind(only) == "return_statement" && c.first(only) >= 0:
		c.write(c.first(only))
	default:
		return false
	}
	return true
}

func (c *canonical) arrow(n node) {
	c.open("arrow")
	if c.token(n, "async") >= 0 {
		c.atom("async")
	}
	if p := c.field(n, "parameter"); p >= 0 {
		c.list("args", p)
	} else {
		c.write(c.field(n, "parameters"))
	}
	c.write(c.field(n, "body"))
	c.close()
}
