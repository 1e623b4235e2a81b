package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// style says how much of a type is written.
type style struct {
	literals int  // of one union
	members  int  // of one union that are no literals
	defaults bool // short ones, as comments
}

// The styles, the fullest first; plainStyle leaves nothing out.
var (
	plainStyle = style{literals: maxMembers, members: maxMembers}
	fullStyle  = style{literals: 12, members: 12, defaults: true}
	shortStyle = style{literals: 12, members: 8}
	leanStyle  = style{literals: 4, members: 4}
)

// render writes the type with the given levels of objects and tuples; a deeper one
// becomes the word for its kind.
func (s style) render(t *typ, depth int) string {
	switch t.form {
	case wordForm, literalForm, nameForm:
		return t.text
	case listForm:
		return bracketed(s.render(t.elem, depth)) + "[]"
	case tupleForm:
		if depth == 0 {
			return t.kind()
		}
		return s.tuple(t, depth-1)
	case objectForm:
		if depth == 0 {
			return t.kind()
		}
		return s.object(t, depth-1)
	case unionForm:
		return s.union(t, depth)
	case bothForm:
	}
	return s.both(t, depth)
}

func (s style) tuple(t *typ, depth int) string {
	var elems []string
	for i, part := range t.parts {
		elem := s.render(part, depth)
		if i >= t.required {
			elem = bracketed(elem) + "?"
		}
		elems = append(elems, elem)
	}
	if t.elem != nil {
		elems = append(elems, "..."+bracketed(s.render(t.elem, depth))+"[]")
	}
	return "[" + strings.Join(elems, ", ") + "]"
}

// bracketed puts a union or an intersection in brackets.
func bracketed(text string) string {
	nesting, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[' || c == '<' || c == '(':
			nesting++
		case c == '}' || c == ']' || c == '>' || c == ')':
			nesting--
		case nesting == 0 && (c == '|' || c == '&'):
			return "(" + text + ")"
		}
	}
	return text
}

func (s style) object(t *typ, depth int) string {
	required, optional := t.fields()
	index := ""
	if t.index != nil && !t.index.is("unknown") {
		index = s.index(t.index, depth)
	}
	switch {
	case len(required)+len(optional) > 0:
	case index != "":
		return index
	case t.empty:
		return "{}"
	default:
		return "Record<string, unknown>"
	}
	var members []string
	for _, p := range required {
		members = append(members, s.property(p, "", depth))
	}
	for _, p := range optional {
		members = append(members, s.property(p, "?", depth))
	}
	text := braces(members, "")
	if index != "" {
		text += " & " + index
	}
	return text
}

// index writes an object of further properties. A type cannot contain itself in a
// Record, but it can in what that stands for.
func (s style) index(t *typ, depth int) string {
	if t.hasName() {
		return "{ [key: string]: " + s.render(t, depth) + " }"
	}
	return "Record<string, " + s.render(t, depth) + ">"
}

// braces writes an object's members; more is a comment behind the last.
func braces(members []string, more string) string {
	if more != "" {
		more = " /* " + more + " */"
	}
	return "{ " + strings.Join(members, "; ") + more + " }"
}

func (s style) property(p prop, mark string, depth int) string {
	text := propertyName(p.name) + mark + ": " + s.render(p.typ, depth)
	if s.defaults && p.fallback != "" && mark != "" {
		text += " /* = " + p.fallback + " */"
	}
	return text
}

// fields are the properties that are always there, and the others, each in the
// order of their declaration. A required name without a declaration comes last.
func (t *typ) fields() (required, optional []prop) {
	declared := map[string]bool{}
	for _, p := range t.props {
		declared[p.name] = true
		switch {
		case t.needs[p.name]:
			required = append(required, p)
		case !p.typ.is("never"): // one that must not be there
			optional = append(optional, p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.needs)) {
		if declared[name] {
			continue
		}
		p := prop{name: name, typ: unknownType}
		if t.index != nil {
			p.typ = t.index
		}
		required = append(required, p)
	}
	return required, optional
}

// union leaves out the literals and members over the style's number, and says how
// many they are and of which kind.
func (s style) union(t *typ, depth int) string {
	var shown []string
	literals, others, left := 0, 0, 0
	kinds := map[string]bool{}
	null := false
	for _, part := range t.parts {
		switch {
		case part.is("null"):
			null = true
			continue
		case part.form == literalForm && literals < s.literals:
			literals++
		case part.form != literalForm && others < s.members:
			others++
		default:
			left++
			kinds[part.kind()] = true
			continue
		}
		if text := s.render(part, depth); !slices.Contains(shown, text) {
			shown = append(shown, text)
		}
	}
	kind := "unknown"
	if len(kinds) == 1 {
		for only := range kinds {
			kind = only
		}
	}
	if left > 0 {
		shown = slices.DeleteFunc(shown, func(text string) bool { return text == kind })
		shown = append(shown, fmt.Sprintf("%s /* %d more */", kind, left))
	}
	if null {
		shown = append(shown, "null")
	}
	return strings.Join(shown, " | ")
}

func (s style) both(t *typ, depth int) string {
	var shown []string
	for _, part := range t.parts {
		text := bracketed(s.render(part, depth))
		if !slices.Contains(shown, text) {
			shown = append(shown, text)
		}
	}
	return strings.Join(shown, " & ")
}

// propertyName quotes what is no plain identifier.
func propertyName(name string) string {
	for i, r := range []byte(name) {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' || r == '$'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return quote(name)
		}
	}
	if name == "" {
		return quote(name)
	}
	return name
}

// quote writes a string, number or boolean as TypeScript does.
func quote(value any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return `""` // no such value comes out of a decoder
	}
	return strings.TrimSuffix(b.String(), "\n")
}
