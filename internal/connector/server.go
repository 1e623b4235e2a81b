package connector

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/tool"
)

// server is what is known of a tool's server.
type server struct {
	name  string // as configured
	tools []tool.Tool
}

// called reports whether one of the words is among those of the server's name.
func (s server) called(words ...string) bool {
	return slices.ContainsFunc(strings.Split(tool.Snake(s.name), "_"), func(w string) bool { return slices.Contains(words, w) })
}

// has reports whether the server has a tool of that name.
func (s server) has(name string) bool {
	return slices.ContainsFunc(s.tools, func(t tool.Tool) bool { return tool.Snake(t.ID.Name()) == name })
}

// declared is a tool with the parameters that it declares, and the method it fits.
type declared struct {
	tool   tool.Tool
	method method
	// properties are the parameters by name.
	properties map[string]property
	required   []string
}

// property is what an input schema says of one parameter.
type property struct {
	Type        any        `json:"type"`
	Description string     `json:"description"`
	AnyOf       []property `json:"anyOf"` // an optional parameter of some frameworks: a type, or null
}

// parameter is one that a method needs: under one of the names, of a type.
type parameter struct {
	kind  string
	names []string
}

func text(names ...string) parameter   { return parameter{"string", names} }
func number(names ...string) parameter { return parameter{"number", names} }

// knows finds the method that a tool fits.
func (k connector) knows(s server, t tool.Tool) (declared, bool) {
	d, ok := k.fits(t)
	return d, ok && k.owns(s, d)
}

// fits compares a tool's name and parameters with the methods.
func (k connector) fits(t tool.Tool) (declared, bool) {
	m, ok := k.methods[tool.Snake(t.ID.Name())]
	if !ok {
		return declared{}, false
	}
	var schema struct {
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	}
	if json.Unmarshal(t.InputSchema, &schema) != nil {
		return declared{}, false
	}
	d := declared{tool: t, method: m, properties: schema.Properties, required: schema.Required}
	for _, p := range m.takes {
		if !d.takes(p) {
			return declared{}, false
		}
	}
	return d, true
}

// takes reports whether a tool declares a parameter of that type.
func (d declared) takes(p parameter) bool {
	return slices.ContainsFunc(p.names, func(name string) bool {
		have, ok := d.properties[name]
		return ok && have.is(p.kind)
	})
}

// is reports whether a parameter may be of a type; an integer is a number.
func (p property) is(kind string) bool {
	switch t := p.Type.(type) {
	case string:
		return t == kind || t == "integer" && kind == "number"
	case []any:
		return slices.ContainsFunc(t, func(one any) bool { return property{Type: one}.is(kind) })
	}
	return slices.ContainsFunc(p.AnyOf, func(one property) bool { return one.Type != nil && one.is(kind) })
}

// declares reports whether a tool has a parameter of that name at all.
func (d declared) declares(name string) bool {
	_, ok := d.properties[name]
	return ok
}

// says is what a tool says of itself, in lower case.
func (d declared) says() string { return strings.ToLower(d.tool.Description) }
