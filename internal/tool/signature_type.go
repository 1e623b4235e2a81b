package tool

import "slices"

// form is the kind of a TypeScript type.
type form int

const (
	wordForm    form = iota // string, number, boolean, null, unknown, never
	literalForm             // "a", 1, true
	nameForm                // the name of a type that contains itself
	listForm
	tupleForm
	objectForm
	unionForm
	bothForm // an intersection
)

// typ is a TypeScript type. Types are never changed once they are made.
type typ struct {
	form form
	// text is the word, the literal or the name.
	text string
	// base is the word of a literal's kind.
	base string
	// parts are the members of a union or an intersection, or a tuple's elements.
	parts []*typ
	// elem is a list's element, or that of a tuple's rest (nil for none).
	elem *typ
	// required is how many elements of a tuple are always there.
	required int
	// props are an object's properties in the order of their declaration; needs names
	// those that are always there.
	props []prop
	needs map[string]bool
	// index is the type of further properties; nil when nothing is said of them.
	index *typ
	// weak marks an object of which only required names are known.
	weak bool
	// empty marks an object that is declared to have no properties.
	empty bool
	// size is how many types it is made of.
	size int
}

// prop is a property of an object.
type prop struct {
	name     string
	typ      *typ
	fallback string // the default value, when it is short
}

func word(text string) *typ { return &typ{form: wordForm, text: text, size: 1} }

// maxTypeSize bounds the types within one type: what comes of intersections can be
// much larger than the schema.
const maxTypeSize = 2000

// bounded returns t with its size, or the word for its kind where that is too large.
func bounded(t *typ) *typ {
	t.size = 1
	for _, part := range t.inner() {
		t.size += part.size
	}
	if t.size > maxTypeSize {
		return word(t.kind())
	}
	return t
}

var (
	unknownType = word("unknown")
	neverType   = word("never")
	nullType    = word("null")
)

func (t *typ) is(word string) bool { return t.form == wordForm && t.text == word }

// kind is the word that stands for all values of the type's kind.
func (t *typ) kind() string {
	switch t.form {
	case wordForm:
		return t.text
	case literalForm:
		return t.base
	case objectForm:
		return "object"
	case listForm, tupleForm:
		return "unknown[]"
	case nameForm, unionForm, bothForm:
	}
	return "unknown"
}

// maxMembers bounds the members of a union.
const maxMembers = 500

// unite makes the union of types: flat, each member once, null last.
func unite(members []*typ) *typ {
	var flat []*typ
	seen := map[string]bool{}
	add := func(t *typ) {
		if key := t.key(); !seen[key] && len(flat) < maxMembers {
			seen[key] = true
			flat = append(flat, t)
		}
	}
	for _, m := range members {
		switch {
		case m.is("unknown"):
			return unknownType
		case m.is("never"):
		case m.form == unionForm:
			for _, part := range m.parts {
				add(part)
			}
		default:
			add(m)
		}
	}
	if seen["true"] && seen["false"] {
		flat = slices.DeleteFunc(flat, func(t *typ) bool { return t.form == literalForm && t.base == "boolean" })
		if !seen["boolean"] {
			flat = append(flat, word("boolean"))
		}
	}
	if at := slices.IndexFunc(flat, func(t *typ) bool { return t.is("null") }); at >= 0 {
		flat = append(slices.Delete(flat, at, at+1), nullType)
	}
	switch len(flat) {
	case 0:
		return neverType
	case 1:
		return flat[0]
	}
	return bounded(&typ{form: unionForm, parts: flat})
}

// key is equal for equal types.
func (t *typ) key() string { return plainStyle.render(t, maxTypeDepth+1) }

// maxProducts bounds the members that come of uniting two unions' intersections.
const maxProducts = 24

