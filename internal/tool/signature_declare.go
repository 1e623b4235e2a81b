package tool

import (
	"encoding/json"
	"strconv"
	"strings"
)

// maxDeclaration bounds one tool's signature in a declaration file, in bytes, and
// maxNamedTypes the types that are declared for it beside.
const (
	maxDeclaration = 8000
	maxNamedTypes  = 20
)

// Declarations writes a TypeScript declaration file (.d.ts) for the tools of one
// server, with the descriptions of tools and arguments as comments. outputs gives
// the learnt output schema of a tool that declares none; empty for none. The files
// of several servers can be used together. Types that contain themselves get names.
func Declarations(server string, tools []Tool, outputs func(ID) json.RawMessage) string {
	var types, methods strings.Builder
	prefixes := map[string]int{}
	for _, t := range tools {
		d := declaration{types: &types, prefix: typeName(server) + typeName(t.ID.Name())}
		if prefixes[d.prefix]++; prefixes[d.prefix] > 1 { // another tool in another style
			d.prefix += "Tool" + strconv.Itoa(prefixes[d.prefix])
		}
		output := t.OutputSchema
		if len(output) == 0 && outputs != nil {
			output = outputs(t.ID)
		}
		in, args := d.read("Args", t.InputSchema)
		_, result := d.read("Result", output)
		methods.WriteString(docComment("      ", t.Description+argumentNotes(in)))
		methods.WriteString("      " + SignatureOptions{Max: maxDeclaration}.signature(methodName(t.ID.Name()), args, result) + ";\n")
	}
	var b strings.Builder
	b.WriteString("// The tools of the MCP server " + quote(server) + ", as programs call them.\n")
	b.WriteString("declare namespace mcp {\n")
	b.WriteString(types.String())
	b.WriteString("  interface Servers {\n    readonly " + methodName(server) + ": {\n")
	b.WriteString(methods.String())
	b.WriteString("    };\n  }\n}\ndeclare var mcp: mcp.Servers;\n")
	return b.String()
}

// declaration writes the named types of one tool.
type declaration struct {
	types  *strings.Builder
	prefix string
}

// read returns the type of a schema and declares the types that contain themselves.
func (d declaration) read(part string, schema json.RawMessage) (*schemaReader, *typ) {
	r := newSchemaReader(schema)
	r.prefix = d.prefix + part
	t := r.whole()
	declared := 0
	for declared < len(r.recursive) { // declaring one may find another
		ref, named := r.recursive[declared], unknownType
		if declared < maxNamedTypes {
			r.reads = 0
			named = r.follow(ref)
		}
		name := r.nameOf(ref)
		d.types.WriteString("  type " + name + " = " + fit(named.without(name), maxDeclaration) + ";\n")
		declared++
	}
	return r, t
}

// without returns the type less the type of a name: one that is said to be itself,
// or a union or an intersection of itself, says nothing by it.
func (t *typ) without(name string) *typ {
	itself := func(part *typ) bool { return part.form == nameForm && part.text == name }
	switch {
	case itself(t):
		return unknownType
	case t.form == unionForm || t.form == bothForm:
		rest := *t
		rest.parts = nil
		for _, part := range t.parts {
			if part = part.without(name); !part.is("unknown") {
				rest.parts = append(rest.parts, part)
			}
		}
		switch len(rest.parts) {
		case 0:
			return unknownType
		case 1:
			return rest.parts[0]
		}
		return &rest
	}
	return t
}

// argumentNotes are the descriptions of the arguments, one line each.
func argumentNotes(r *schemaReader) string {
	root, _ := r.root.(*fields)
	properties := root.object("properties")
	if properties == nil {
		return ""
	}
	var b strings.Builder
	for _, name := range properties.keys {
		if p, ok := properties.values[name].(*fields); ok && p.text("description") != "" {
			b.WriteString("\n@param args." + name + " " + strings.Join(strings.Fields(p.text("description")), " "))
		}
	}
	return b.String()
}

// docComment writes text as a comment in front of a declaration; no text is none.
func docComment(indent, text string) string {
	text = strings.TrimSpace(strings.ReplaceAll(text, "*/", "*\\/"))
	if text == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString(indent + "/**\n")
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(indent+" * "+strings.TrimRight(line, "\r\n"), " ") + "\n")
	}
	b.WriteString(indent + " */\n")
	return b.String()
}
