package analysis

import (
	"maps"
	"strconv"

	"github.com/pml-run/pml/internal/structure"
)

// eval is the value of an expression.
func (d *data) eval(n node) *value {
	if n < 0 || d.depth > maxDepthOfValues || d.limit.over() {
		return nothing
	}
	d.depth++
	defer func() { d.depth-- }()
	n = d.unwrap(n)
	if v := d.events[n]; v != nil && !v.Ref {
		return fromSource(v.ID, "")
	}
	switch kind := d.kind(n); kind {
	case "identifier", "shorthand_property_identifier":
		return d.name(n)
	case "await_expression", "spread_element":
		return d.eval(d.first(n))
	case "member_expression", "subscript_expression":
		return d.member(n, kind)
	case "ternary_expression":
		return union(d.eval(d.field(n, "consequence")), d.eval(d.field(n, "alternative")))
	case "binary_expression":
		return d.binary(n)
	case "assignment_expression":
		return d.eval(d.field(n, "right"))
	case "augmented_assignment_expression":
		return union(d.eval(d.field(n, "left")), d.eval(d.field(n, "right")))
	case "sequence_expression":
		c := d.children(n)
		return d.eval(c[len(c)-1])
	case "object":
		return d.object(n)
	case "array":
		return d.array(n)
	case "call_expression":
		return d.call(n)
	case "template_string", "template_substitution", "new_expression", "arguments", "unary_expression",
		"update_expression", "yield_expression":
		return derived(d.evalAll(d.children(n))...)
	}
	return nothing
}

func (d *data) evalAll(list []node) []*value {
	out := make([]*value, len(list))
	for i, n := range list {
		out[i] = d.eval(n)
	}
	return out
}

func (d *data) name(n node) *value {
	if b := d.scopes.refersTo(n); b != nil {
		return d.of(b)
	}
	name := d.text(n)
	if d.scopes.declared[n] != nil || globals[name] {
		return nothing
	}
	return fromSource(inputPrefix+name, "")
}

func (d *data) member(n node, kind string) *value {
	of := d.eval(d.field(n, "object"))
	if kind == "member_expression" {
		name := d.text(d.field(n, "property"))
		if name == "length" || name == "size" {
			return derived(of)
		}
		return of.get(name)
	}
	index := d.field(n, "index")
	if name, ok := d.constant(index, 0); ok {
		return of.get(name)
	}
	if p := d.position(index); p != "[]" {
		return of.get(p)
	}
	return union(of.get("[]"), derived(d.eval(index)))
}

func (d *data) binary(n node) *value {
	left, right := d.eval(d.field(n, "left")), d.eval(d.field(n, "right"))
	switch d.operator(n) {
	case "&&":
		return right
	case "||", "??":
		return union(left, right)
	}
	return derived(left, right)
}

func (d *data) object(n node) *value {
	out := object(map[string]*value{})
	for _, c := range d.children(n) {
		switch d.kind(c) {
		case "pair":
			out.fields[d.propertyName(d.field(c, "key"))] = d.eval(d.field(c, "value"))
		case "shorthand_property_identifier":
			out.fields[d.text(c)] = d.eval(c)
		case "spread_element":
			v := d.eval(c)
			maps.Copy(out.fields, v.fields)
			if len(v.sources) > 0 {
				rest := &value{sources: v.sources}
				if old := out.fields["..."]; old != nil {
					rest = union(old, rest)
				}
				out.fields["..."] = rest
			}
		}
	}
	return out
}

func (d *data) array(n node) *value {
	out := object(map[string]*value{})
	for i, c := range d.children(n) {
		if d.kind(c) == "spread_element" {
			v := d.eval(c).get("[]")
			if old := out.fields["[]"]; old != nil {
				v = union(old, v)
			}
			out.fields["[]"] = v
			continue
		}
		out.fields["["+strconv.Itoa(i)+"]"] = d.eval(c)
	}
	return out
}

// sourcesOf are the nodes that a value depends on in any way.
func (d *data) sourcesOf(n node) []structure.Source { return derived(d.eval(n)).sources }

// globals are the names of the language and of the sandbox, which are no inputs.
var globals = set(
	"undefined", "console", "JSON", "Math", "Promise", "Object", "Array", "String", "Number", "Boolean", "Date",
	"Error", "TypeError", "RangeError", "SyntaxError", "ReferenceError", "EvalError", "URIError", "AggregateError",
	"Map", "Set", "WeakMap", "WeakSet", "WeakRef", "FinalizationRegistry", "Symbol", "RegExp", "URL", "URLSearchParams",
	"BigInt", "Intl", "parseInt", "parseFloat", "isNaN", "isFinite", "encodeURIComponent", "decodeURIComponent",
	"encodeURI", "decodeURI", "escape", "unescape", "queueMicrotask", "setTimeout", "clearTimeout", "setInterval",
	"clearInterval", "structuredClone", "globalThis", "NaN", "Infinity", "ArrayBuffer", "SharedArrayBuffer", "DataView",
	"Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array",
	"Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array", "TextEncoder", "TextDecoder", "crypto", "atob",
	"btoa", "mcp", "capabilities", "progress", "ToolError", "arguments", "Reflect", "Proxy", "Function", "Iterator",
	"AbortController", "AbortSignal", "Event", "EventTarget", "DOMException", "Blob", "Headers", "Request", "Response",
	"FormData", "ReadableStream", "fetch", "performance", "eval", "Atomics", "WebAssembly", "Temporal", "Deno", "process",
	"require", "module", "exports", "window", "self", "document",
)

func set(names ...string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = true
	}
	return out
}