// intersect makes the type of the values that are of both types, merged where that
// can be written shorter than an intersection.
func intersect(a, b *typ) *typ {
	switch {
	case a.is("unknown"), b.is("never"):
		return b
	case b.is("unknown"), a.is("never"):
		return a
	case a.form == unionForm || b.form == unionForm:
		return distribute(a, b)
	case a.form == objectForm && b.form == objectForm:
		return mergeObjects(a, b)
	case a.key() == b.key():
		return a
	}
	ka, kb := a.kind(), b.kind()
	switch {
	case ka == "unknown" || kb == "unknown":
		return bounded(&typ{form: bothForm, parts: []*typ{a, b}})
	case a.form == objectForm && a.weak:
		return b // required names say nothing about what is no object
	case b.form == objectForm && b.weak:
		return a
	case ka != kb:
		return neverType
	case a.is("object"):
		return b
	case b.is("object"):
		return a
	case a.form == literalForm && b.form == wordForm:
		return a
	case b.form == literalForm && a.form == wordForm:
		return b
	case a.form == literalForm:
		return neverType // two that differ
	case a.form == listForm && b.form == listForm:
		return bounded(&typ{form: listForm, elem: intersect(a.elem, b.elem)})
	case a.form == tupleForm && b.form == listForm:
		return a
	case b.form == tupleForm && a.form == listForm:
		return b
	}
	return bounded(&typ{form: bothForm, parts: []*typ{a, b}})
}

// distribute intersects each member of one side with each of the other.
func distribute(a, b *typ) *typ {
	left, right := a.members(), b.members()
	if len(left)*len(right) > maxProducts {
		if left[0].form == literalForm || right[0].form == literalForm {
			return narrower(a, b)
		}
		return bounded(&typ{form: bothForm, parts: []*typ{a, b}})
	}
	var out []*typ
	for _, l := range left {
		for _, r := range right {
			out = append(out, intersect(l, r))
		}
	}
	return unite(out)
}

// narrower picks the side with literals: an enum stands beside its own type.
func narrower(a, b *typ) *typ {
	if a.members()[0].form == literalForm {
		return a
	}
	return b
}

func (t *typ) members() []*typ {
	if t.form == unionForm {
		return t.parts
	}
	return []*typ{t}
}

func mergeObjects(a, b *typ) *typ {
	out := &typ{form: objectForm, needs: map[string]bool{}, weak: a.weak && b.weak, empty: a.empty && b.empty}
	out.props = slices.Clone(a.props)
	for _, p := range b.props {
		at := slices.IndexFunc(out.props, func(q prop) bool { return q.name == p.name })
		if at < 0 {
			out.props = append(out.props, p)
			continue
		}
		merged := prop{name: p.name, typ: intersect(out.props[at].typ, p.typ), fallback: out.props[at].fallback}
		if merged.fallback == "" {
			merged.fallback = p.fallback
		}
		out.props[at] = merged
	}
	for _, o := range []*typ{a, b} {
		for name := range o.needs {
			out.needs[name] = true
		}
	}
	switch {
	case a.index != nil && b.index != nil:
		out.index = intersect(a.index, b.index)
	case a.index != nil:
		out.index = a.index
	default:
		out.index = b.index
	}
	return bounded(out)
}

// inner are the types that the type is directly made of.
func (t *typ) inner() []*typ {
	out := slices.Clone(t.parts)
	for _, p := range t.props {
		out = append(out, p.typ)
	}
	for _, one := range []*typ{t.elem, t.index} {
		if one != nil {
			out = append(out, one)
		}
	}
	return out
}

// hasName reports whether there is the name of a type that contains itself in it.
func (t *typ) hasName() bool {
	return t.form == nameForm || slices.ContainsFunc(t.inner(), (*typ).hasName)
}

// height is how many levels of objects and tuples the type has.
func (t *typ) height() int {
	deepest := 0
	for _, part := range t.inner() {
		deepest = max(deepest, part.height())
	}
	if t.form == objectForm || t.form == tupleForm {
		return deepest + 1
	}
	return deepest
}
