package tool

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

const (
	// maxMockDepth is where a mock of a deep or recursive schema ends.
	maxMockDepth = 6
	// mockItems is how many items a list has for which the schema sets no number.
	mockItems = 2
	// maxMocked bounds the values of one mock altogether.
	maxMocked = 2000
	// maxMockItems bounds a list whose schema wants many.
	maxMockItems = 20
)

// Mock makes a value that a schema of JSON Schema (draft 7 or 2020-12) allows: its
// default, example, constant or a value of its enumeration where it has one, else
// one of its type, format and bounds. The same schema and seed make the same value.
// A schema that says nothing makes nil: there is nothing to make a value of.
func Mock(schema json.RawMessage, seed string) json.RawMessage {
	var s any
	if len(schema) == 0 || json.Unmarshal(schema, &s) != nil {
		return nil
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed)) // a hash takes everything
	root, _ := s.(map[string]any)
	m := mocker{r: rand.New(rand.NewPCG(h.Sum64(), uint64(len(seed)))), root: root} //nolint:gosec // it must be reproducible
	if len(root) == 0 {
		return nil
	}
	b, err := json.Marshal(m.value(s, "", 0))
	if err != nil {
		return nil
	}
	return b
}

// mocker makes the values of one schema.
type mocker struct {
	r    *rand.Rand
	root map[string]any
	made int // values so far
}

// value makes a value of a schema; name is the property that it is for.
func (m *mocker) value(schema any, name string, depth int) any {
	s, ok := m.resolve(schema).(map[string]any)
	if m.made++; !ok || depth > 2*maxMockDepth || m.made > maxMocked {
		return nil // true, nothing that is understood, or no end: null is as good as anything
	}
	if v, ok := given(s); ok {
		return v
	}
	if list, ok := s["allOf"].([]any); ok && len(list) > 0 {
		return m.value(m.merge(s, list), name, depth+1)
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if list, ok := s[key].([]any); ok && len(list) > 0 {
			return m.value(m.alternative(list, depth), name, depth+1)
		}
	}
	switch typeOf(s) {
	case "object":
		return m.object(s, depth)
	case "array":
		return m.array(s, name, depth)
	case "string":
		return m.text(s, name)
	case "integer":
		return m.integer(s)
	case "number":
		return m.number(s)
	case "boolean":
		return m.r.IntN(2) == 0
	}
	return nil
}

// resolve follows references within the document.
func (m *mocker) resolve(schema any) any {
	for range maxMockDepth {
		s, ok := schema.(map[string]any)
		if !ok {
			return schema
		}
		ref, ok := s["$ref"].(string)
		if !ok {
			return schema
		}
		var at any = m.root
		for step := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
			if step == "" {
				continue
			}
			step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
			inner, ok := at.(map[string]any)
			if !ok {
				return nil
			}
			at = inner[step]
		}
		schema = at
	}
	return nil // a reference that leads to itself
}

// given is the value that a schema itself names.
func given(s map[string]any) (any, bool) {
	if v, ok := s["const"]; ok {
		return v, true
	}
	if list, ok := s["examples"].([]any); ok && len(list) > 0 {
		return list[0], true
	}
	if v, ok := s["example"]; ok {
		return v, true
	}
	if v, ok := s["default"]; ok {
		return v, true
	}
	if list, ok := s["enum"].([]any); ok && len(list) > 0 {
		return list[0], true
	}
	return nil, false
}

// merge joins the parts of an allOf, shallowly: properties and required are united.
func (m *mocker) merge(s map[string]any, parts []any) map[string]any {
	out := maps.Clone(s)
	delete(out, "allOf")
	for _, p := range parts {
		part, ok := m.resolve(p).(map[string]any)
		if !ok {
			continue
		}
		for key, v := range part {
			have, both := out[key]
			switch {
			case both && key == "properties":
				united := map[string]any{}
				for _, of := range []any{have, v} {
					properties, _ := of.(map[string]any)
					maps.Copy(united, properties)
				}
				out[key] = united
			case both && key == "required":
				a, _ := have.([]any)
				b, _ := v.([]any)
				out[key] = slices.Concat(a, b)
			default:
				out[key] = v
			}
		}
	}
	return out
}

// alternative picks the first that is not null, so that a program has something to
// work with; among deep ones null ends the recursion.
func (m *mocker) alternative(list []any, depth int) any {
	for _, of := range list {
		s, ok := m.resolve(of).(map[string]any)
		if isNull := ok && typeOf(s) == "null"; ok && isNull == (depth >= maxMockDepth) {
			return of
		}
	}
	return list[0]
}

// typeOf is the type that a value is made of, guessed where the schema does not say.
func typeOf(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		for _, one := range t {
			if name, ok := one.(string); ok && name != "null" {
				return name
			}
		}
		return "null"
	}
	for key, kind := range map[string]string{"properties": "object", "required": "object", "items": "array", "prefixItems": "array", "minLength": "string", "pattern": "string", "format": "string", "minimum": "number", "maximum": "number"} {
		if _, ok := s[key]; ok {
			return kind
		}
	}
	return ""
}

func (m *mocker) object(s map[string]any, depth int) any {
	out := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	required := stringsOf(s["required"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if depth < maxMockDepth || slices.Contains(required, name) {
			out[name] = m.value(properties[name], name, depth+1)
		}
	}
	for _, name := range required {
		if _, ok := out[name]; !ok {
			out[name] = m.value(s["additionalProperties"], name, depth+1)
		}
	}
	return out
}

func (m *mocker) array(s map[string]any, name string, depth int) any {
	out := []any{}
	prefix, _ := s["prefixItems"].([]any)
	if list, ok := s["items"].([]any); ok { // draft 7
		prefix = list
	}
	for _, p := range prefix {
		out = append(out, m.value(p, name, depth+1))
	}
	least, most := intOf(s, "minItems", 0), intOf(s, "maxItems", math.MaxInt32)
	want := min(max(mockItems, least), most, maxMockItems)
	if depth >= maxMockDepth {
		want = min(least, maxMockItems)
	}
	items, isSchema := s["items"].(map[string]any)
	for isSchema && len(out) < want {
		out = append(out, m.value(items, strings.TrimSuffix(name, "s"), depth+1))
	}
	return out
}
