package analysis

import (
	"maps"
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/structure"
)

// value is what is known of where an expression's value comes from. Its fields are
// those of an object or array literal: "name", "[3]", "[]" for an element at an
// unknown place, "..." for what a spread may add.
type value struct {
	sources []structure.Source
	fields  map[string]*value
}

// nothing is the value of which nothing is known.
var nothing = &value{}

// inputPrefix marks sources that are inputs of the program.
const inputPrefix = "$"

func fromSource(node, path string) *value {
	return &value{sources: []structure.Source{{Node: node, Path: path, Exact: true}}}
}

func object(fields map[string]*value) *value { return &value{fields: fields} }

func elements(v *value) *value { return object(map[string]*value{"[]": v}) }

func (v *value) empty() bool { return len(v.sources) == 0 && len(v.fields) == 0 }

// add merges sources into v. A source that is there twice is exact if both are.
func (v *value) add(sources ...structure.Source) {
	for _, s := range sources {
		i := slices.IndexFunc(v.sources, func(o structure.Source) bool { return o.Node == s.Node && o.Path == s.Path })
		switch {
		case i >= 0:
			v.sources[i].Exact = v.sources[i].Exact && s.Exact
		case len(v.sources) < maxSources:
			v.sources = append(v.sources, s)
		}
	}
}

// names are v's fields in order.
func (v *value) names() []string { return slices.Sorted(maps.Keys(v.fields)) }

// flat are the sources of v and of everything in it.
func (v *value) flat() []structure.Source {
	var out value
	var collect func(v *value, depth int)
	collect = func(v *value, depth int) {
		if depth > maxValueDepth {
			return
		}
		out.add(v.sources...)
		for _, k := range v.names() {
			collect(v.fields[k], depth+1)
		}
	}
	collect(v, 0)
	return out.sources
}

// union is a value that may be any of several.
func union(values ...*value) *value {
	values = slices.DeleteFunc(values, func(v *value) bool { return v.empty() })
	switch len(values) {
	case 0:
		return nothing
	case 1:
		return values[0]
	}
	out := &value{}
	for _, v := range values {
		out.add(v.sources...)
		for k, f := range v.fields {
			out.merge(k, f)
		}
	}
	return out
}

func (v *value) merge(name string, f *value) {
	if v.fields == nil {
		v.fields = map[string]*value{}
	}
	if old := v.fields[name]; old != nil && old != f {
		both := &value{}
		both.add(old.flat()...)
		both.add(f.flat()...)
		f = both
	}
	v.fields[name] = f
}

// derived is a value computed from others.
func derived(values ...*value) *value {
	out := &value{}
	for _, v := range values {
		for _, s := range v.flat() {
			s.Exact = false
			out.add(s)
		}
	}
	return out
}

// along follows a definition's path.
func (v *value) along(path []string) *value {
	for _, step := range path {
		if step == "..." {
			v = derived(v)
		} else {
			v = v.get(step)
		}
	}
	return v
}

// maxPath is how many steps a source's path may have.
const maxPath = 8

// get is the property or element of v at a step.
func (v *value) get(step string) *value {
	out := &value{}
	isElement := strings.HasPrefix(step, "[")
	for _, s := range v.sources {
		if s.Exact && strings.Count(s.Path, ".")+strings.Count(s.Path, "[") < maxPath {
			s.Path = join(s.Path, step)
		}
		out.add(s)
	}
	if f := v.fields[step]; f != nil {
		return union(out, f)
	}
	if isElement {
		return union(out, v.element(step))
	}
	if rest := v.fields["..."]; rest != nil {
		return union(out, rest.get(step))
	}
	if written := v.fields["[]"]; written != nil { // a property that was written under a computed name
		return union(out, derived(written))
	}
	return out
}

// element is what v may have at a place that is not one of its fields.
func (v *value) element(step string) *value {
	if f := v.fields["[]"]; f != nil && step != "[]" {
		return f
	}
	var all []*value
	for _, k := range v.names() {
		if strings.HasPrefix(k, "[") || step == "[]" {
			all = append(all, v.fields[k])
		}
	}
	return union(all...)
}

// join appends a step to a path.
func join(path, step string) string {
	if path == "" || strings.HasPrefix(step, "[") {
		return path + step
	}
	return path + "." + step
}
