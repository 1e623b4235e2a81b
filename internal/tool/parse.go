package tool

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of what is taken from one declaration. A tool over a limit stays usable.
const (
	maxName        = 256
	maxDescription = 2000 // runes
	maxSchema      = 256 << 10
	maxTools       = 10_000
)

// CutMark ends a description that was cut.
const CutMark = " …[cut]"

// anything is the schema of a tool whose own schema is of no use.
var anything = json.RawMessage(`{"type":"object"}`)

// Problem is one thing that is wrong with a server's declaration. It never makes
// the server unusable, and the tool only when it has no usable name.
type Problem struct {
	Server  string `json:"server"`
	Tool    string `json:"tool,omitempty"`
	Message string `json:"message"`
}

// ParseList reads the entries of a server's tools/list. What cannot be used is
// left out and reported; of two tools with one name the first counts.
func ParseList(server string, raw []json.RawMessage) ([]Tool, []Problem) {
	var tools []Tool
	var problems []Problem
	if len(raw) > maxTools {
		problems = append(problems, Problem{Server: server, Message: fmt.Sprintf("%d tools; only the first %d are used", len(raw), maxTools)})
		raw = raw[:maxTools]
	}
	seen := map[ID]bool{}
	for _, r := range raw {
		t, found := Parse(server, r)
		problems = append(problems, found...)
		switch {
		case t.ID == "":
		case seen[t.ID]:
			problems = append(problems, Problem{server, t.ID.Name(), "declared twice; the first declaration is used"})
		default:
			seen[t.ID] = true
			tools = append(tools, t)
		}
	}
	return tools, problems
}

// Parse reads one tool as a server declares it. Servers declare all kinds of
// things: whatever is wrong is put right and reported. The Tool's ID is empty
// when the declaration has no usable name.
func Parse(server string, raw json.RawMessage) (Tool, []Problem) {
	p := parser{server: server}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		p.problem("a declaration that is no JSON object was skipped")
		return Tool{}, p.problems
	}
	name, bad := parseName(fields["name"])
	if bad != "" {
		p.problem("a tool was skipped: its name %s", bad)
		return Tool{}, p.problems
	}
	p.tool = name
	t := Tool{
		ID:          MakeID(server, name),
		Description: cut(p.text(fields, "description"), maxDescription),
		InputSchema: p.inputSchema(fields["inputSchema"]),
		Annotations: p.annotations(fields["annotations"]),
	}
	if t.Annotations.Title == "" {
		t.Annotations.Title = p.text(fields, "title")
	}
	t.Annotations.Title = cut(t.Annotations.Title, 200)
	if out, ok := fields["outputSchema"]; ok && !isNull(out) {
		t.OutputSchema = p.schema("outputSchema", out)
	}
	t.SchemaHash = schemaHash(t.InputSchema, t.OutputSchema)
	return t, p.problems
}

// parseName returns the exact name, or what is wrong with it.
func parseName(raw json.RawMessage) (name, bad string) {
	if err := json.Unmarshal(raw, &name); err != nil {
		return "", "is missing or no string"
	}
	switch {
	case strings.TrimSpace(name) == "":
		return "", "is empty"
	case len(name) > maxName:
		return "", fmt.Sprintf("is longer than %d bytes", maxName)
	case strings.ContainsFunc(name, unicode.IsControl), strings.ContainsRune(name, utf8.RuneError):
		return "", "has characters that cannot be shown"
	}
	return name, ""
}

// parser collects the problems of one declaration.
type parser struct {
	server, tool string
	problems     []Problem
}

func (p *parser) problem(format string, args ...any) {
	p.problems = append(p.problems, Problem{p.server, p.tool, fmt.Sprintf(format, args...)})
}

func (p *parser) text(fields map[string]json.RawMessage, key string) string {
	raw, ok := fields[key]
	if !ok || isNull(raw) {
		return ""
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		p.problem("%s is no string", key)
	}
	return s
}

func (p *parser) inputSchema(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || isNull(raw) {
		p.problem("inputSchema is missing; any arguments are let through")
		return anything
	}
	schema := p.schema("inputSchema", raw)
	if schema == nil {
		return anything
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(schema, &fields); err != nil {
		return anything
	}
	// Arguments are always an object: a root type that also allows other things,
	// or says nothing, would only make signatures worse.
	if string(bytes.TrimSpace(fields["type"])) == `"object"` {
		return schema
	}
	if declared, ok := fields["type"]; ok && !bytes.Contains(declared, []byte(`"object"`)) {
		p.problem("inputSchema has the type %s; arguments are always an object", cut(string(declared), 80))
	}
	fields["type"] = json.RawMessage(`"object"`)
	fixed, err := json.Marshal(fields)
	if err != nil {
		return anything
	}
	return fixed
}

// schema returns raw when it is a schema of a bearable size, else nil.
func (p *parser) schema(key string, raw json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	switch err := json.Unmarshal(raw, &fields); {
	case err != nil || fields == nil:
		p.problem("%s is no object and is ignored", key)
		return nil
	case len(raw) > maxSchema:
		p.problem("%s has %d bytes, more than %d, and is ignored", key, len(raw), maxSchema)
		return nil
	}
	return bytes.Clone(raw)
}

func (p *parser) annotations(raw json.RawMessage) Annotations {
	var a Annotations
	if len(raw) == 0 || isNull(raw) {
		return a
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		p.problem("annotations are no object and are ignored")
		return a
	}
	a.Title = p.text(fields, "title")
	a.ReadOnly = p.flag(fields, "readOnlyHint")
	a.Destructive = p.flag(fields, "destructiveHint")
	a.Idempotent = p.flag(fields, "idempotentHint")
	a.OpenWorld = p.flag(fields, "openWorldHint")
	return a
}

func (p *parser) flag(fields map[string]json.RawMessage, key string) *bool {
	raw, ok := fields[key]
	if !ok || isNull(raw) {
		return nil
	}
	var v bool
	if err := json.Unmarshal(raw, &v); err != nil {
		p.problem("annotation %s is no boolean and is ignored", key)
		return nil
	}
	return &v
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// cut shortens s to limit runes, the mark included.
func cut(s string, limit int) string {
	s = strings.ToValidUTF8(s, "�")
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	runes := []rune(s)
	return string(runes[:limit-utf8.RuneCountInString(CutMark)]) + CutMark
}

// schemaHash does not depend on the order of keys or on white space.
func schemaHash(input, output json.RawMessage) string {
	h := sha256.New()
	h.Write(canonical(input))
	h.Write([]byte{'\n'})
	h.Write(canonical(output))
	return hex.EncodeToString(h.Sum(nil))
}

func canonical(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // a number keeps its digits
	var v any
	if err := dec.Decode(&v); err != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}
