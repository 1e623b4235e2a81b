package tool

import (
	"encoding/json"
	"testing"
)

func TestMock(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"object":      `{"type":"object","required":["a","n"],"properties":{"a":{"type":"string"},"n":{"type":"integer","minimum":5,"maximum":7},"list":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string","format":"uuid"}}}}}}`,
		"bounds":      `{"type":"object","properties":{"a":{"type":"number","exclusiveMinimum":1000},"b":{"type":"integer","maximum":-5},"c":{"type":"integer","multipleOf":7,"minimum":8},"d":{"type":"string","minLength":40},"e":{"type":"string","maxLength":3},"f":{"type":"array","minItems":4,"items":{"type":"boolean"}},"g":{"type":"array","maxItems":0,"items":{}}}}`,
		"union":       `{"anyOf":[{"type":"null"},{"type":"string"}]}`,
		"type list":   `{"type":["null","integer"]}`,
		"reference":   `{"$defs":{"p":{"type":"object","required":["x"],"properties":{"x":{"type":"integer"}}}},"type":"object","properties":{"p":{"$ref":"#/$defs/p"}}}`,
		"all of":      `{"allOf":[{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}},{"required":["b"],"properties":{"b":{"type":"integer"}}}]}`,
		"enumeration": `{"enum":["x","y"]}`,
		"constant":    `{"const":{"a":1}}`,
		"formats":     `{"type":"object","properties":{"a":{"type":"string","format":"date-time"},"b":{"type":"string","format":"email"},"c":{"type":"string","format":"uri"},"d":{"type":"string","format":"ipv6"}}}`,
		"tuple":       `{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]}`,
		"no type":     `{"properties":{"a":{"type":"string"}},"required":["a","b"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, again := Mock(json.RawMessage(schema), "s"), Mock(json.RawMessage(schema), "s")
			if string(first) != string(again) {
				t.Errorf("%s, then %s", first, again)
			}
			wrapped := Tool{ID: "s:t", InputSchema: json.RawMessage(`{"type":"object","properties":{"v":` + schema + `},"$defs":` + defsOf(schema) + `}`)}
			v := NewValidator(func(_ ID, err error) { t.Errorf("schema: %v", err) })
			if err := v.Validate(wrapped, json.RawMessage(`{"v":`+string(first)+`}`)); err != nil {
				t.Errorf("%s is not allowed: %v", first, err)
			}
		})
	}
}

func defsOf(schema string) string {
	var s map[string]json.RawMessage
	if json.Unmarshal([]byte(schema), &s) != nil || s["$defs"] == nil {
		return "{}"
	}
	return string(s["$defs"])
}

func TestMockOfNothing(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{``, `true`, `{}`, `nonsense`, `[]`} {
		if got := Mock(json.RawMessage(schema), ""); got != nil {
			t.Errorf("%s made %s", schema, got)
		}
	}
}

// FuzzMock: whatever the schema is, there is an end and the value is JSON.
func FuzzMock(f *testing.F) {
	f.Add(`{"$ref":"#"}`, "a")
	f.Add(`{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}`, "")
	f.Add(`{"type":"array","items":{"$ref":"#"},"minItems":3}`, "")
	f.Add(`{"allOf":[{"$ref":"#"}]}`, "")
	f.Fuzz(func(t *testing.T, schema, seed string) {
		if v := Mock(json.RawMessage(schema), seed); v != nil && !json.Valid(v) {
			t.Errorf("%q made %q", schema, v)
		}
	})
}
