package tool

import (
	"encoding/json"
	"slices"
	"strings"
)

const (
	// maxTypeDepth is how many schemas within each other are read; deeper is unknown.
	maxTypeDepth = 24
	// maxSchemaReads bounds the schemas read for one type: references can make a
	// small document a very large type.
	maxSchemaReads = 1000
	// maxLiteral is the length of a literal, in bytes, over which its kind stands for it.
	maxLiteral = 40
	// maxFallback is likewise that of a default value that is shown.
	maxFallback = 16
)

// schemaReader turns one schema document into types.
type schemaReader struct {
	root   any
	old    bool // a draft before 2019-09, where what stands beside $ref does not count
	reads  int
	level  int
	open   []string          // the references that are being followed
	prefix string            // of the names of types that contain themselves
	names  map[string]string // by reference
	// recursive are the references at which a type contains itself, in the order in
	// which they were met.
	recursive []string
}

// newSchemaReader reads a document; garbage is a document that says nothing.
func newSchemaReader(raw json.RawMessage) *schemaReader {
	root, err := readOrdered(raw)
	if err != nil {
		root = nil
	}
	r := &schemaReader{root: root}
	if f, ok := root.(*fields); ok {
		r.old = strings.Contains(f.text("$schema"), "draft-0")
	}
	return r
}

// whole is the type of the document itself, which "#" refers to.
func (r *schemaReader) whole() *typ { return r.follow("#") }

// follow reads what a reference points at. Where it points at what is being read,
// the type is a name.
func (r *schemaReader) follow(ref string) *typ {
	if slices.Contains(r.open, ref) {
		if !slices.Contains(r.recursive, ref) {
			r.recursive = append(r.recursive, ref)
		}
		return &typ{form: nameForm, text: r.nameOf(ref), size: 1}
	}
	schema, ok := lookUp(r.root, ref)
	if !ok {
		return unknownType
	}
	r.open = append(r.open, ref)
	defer func() { r.open = r.open[:len(r.open)-1] }()
	return r.read(schema)
}

// read returns the type of a schema; what is not understood is unknown.
func (r *schemaReader) read(schema any) *typ {
	r.reads++
	if r.reads > maxSchemaReads || r.level == maxTypeDepth {
		return unknownType
	}
	r.level++
	defer func() { r.level-- }()
	if allowed, ok := schema.(bool); ok && !allowed {
		return neverType
	}
	f, ok := schema.(*fields)
	if !ok {
		return unknownType
	}
	if ref := f.text("$ref"); ref != "" {
		t := r.follow(ref)
		if r.old {
			return t
		}
		return intersect(t, r.readHere(f))
	}
	return r.readHere(f)
}

// readHere reads a schema apart from its reference.
func (r *schemaReader) readHere(f *fields) *typ {
	t := r.readOwn(f)
	for _, part := range f.list("allOf") {
		t = intersect(t, r.read(part))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if choices := f.list(key); len(choices) > 0 {
			t = intersect(t, r.readChoices(choices))
		}
	}
	if f.get("nullable") == true && !t.is("unknown") {
		t = unite([]*typ{t, nullType})
	}
	return t
}

// readChoices unites alternatives. One that only says which names are required
// tells of no other type.
func (r *schemaReader) readChoices(choices []any) *typ {
	members := make([]*typ, 0, len(choices))
	for _, c := range choices {
		t := r.read(c)
		if t.form == objectForm && t.weak {
			t = unknownType
		}
		members = append(members, t)
	}
	return unite(members)
}

// readOwn reads what a schema says without its combinations.
func (r *schemaReader) readOwn(f *fields) *typ {
	if f.has("const") {
		return literalOf(f.get("const"))
	}
	if values := f.list("enum"); len(values) > 0 {
		members := make([]*typ, 0, len(values))
		for _, v := range values {
			members = append(members, literalOf(v))
		}
		return unite(members)
	}
	switch declared := f.get("type").(type) {
	case string:
		return r.readType(f, declared)
	case []any:
		var members []*typ
		for _, name := range declared {
			s, _ := name.(string)
			members = append(members, r.readType(f, s))
		}
		if len(members) > 0 {
			return unite(members)
		}
	}
	switch {
	case f.object("properties") != nil, f.object("additionalProperties") != nil, f.object("patternProperties") != nil,
		len(f.list("required")) > 0:
		return r.readObject(f)
	case f.has("items"), f.has("prefixItems"):
		return r.readList(f)
	}
	return unknownType
}

func (r *schemaReader) readType(f *fields, name string) *typ {
	switch name {
	case "string", "number", "boolean":
		return word(name)
	case "integer":
		return word("number")
	case "null":
		return nullType
	case "object":
		return r.readObject(f)
	case "array":
		return r.readList(f)
	}
	return unknownType
}

func (r *schemaReader) readObject(f *fields) *typ {
	t := &typ{form: objectForm, needs: map[string]bool{}}
	for _, name := range f.list("required") {
		if s, ok := name.(string); ok {
			t.needs[s] = true
		}
	}
	properties := f.object("properties")
	if properties != nil {
		for _, name := range properties.keys {
			p := prop{name: name, typ: r.read(properties.values[name])}
			if schema, ok := properties.values[name].(*fields); ok {
				p.fallback = shortDefault(schema)
			}
			t.props = append(t.props, p)
		}
	}
	var further []*typ
	if more := f.object("additionalProperties"); more != nil {
		further = append(further, r.read(more))
	}
	if patterns := f.object("patternProperties"); patterns != nil {
		for _, pattern := range patterns.keys {
			further = append(further, r.read(patterns.values[pattern]))
		}
	}
	if len(further) > 0 {
		t.index = unite(further)
	}
	closed := f.get("additionalProperties") == false || properties != nil && !f.has("additionalProperties")
	bare := len(t.props) == 0 && t.index == nil
	t.empty = bare && closed && len(t.needs) == 0
	t.weak = bare && !f.has("type")
	return bounded(t)
}

func (r *schemaReader) readList(f *fields) *typ {
	first, rest := f.list("prefixItems"), f.get("items")
	if list := f.list("items"); list != nil && first == nil { // the older drafts' tuple
		first, rest = list, f.get("additionalItems")
	}
	if len(first) == 0 {
		return bounded(&typ{form: listForm, elem: r.read(rest)})
	}
	t := &typ{form: tupleForm, required: len(first)}
	for _, schema := range first {
		t.parts = append(t.parts, r.read(schema))
	}
	if least, ok := f.number("minItems"); ok {
		t.required = max(0, min(least, len(first)))
	}
	if _, ok := rest.(*fields); ok || rest == true {
		t.elem = r.read(rest)
	}
	return bounded(t)
}

// literalOf is the type of one value.
func literalOf(value any) *typ {
	var base string
	switch value.(type) {
	case nil:
		return nullType
	case string:
		base = "string"
	case json.Number:
		base = "number"
	case bool:
		base = "boolean"
	case *fields:
		return word("object")
	default:
		return &typ{form: listForm, elem: unknownType, size: 2}
	}
	text := quote(value)
	if len(text) > maxLiteral {
		return word(base)
	}
	return &typ{form: literalForm, text: text, base: base, size: 1}
}

// shortDefault is the default value of a property, where it is a short one that
// tells something.
func shortDefault(schema *fields) string {
	switch value := schema.get("default").(type) {
	case string, json.Number, bool:
		if text := quote(value); len(text) <= maxFallback && value != "" && !strings.Contains(text, "*/") {
			return text
		}
	}
	return ""
}
