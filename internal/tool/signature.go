package tool

import (
	"encoding/json"
	"fmt"
	"strings"
)

// defaultSignature is the length of a signature, in bytes, that is kept to unless
// another is asked for: eight of them stay under 2,000 tokens of a language model.
const defaultSignature = 600

// Parameter is one parameter of a capability.
type Parameter struct {
	Name     string
	Schema   json.RawMessage
	Required bool
}

// SignatureOptions bound what is written of a signature. Over the bound first the
// defaults and long unions go, then deeper levels become object or unknown[], and
// last the optional parameters, before any required one. What was left out is
// counted in a comment; the text is valid TypeScript in every case.
type SignatureOptions struct {
	// Max is the length in bytes; 0 is 600. A name with types that say nothing is
	// written even when it is longer.
	Max int
}

// Tool writes how a program calls a tool:
// read_file(args: { path: string; head?: number }): Promise<{ content: string }>.
// output is the schema of its results as they were observed; a declared one
// outranks it, and without either the result is unknown.
func (o SignatureOptions) Tool(t Tool, output json.RawMessage) string {
	if len(t.OutputSchema) > 0 {
		output = t.OutputSchema
	}
	return o.signature(methodName(t.ID.Name()), newSchemaReader(t.InputSchema).whole(), newSchemaReader(output).whole())
}

// CapabilitySignature writes how a program calls a capability, with the default
// options: build_report(args: { month: string }): Promise<unknown>. An empty
// result schema is one that says nothing.
func CapabilitySignature(name string, parameters []Parameter, result json.RawMessage) string {
	return SignatureOptions{}.Capability(name, parameters, result)
}

// Capability writes the signature of a capability, as CapabilitySignature does.
func (o SignatureOptions) Capability(name string, parameters []Parameter, result json.RawMessage) string {
	args := &typ{form: objectForm, needs: map[string]bool{}, empty: len(parameters) == 0}
	for _, p := range parameters {
		r := newSchemaReader(p.Schema)
		added := prop{name: p.Name, typ: r.whole()}
		if root, ok := r.root.(*fields); ok {
			added.fallback = shortDefault(root)
		}
		args.props = append(args.props, added)
		if p.Required {
			args.needs[p.Name] = true
		}
	}
	return o.signature(methodName(name), bounded(args), newSchemaReader(result).whole())
}

// TypeOf writes the type of the values that a schema describes in at most limit
// bytes, but never less than unknown; 0 is 600. A schema that cannot be read is unknown.
func TypeOf(schema json.RawMessage, limit int) string {
	if limit <= 0 {
		limit = defaultSignature
	}
	return fit(newSchemaReader(schema).whole(), limit)
}

// methodName is a tool's name as it stands behind the dot, in quotes where a
// program needs brackets.
func methodName(name string) string {
	if dotted, ok := strings.CutPrefix(member(name), "."); ok {
		return propertyName(dotted)
	}
	return quote(name)
}

// signature shares the room between arguments and result: the arguments may have
// two thirds, and more when the result needs less.
func (o SignatureOptions) signature(name string, args, result *typ) string {
	limit := o.Max
	if limit <= 0 {
		limit = defaultSignature
	}
	format := "%s(args: %s): Promise<%s>"
	required, optional := args.fields()
	switch {
	case args.empty && len(required)+len(optional) == 0:
		return fmt.Sprintf("%s(): Promise<%s>", name, fit(result, limit-len(name)-len("(): Promise<>")))
	case args.form == objectForm && len(required) == 0:
		format = "%s(args?: %s): Promise<%s>"
	}
	room := limit - len(fmt.Sprintf(format, name, "", ""))
	full := len(fullStyle.render(args, args.height()))
	output := fit(result, max(room/3, room-full))
	input := fit(args, room-len(output))
	output = fit(result, room-len(input)) // what the arguments have left
	return fmt.Sprintf(format, name, input, output)
}

// fit writes a type in at most room bytes, but never less than unknown.
func fit(t *typ, room int) string {
	height := t.height()
	for _, s := range []style{fullStyle, shortStyle, leanStyle} {
		if text := s.render(t, height); len(text) <= room {
			return text
		}
	}
	for depth := height - 1; depth > 0; depth-- {
		if text := leanStyle.render(t, depth); len(text) <= room {
			return text
		}
	}
	return cutType(t, room)
}

// cutType leaves out properties.
func cutType(t *typ, room int) string {
	switch t.form {
	case listForm:
		if text := bracketed(cutType(t.elem, room-len("()[]"))) + "[]"; len(text) <= room {
			return text
		}
	case objectForm:
		if text := cutObject(t, room); text != "" {
			return text
		}
	case wordForm, literalForm, nameForm, tupleForm, unionForm, bothForm:
	}
	if text := leanStyle.render(t, 0); len(text) <= room {
		return text
	}
	return unknownType.text
}

// cutObject writes as many properties as there is room for; none is an empty text.
func cutObject(t *typ, room int) string {
	required, optional := t.fields()
	var members []string
	left := [2]int{len(required), len(optional)}
	best := ""
	for i, p := range append(required, optional...) {
		kind, mark := 0, ""
		if i >= len(required) {
			kind, mark = 1, "?"
		}
		members = append(members, leanStyle.property(p, mark, 0))
		left[kind]--
		text := braces(members, leftOut(left[0], left[1]))
		if len(text) > room {
			break
		}
		best = text
	}
	return best
}

// leftOut says what was left out of an object.
func leftOut(required, optional int) string {
	var parts []string
	if required > 0 {
		parts = append(parts, fmt.Sprintf("%d more required", required))
	}
	if optional > 0 {
		parts = append(parts, fmt.Sprintf("%d more optional", optional))
	}
	return strings.Join(parts, ", ")
}
