package analysis

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// literal is the JSON value of an expression that is written out completely.
func (t *tree) literal(n node) (any, bool) {
	n = t.unwrap(n)
	switch t.kind(n) {
	case "string", "template_string":
		return t.textLiteral(n)
	case "number":
		return number(t.text(n))
	case "true":
		return true, true
	case "false":
		return false, true
	case "null":
		return nil, true
	case "unary_expression":
		if v, ok := t.literal(t.field(n, "argument")); ok && t.operator(n) == "-" {
			f, isNumber := v.(float64)
			return -f, isNumber
		}
	case "array":
		return t.arrayLiteral(n)
	case "object":
		return t.objectLiteral(n)
	}
	return nil, false
}

func number(text string) (any, bool) {
	text = strings.ReplaceAll(text, "_", "")
	if i, err := strconv.ParseInt(text, 0, 64); err == nil {
		return float64(i), true
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && !math.IsInf(f, 0)
}

func (t *tree) arrayLiteral(n node) (any, bool) {
	out := []any{}
	comma := true // a hole is a comma behind a comma
	for c := range t.tokens(n) {
		switch {
		case t.kind(c) == "," && comma:
			return nil, false
		case t.kind(c) == ",":
			comma = true
		case t.at[c].named && t.kind(c) != "comment":
			v, ok := t.literal(c)
			if !ok {
				return nil, false
			}
			out, comma = append(out, v), false
		}
	}
	return out, true
}

func (t *tree) objectLiteral(n node) (any, bool) {
	out := map[string]any{}
	for _, c := range t.children(n) {
		key := t.field(c, "key")
		if t.kind(c) != "pair" || t.kind(key) == "computed_property_name" {
			return nil, false
		}
		v, ok := t.literal(t.field(c, "value"))
		name := t.propertyName(key)
		if !ok || name == "__proto__" {
			return nil, false
		}
		out[name] = v
	}
	return out, true
}

// textLiteral is the value of a string, or of a template without substitutions.
func (t *tree) textLiteral(n node) (any, bool) {
	var b strings.Builder
	at := t.at[n].start + 1
	for c := range t.tokens(n) {
		switch t.kind(c) {
		case "template_substitution":
			return nil, false
		case "escape_sequence":
			s, ok := unescape(t.text(c))
			if !ok {
				return nil, false
			}
			b.WriteString(t.src[at:t.at[c].start] + s)
			at = t.at[c].end
		}
	}
	if end := t.at[n].end - 1; end > at {
		b.WriteString(t.src[at:end])
	}
	if t.kind(n) == "template_string" {
		return strings.ReplaceAll(b.String(), "\r\n", "\n"), true
	}
	return b.String(), true
}

var escapes = map[string]string{
	`\n`: "\n", `\t`: "\t", `\r`: "\r", `\b`: "\b", `\f`: "\f", `\v`: "\v", `\0`: "\x00", "\\\n": "", "\\\r\n": "",
}

// unescape is the text of one escape sequence. Half a surrogate has none.
func unescape(s string) (string, bool) {
	if v, ok := escapes[s]; ok {
		return v, true
	}
	if len(s) < 2 {
		return "", false
	}
	if s[1] != 'u' && s[1] != 'x' {
		return s[1:], true
	}
	v, err := strconv.ParseUint(strings.Trim(s[2:], "{}"), 16, 32)
	if err != nil || v >= 0xd800 && v < 0xe000 || v > 0x10ffff {
		return "", false
	}
	return string(rune(v)), true
}

// schemaOf is a JSON schema that v fits.
func schemaOf(v any) map[string]any {
	switch v := v.(type) {
	case string:
		return map[string]any{"type": "string"}
	case bool:
		return map[string]any{"type": "boolean"}
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return map[string]any{"type": "integer"}
		}
		return map[string]any{"type": "number"}
	case []any:
		return arraySchema(v)
	case map[string]any:
		properties := map[string]any{}
		for k, e := range v {
			properties[k] = schemaOf(e)
		}
		return map[string]any{"type": "object", "properties": properties, "required": slices.Sorted(maps.Keys(v))}
	}
	return map[string]any{}
}

// arraySchema says what the elements are if all are alike.
func arraySchema(v []any) map[string]any {
	out := map[string]any{"type": "array"}
	for i, e := range v {
		s := schemaOf(e)
		if i > 0 && encode(s) != encode(out["items"]) {
			delete(out, "items")
			return out
		}
		out["items"] = s
	}
	return out
}

// encode writes a value that came from a literal as JSON, keys in order.
func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "null" // literals hold nothing that JSON has no form for
	}
	return string(text)
}
