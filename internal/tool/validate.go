package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pml-run/pml/internal/fault"
)

// The drafts that the schema engine knows. Other values of $schema are dropped:
// what servers write there rarely matters to what they mean.
const (
	draft7    = "http://json-schema.org/draft-07/schema#"
	draft2020 = "https://json-schema.org/draft/2020-12/schema"
)

// maxSchemas bounds the compiled schemas a Validator keeps.
const maxSchemas = 4096

// Validator checks arguments against input schemas, and keeps compiled schemas.
// Servers declare schemas that no engine takes: those let every call through and
// are reported once. The zero Validator reports to nobody.
type Validator struct {
	report func(id ID, err error)

	mu       sync.Mutex
	compiled map[string]*jsonschema.Resolved // nil for a schema that cannot be used
}

// NewValidator makes a Validator; report, if not nil, hears of each schema that
// cannot be used, once.
func NewValidator(report func(id ID, err error)) *Validator { return &Validator{report: report} }

// Validate checks a call's arguments. The error is a *fault.Error with the code
// invalid_tool_arguments that names the property, what was expected, and what the
// tool takes.
func (v *Validator) Validate(t Tool, args json.RawMessage) error {
	if len(bytes.TrimSpace(args)) == 0 || isNull(args) {
		args = json.RawMessage("{}")
	}
	var value any
	if err := json.Unmarshal(args, &value); err != nil {
		return invalidArgs(t, "the arguments are no JSON: "+err.Error())
	}
	object, ok := value.(map[string]any)
	if !ok {
		return invalidArgs(t, "the arguments must be an object, not "+kindOf(value))
	}
	schema := v.schema(t)
	if schema == nil {
		return nil
	}
	if err := validate(schema, object); err != nil {
		return invalidArgs(t, explain(err))
	}
	return nil
}

// schema returns the compiled input schema, or nil when it cannot be used.
func (v *Validator) schema(t Tool) *jsonschema.Resolved {
	key := t.SchemaHash
	v.mu.Lock()
	s, known := v.compiled[key]
	v.mu.Unlock()
	if known && key != "" {
		return s
	}
	s, err := compile(t.InputSchema)
	v.mu.Lock()
	if v.compiled == nil || len(v.compiled) >= maxSchemas {
		v.compiled = map[string]*jsonschema.Resolved{}
	}
	v.compiled[key] = s
	v.mu.Unlock()
	if err != nil && v.report != nil {
		v.report(t.ID, fmt.Errorf("the input schema cannot be used, arguments are not checked: %w", err))
	}
	return s
}

// compile takes what it can of a schema: as it is, else without the parts that
// the engine does not know, else as the older draft.
func compile(raw json.RawMessage) (*jsonschema.Resolved, error) {
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return nil, err
	}
	root, ok := soften(plain).(map[string]any)
	if !ok {
		return nil, errors.New("no object")
	}
	s, err := resolve(root)
	if err == nil || root["$schema"] == draft7 {
		return s, err
	}
	root["$schema"] = draft7
	if s, errOld := resolve(root); errOld == nil {
		return s, nil
	}
	return nil, err
}

// soften drops what would make the engine refuse the whole schema: unknown
// drafts, and expressions of a richer language than Go's.
func soften(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = soften(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = soften(v[key])
		}
		if s, ok := v["$schema"].(string); ok && s != draft7 && s != draft2020 {
			delete(v, "$schema")
			if strings.TrimSuffix(s, "#")+"#" == draft7 {
				v["$schema"] = draft7
			}
		}
		if p, ok := v["pattern"].(string); ok {
			if _, err := regexp.Compile(p); err != nil {
				delete(v, "pattern")
			}
		}
	}
	return v
}

// resolve compiles a schema. The engine is not to be trusted with hostile input.
func resolve(root map[string]any) (s *jsonschema.Resolved, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("the schema engine failed: %v", p)
		}
	}()
	data, err := json.Marshal(root)
	if err != nil {
		return nil, err
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(data, &schema); err != nil {
		return nil, err
	}
	return schema.Resolve(nil)
}

