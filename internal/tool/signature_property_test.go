package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// schemas draws JSON Schemas of both drafts, sensible and odd ones.
func schemas(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		s := map[string]any{}
		names := rapid.SampledFrom([]string{"a", "b", "path", "a-b", "2x", "*/", "\"", "größe", "__proto__", "x y", "constructor"})
		inner := func(label string) any {
			if depth == 0 {
				return rapid.SampledFrom([]any{true, false, nil, map[string]any{"type": "string"}, map[string]any{"$ref": "#/$defs/d"}, map[string]any{"enum": []any{"x", 1, nil}}}).Draw(t, label)
			}
			return schemas(depth-1).Draw(t, label)
		}
		keys := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
			"type", "properties", "required", "items", "prefixItems", "minItems", "anyOf", "oneOf", "allOf", "enum", "const",
			"additionalProperties", "patternProperties", "$ref", "$defs", "default", "nullable", "title", "description",
		}), 0, 6, rapid.ID[string]).Draw(t, "keys")
		for _, key := range keys {
			switch key {
			case "type":
				s[key] = rapid.SampledFrom([]any{"object", "array", "string", "integer", "null", []any{"object", "null"}, []any{"string", "number"}, 5, "file"}).Draw(t, key)
			case "properties", "patternProperties", "$defs":
				m := map[string]any{}
				for i := range rapid.IntRange(0, 4).Draw(t, "n") {
					m[names.Draw(t, "name")] = inner(fmt.Sprint(key, i))
				}
				if key == "$defs" {
					m["d"] = inner("d")
				}
				s[key] = m
			case "anyOf", "oneOf", "allOf", "prefixItems":
				s[key] = []any{inner(key), inner(key + "2")}
			case "items", "additionalProperties":
				s[key] = inner(key)
			case "required":
				s[key] = rapid.SliceOfN(names, 0, 3).Draw(t, key)
			case "enum":
				s[key] = rapid.SliceOfN(rapid.OneOf(rapid.Map(rapid.String(), func(v string) any { return v }), rapid.Map(rapid.Float64(), func(v float64) any { return v })), 0, 30).Draw(t, key)
			case "const", "default":
				s[key] = rapid.SampledFrom([]any{"x", -1.5, true, nil, []any{1}, map[string]any{}, "*/", 1e300}).Draw(t, key)
			case "minItems":
				s[key] = rapid.IntRange(-1, 3).Draw(t, key)
			case "$ref":
				s[key] = rapid.SampledFrom([]string{"#", "#/$defs/d", "#/properties/a", "#/x", "other"}).Draw(t, key)
			case "nullable":
				s[key] = true
			default:
				s[key] = rapid.String().Draw(t, key)
			}
		}
		return s
	})
}

// TestSignatureAlwaysParses: whatever the schema, the text is TypeScript, no longer
// than asked for, and the same each time.
func TestSignatureAlwaysParses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		input, err := json.Marshal(schemas(3).Draw(t, "input"))
		if err != nil {
			t.Skip(err)
		}
		output, err := json.Marshal(schemas(2).Draw(t, "output"))
		if err != nil {
			t.Skip(err)
		}
		checkSignature(t, input, output, rapid.IntRange(40, 700).Draw(t, "max"))
	})
}

func checkSignature(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, input, output json.RawMessage, limit int,
) {
	t.Helper()
	tl := Tool{ID: "s:do", InputSchema: input}
	got := SignatureOptions{Max: limit}.Tool(tl, output)
	if len(got) > limit {
		t.Fatalf("%d bytes, not %d: %s", len(got), limit, got)
	}
	if again := (SignatureOptions{Max: limit}).Tool(tl, output); again != got {
		t.Fatalf("%s\nand then\n%s", got, again)
	}
	parses(t, "interface T { "+got+" }")
	one := TypeOf(input, limit)
	if len(one) > limit {
		t.Fatalf("%d bytes, not %d: %s", len(one), limit, one)
	}
	parses(t, "type T = "+one)
	parses(t, Declarations("s", []Tool{tl}, func(ID) json.RawMessage { return output }))
}

func FuzzSignature(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"anyOf":[{"$ref":"#"},{"enum":["x"]}]}}}`), []byte(`{"type":["array","null"],"items":[{"const":1},true],"additionalItems":{"type":"string"},"minItems":1}`), uint16(100))
	f.Add([]byte(`{"allOf":[{"anyOf":[{"type":"string"},{"required":["a"]}]},{"properties":{"a":{"default":"*/"}}}]}`), []byte(`[`), uint16(0))
	f.Fuzz(func(t *testing.T, input, output []byte, limit uint16) {
		checkSignature(t, input, output, 40+int(limit))
	})
}

// TestSignatureOfGrowingSchema: references and combinations make a small document
// stand for an immense type; the work must stay small.
func TestSignatureOfGrowingSchema(t *testing.T) {
	t.Parallel()
	doubling := `{"$ref":"#/$defs/d0","$defs":{"d60":{"type":"string"}`
	for i := range 60 {
		doubling += fmt.Sprintf(`,"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i+1, i+1)
	}
	products := `{"type":"object"}`
	for i := range 20 {
		branch := func(n int) string {
			return fmt.Sprintf(`{"properties":{"k%d_%d":{"const":%d},"next":%s}}`, i, n, n, products)
		}
		if len(products) > 60_000 {
			break
		}
		products = `{"type":"object","allOf":[{"anyOf":[` + branch(0) + `,` + branch(1) + `]},{"anyOf":[{"required":["a"],"properties":{"a":true}},{"properties":{"b":true}}]}]}`
	}
	for name, schema := range map[string]string{
		"doubling": doubling + "}}",
		"products": products,
		"nested":   strings.Repeat(`{"items":`, 5000) + "true" + strings.Repeat("}", 5000),
		"lists":    `{"items":` + strings.Repeat(`{"type":"array","items":`, 60) + "true" + strings.Repeat("}", 61),
		"wide":     `{"enum":[` + strings.Repeat(`"a",`, 50_000) + `"b"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkSignature(t, json.RawMessage(schema), json.RawMessage(schema), 600)
		})
	}
}

func BenchmarkSignature(b *testing.B) {
	tl := Tool{
		ID:           "fs:edit_file",
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"edits":{"type":"array","items":{"type":"object","properties":{"oldText":{"type":"string","description":"Text to search for"},"newText":{"type":"string"}},"required":["oldText","newText"]}},"dryRun":{"type":"boolean","default":false}},"required":["path","edits"],"$schema":"http://json-schema.org/draft-07/schema#"}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"content":{"type":"string"}},"required":["content"]}`),
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = SignatureOptions{}.Tool(tl, nil)
	}
}
