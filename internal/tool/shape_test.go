package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// merged unites a schema that was learnt, empty for none, with the shape of a value.
func merged(schema, value json.RawMessage) (json.RawMessage, error) {
	var known Shape
	if len(schema) > 0 {
		if err := json.Unmarshal(schema, &known); err != nil {
			return nil, err
		}
	}
	seen, err := ShapeOf(value)
	if err != nil {
		return nil, err
	}
	return json.Marshal(known.Merge(seen))
}

func TestShapesAreMerged(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		values []string
		want   string
	}{
		"one":              {[]string{`{"a":1,"b":"x"}`}, `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a","b"]}`},
		"not always":       {[]string{`{"a":1,"b":"x"}`, `{"a":2}`}, `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"]}`},
		"never again":      {[]string{`{"a":1}`, `{}`, `{"a":1}`}, `{"type":"object","properties":{"a":{"type":"integer"}}}`},
		"types":            {[]string{`{"a":1}`, `{"a":null}`, `{"a":1.5}`}, `{"type":"object","properties":{"a":{"type":["null","number"]}},"required":["a"]}`},
		"object or none":   {[]string{`null`, `{"a":true}`}, `{"type":["null","object"],"properties":{"a":{"type":"boolean"}},"required":["a"]}`},
		"items":            {[]string{`[{"a":1},{"b":1}]`}, `{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}}}}`},
		"empty list":       {[]string{`[]`, `["x"]`}, `{"type":"array","items":{"type":"string"}}`},
		"text":             {[]string{`"secret"`, `"other"`}, `{"type":"string"}`},
		"large number":     {[]string{`12345678901234567890123`}, `{"type":"number"}`},
		"key that is data": {[]string{`{"` + strings.Repeat("x", 200) + `":1,"a":1}`}, `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var schema json.RawMessage
			for _, v := range tt.values {
				var err error
				if schema, err = merged(schema, json.RawMessage(v)); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, string(schema)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := merged(nil, json.RawMessage(`{`)); err == nil {
		t.Error("a broken value has a shape")
	}
}

func TestShapeHasLimits(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `"k%04d":{"inner":%d},`, i, i)
	}
	wide, err := ShapeOf(json.RawMessage(`{` + strings.TrimSuffix(b.String(), ",") + `}`))
	if err != nil {
		t.Fatal(err)
	}
	if n := wide.count(); n > MaxProperties {
		t.Errorf("%d properties, want at most %d", n, MaxProperties)
	}
	var merged Shape
	for i := range 300 {
		s, err := ShapeOf(fmt.Appendf(nil, `{"id%d":{"x":1}}`, i))
		if err != nil {
			t.Fatal(err)
		}
		merged = merged.Merge(s)
	}
	if n := merged.count(); n > MaxProperties {
		t.Errorf("%d properties after merging, want at most %d", n, MaxProperties)
	}
	deep, err := ShapeOf(json.RawMessage(strings.Repeat(`{"a":`, 50) + "1" + strings.Repeat("}", 50)))
	if err != nil || deep.count() > maxShapeDepth {
		t.Errorf("depth %d, %v", deep.count(), err)
	}
}

func TestShapeReadsAnySchema(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`true`:                             `{}`,
		`{"type":["string","null"]}`:       `{"type":["string","null"]}`,
		`{"type":7,"properties":[],"x":1}`: `{}`,
		`{"properties":{"b":{"type":"string","description":"d"}},"required":["b","a"]}`: `{"properties":{"b":{"type":"string"}},"required":["a","b"]}`,
	} {
		var s Shape
		if err := json.Unmarshal([]byte(schema), &s); err != nil {
			t.Errorf("%s: %v", schema, err)
			continue
		}
		if got, err := json.Marshal(s); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", schema, got, err, want)
		}
	}
}

func TestCover(t *testing.T) {
	t.Parallel()
	object := func(required string, properties ...string) string {
		var p []string
		for _, word := range properties {
			name, kind, _ := strings.Cut(word, ":")
			p = append(p, fmt.Sprintf(`%q:{"type":%q}`, name, kind))
		}
		return fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s]}`, strings.Join(p, ","), required)
	}
	tests := map[string]struct {
		output, input string
		want          Coverage
		fields        string
	}{
		"strict":         {object(``, "path:string", "size:integer"), object(`"path"`, "path:string"), Strict, "path>path"},
		"strict, more":   {object(``, "path:string", "mode:string"), object(`"path"`, "path:string", "mode:string"), Strict, "mode>mode path>path"},
		"partial":        {object(``, "path:string"), object(`"path","content"`, "path:string", "content:string"), Partial, "path>path"},
		"optional":       {object(``, "limit:integer"), object(`"path"`, "path:string", "limit:number"), Optional, "limit>limit"},
		"other style":    {object(``, "userId:string"), object(`"user_id"`, "user_id:string"), Strict, "userId>user_id"},
		"another type":   {object(``, "id:integer"), object(`"id"`, "id:string"), NoCoverage, ""},
		"nothing shared": {object(``, "a:string"), object(`"b"`, "b:string"), NoCoverage, ""},
		"not a schema":   {`true`, `{}`, NoCoverage, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var from, to Shape
			if err := errors.Join(json.Unmarshal([]byte(tt.output), &from), json.Unmarshal([]byte(tt.input), &to)); err != nil {
				t.Fatal(err)
			}
			got, mapping := Cover(from, to)
			var fields []string
			for _, m := range mapping {
				fields = append(fields, m.From+">"+m.To)
			}
			if got != tt.want || strings.Join(fields, " ") != tt.fields {
				t.Errorf("got %q with %v, want %q with %s", got, fields, tt.want, tt.fields)
			}
		})
	}
}

// FuzzShape: results and schemas come from anywhere. What was learnt must be
// readable again, and no larger than it may be.
func FuzzShape(f *testing.F) {
	f.Add(`{"a":[1,null,{"b":"x"}]}`, `{"type":["object"],"properties":{"a":{"items":true}},"required":["a",1]}`)
	f.Add(strings.Repeat(`{"properties":{"a":`, 5000)+"1"+strings.Repeat("}}", 5000), "true")
	f.Fuzz(func(t *testing.T, value, schema string) {
		var known Shape
		if json.Unmarshal([]byte(schema), &known) != nil {
			return
		}
		learnt, err := merged(json.RawMessage(schema), json.RawMessage(value))
		if err != nil {
			return
		}
		var again Shape
		if err := json.Unmarshal(learnt, &again); err != nil || again.count() > MaxProperties {
			t.Errorf("%s: %v, %d properties", learnt, err, again.count())
		}
		Cover(known, again)
	})
}