func validate(s *jsonschema.Resolved, args map[string]any) (err error) {
	defer func() {
		if recover() != nil {
			err = nil // the engine's fault is not the caller's
		}
	}()
	return s.Validate(args)
}

// The engine's messages: a chain of places, then a keyword and what is wrong.
var (
	places      = regexp.MustCompile(`/properties/([^/:\s]+)`)
	lastMessage = regexp.MustCompile(`(?s)(?:validating [^:]*(?:://[^:]*)?: )+(.*)$`)
	wantedType  = regexp.MustCompile(`(?s)^type: (.*) has type "(\w+)", want (?:one of )?(.*)$`)
	missing     = regexp.MustCompile(`(?s)^required: missing properties: (.*)$`)
	additional  = regexp.MustCompile(`(?s)^unexpected additional properties (.*)$`)
	oneOf       = regexp.MustCompile(`(?s)^enum: (.*) does not equal any of: (.*)$`)
)

// explain words the engine's error for somebody who has not seen the schema.
func explain(err error) string {
	text := err.Error()
	message := text
	if m := lastMessage.FindStringSubmatch(text); m != nil {
		message = m[1]
	}
	var path []string
	chain := strings.TrimSuffix(text, message)
	if all := places.FindAllString(chain, -1); len(all) > 0 {
		// The last place in the chain holds the whole path, unless a $ref was followed.
		for _, m := range places.FindAllStringSubmatch(chain[max(0, strings.LastIndex(chain, "validating ")):], -1) {
			path = append(path, m[1])
		}
	}
	where := "the arguments"
	if len(path) > 0 {
		where = fmt.Sprintf("%q", strings.Join(path, "."))
	}
	list := func(s string) string { return strings.Trim(s, "[]") }
	switch {
	case missing.MatchString(message):
		return where + " must have " + list(missing.FindStringSubmatch(message)[1])
	case additional.MatchString(message):
		return where + " must not have " + list(additional.FindStringSubmatch(message)[1])
	case wantedType.MatchString(message):
		m := wantedType.FindStringSubmatch(message)
		return fmt.Sprintf("%s must be %s, not %s", where, strings.ReplaceAll(list(m[3]), `"`, ""), m[2])
	case oneOf.MatchString(message):
		return where + " must be one of " + list(oneOf.FindStringSubmatch(message)[2])
	}
	return where + ": " + cut(message, 400)
}

func invalidArgs(t Tool, what string) error {
	err := fault.New(fault.InvalidToolArguments, "%s: %s", t.ID, what)
	err.Tool = string(t.ID)
	return err.WithHint("%s takes %s", t.ID.Name(), takes(t.InputSchema))
}

// takes lists the properties of a schema in the manner of a signature, the
// required ones first: { path: string, head?: number }.
func takes(raw json.RawMessage) string {
	var schema struct {
		Properties map[string]struct {
			Type any   `json:"type"`
			Enum []any `json:"enum"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if json.Unmarshal(raw, &schema) != nil || len(schema.Properties) == 0 {
		return "{ }"
	}
	names := slices.SortedFunc(maps.Keys(schema.Properties), func(a, b string) int {
		ra, rb := slices.Contains(schema.Required, a), slices.Contains(schema.Required, b)
		if ra != rb {
			if ra {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	const most = 20
	var parts []string
	for i, name := range names {
		if i == most {
			parts = append(parts, "…")
			break
		}
		p := schema.Properties[name]
		mark := "?"
		if slices.Contains(schema.Required, name) {
			mark = ""
		}
		parts = append(parts, cut(name, 60)+mark+": "+typeWord(p.Type, p.Enum))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

func typeWord(t any, enum []any) string {
	if len(enum) > 0 && len(enum) <= 6 {
		words := make([]string, len(enum))
		for i, e := range enum {
			words[i] = string(encode(e))
		}
		return cut(strings.Join(words, " | "), 120)
	}
	switch t := t.(type) {
	case string:
		return t
	case []any:
		words := make([]string, len(t))
		for i, w := range t {
			words[i] = fmt.Sprint(w)
		}
		return strings.Join(words, " | ")
	}
	return "any"
}

func kindOf(v any) string {
	switch v.(type) {
	case []any:
		return "an array"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	}
	return "a number"
}
