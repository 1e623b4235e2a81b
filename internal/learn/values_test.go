package learn

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/structure"
)

// refined is what runs with these arguments make of one parameter "p".
func refined(p structure.Parameter, runs ...string) structure.Parameter {
	p.Name = "p"
	var stats []capability.ParameterStats
	for _, args := range runs {
		stats = UpdateValues(stats, json.RawMessage(args))
	}
	return capability.Refine([]structure.Parameter{p}, stats)[0]
}

func repeat(n int, args ...string) []string {
	var out []string
	for range n {
		out = append(out, args...)
	}
	return out
}

func distinct(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`{"p":%d}`, i))
	}
	return out
}

func TestValuesRefineParameters(t *testing.T) {
	tests := []struct {
		name     string
		schema   string
		required bool
		runs     []string
		want     string
		needed   bool
	}{
		{name: "nothing seen", schema: `{"type":"string"}`, required: true, want: `{"type":"string"}`, needed: true},
		{name: "given in every run", schema: `{"type":"string"}`, required: true, runs: repeat(2, `{"p":"a"}`), want: `{"type":"string"}`, needed: true},
		{name: "a run did without", schema: `{"type":"string"}`, required: true, runs: []string{`{"p":"a"}`, `{}`}, want: `{"type":"string"}`},
		{name: "few values, again and again", schema: `{"type":"string"}`, runs: repeat(5, `{"p":"b"}`, `{"p":"a"}`), want: `{"type":"string","enum":["b","a"]}`},
		{name: "few values, too few runs", schema: `{"type":"string"}`, runs: repeat(4, `{"p":"b"}`, `{"p":"a"}`), want: `{"type":"string","examples":["b","a"]}`},
		{name: "one value came once", schema: `{}`, runs: append(repeat(10, `{"p":"b"}`, `{"p":1}`), `{"p":null}`), want: `{"examples":["b",1,null]}`},
		{name: "always the same", schema: `{}`, runs: repeat(20, `{"p":"b"}`), want: `{}`},
		{name: "many values", schema: `{"type":"integer"}`, runs: distinct(30), want: `{"type":"integer","examples":[0,1,2]}`},
		{name: "an enumeration of the tool", schema: `{"enum":["a","b","c"]}`, runs: repeat(9, `{"p":"b"}`, `{"p":"a"}`), want: `{"enum":["a","b","c"]}`},
		{name: "dates", schema: `{"type":"string"}`, runs: repeat(3, `{"p":"2026-01-02"}`), want: `{"type":"string","format":"date"}`},
		{name: "dates, and something else", schema: `{"type":"string"}`, runs: append(repeat(3, `{"p":"2026-01-02"}`), `{"p":"soon"}`), want: `{"type":"string","examples":["2026-01-02","soon"]}`},
		{name: "dates, and a number", schema: `{}`, runs: append(repeat(3, `{"p":"2026-01-02"}`), `{"p":5}`), want: `{"examples":["2026-01-02",5]}`},
		{name: "two dates are not enough", schema: `{}`, runs: repeat(2, `{"p":"2026-01-02"}`), want: `{}`},
		{name: "objects are data", schema: `{}`, runs: repeat(12, `{"p":{"a":1}}`, `{"p":[1]}`), want: `{}`},
		{name: "true is a schema", schema: `true`, runs: repeat(2, `{"p":1}`, `{"p":2}`), want: `true`},
		{name: "no object", schema: `{}`, runs: []string{`null`, `[1]`, `nonsense`}, want: `{}`},
		{name: "a long text is data", schema: `{}`, runs: repeat(9, `{"p":"`+fmt.Sprintf("%0300d", 1)+`"}`, `{"p":"a"}`), want: `{}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := refined(structure.Parameter{Schema: json.RawMessage(tt.schema), Required: tt.required}, tt.runs...)
			if diff := cmp.Diff(decoded(t, json.RawMessage(tt.want)), decoded(t, got.Schema)); diff != "" {
				t.Errorf("schema (-want +got):\n%s", diff)
			}
			if got.Required != tt.needed {
				t.Errorf("required is %v, want %v", got.Required, tt.needed)
			}
		})
	}
}

func decoded(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

func TestUpdateValuesKeepsTheGivenOnes(t *testing.T) {
	first := UpdateValues(nil, json.RawMessage(`{"b":1,"a":2}`))
	before, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	second := UpdateValues(first, json.RawMessage(`{"a":2,"b":3}`))
	if after, _ := json.Marshal(first); string(after) != string(before) {
		t.Errorf("changed to %s from %s", after, before)
	}
	if second[0].Name != "a" || second[0].Values[0].Count != 2 || len(second[1].Values) != 2 {
		t.Errorf("got %+v", second)
	}
}

func TestFormatOf(t *testing.T) {
	for text, want := range map[string]string{
		"2026-01-02T03:04:05Z": "date-time", "2026-01-02": "date", "127.0.0.1": "ipv4", "::1": "ipv6", "a@b.example": "email",
		"https://example.com/x": "uri", "6ba7b810-9dad-11d1-80b4-00c04fd430c8": "uuid", "/tmp/a": "", "a b": "", "": "", "mailto": "", "Ann <a@b.example>": "",
	} {
		if got := formatOf(text); got != want {
			t.Errorf("formatOf(%q) = %q, want %q", text, got, want)
		}
	}
}
