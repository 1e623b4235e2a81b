package tool

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/fault"
)

func TestUnwrap(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, in, want string
		blobs          []Blob
	}{
		{"structured", `{"content":[{"type":"text","text":"x"}],"structuredContent":{ "n":9007199254740993,"e":1E400 }}`, `{ "n":9007199254740993,"e":1E400 }`, nil},
		{"structured null", `{"content":[{"type":"text","text":"x"}],"structuredContent":null}`, `"x"`, nil},
		{"structured array", `{"structuredContent":[1]}`, `[1]`, nil},
		{"json text", `{"content":[{"type":"text","text":" {\"n\":9007199254740993}\n"}]}`, `{"n":9007199254740993}`, nil},
		{"array text", `{"content":[{"type":"text","text":"[1,2]"}]}`, `[1,2]`, nil},
		{"number text", `{"content":[{"type":"text","text":"42"}]}`, `"42"`, nil},
		{"half json", `{"content":[{"type":"text","text":"{oops"}]}`, `"{oops"`, nil},
		{"html", `{"content":[{"type":"text","text":"<b>&\u2028"}]}`, `"<b>&\u2028"`, nil},
		{"several", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"{}"}]}`, `["a",{}]`, nil},
		{"none", `{"content":[]}`, `null`, nil},
		{"nothing", `{}`, `null`, nil},
		{
			"image", `{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}]}`,
			`{"type":"image","mimeType":"image/png","data_ref":"blob:0","bytes":2}`,
			[]Blob{{"blob:0", "image/png", []byte("hi")}},
		},
		{
			"audio that is no base64", `{"content":[{"type":"audio","data":"?","mimeType":"audio/x"}]}`,
			`{"type":"audio","mimeType":"audio/x","data_ref":"blob:0","bytes":1}`,
			[]Blob{{"blob:0", "audio/x", []byte("?")}},
		},
		{
			"resources", `{"content":[{"type":"resource","resource":{"uri":"f:/a","mimeType":"x/y","blob":"aGk="}},{"type":"resource","resource":{"uri":"f:/b","text":"tt"}},{"type":"resource_link","uri":"f:/c","name":"c"}]}`,
			`[{"type":"resource","mimeType":"x/y","uri":"f:/a","data_ref":"blob:0","bytes":2},{"type":"resource","uri":"f:/b","text":"tt","bytes":2},{"type":"resource_link","uri":"f:/c","name":"c"}]`,
			[]Blob{{"blob:0", "x/y", []byte("hi")}},
		},
		{"unknown block", `{"content":[{"type":"hologram","beam":12345678901234567890}]}`, `{"type":"hologram","beam":12345678901234567890}`, nil},
		{"odd block", `{"content":[7]}`, `7`, nil},
		{"old", `{"toolResult":{"a":1}}`, `{"a":1}`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			v, err := Unwrap("s:t", json.RawMessage(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(v.JSON)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.blobs, v.Blobs); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnwrapErrors(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"isError":true,"content":[{"type":"text","text":" a "},{"type":"image"},{"type":"text","text":"b"}]}`: "a\nb",
		`{"isError":true,"structuredContent":{"why":1}}`:                                                        `{"why":1}`,
		`{"isError":true,"content":7}`:                                                                          "the tool reported an error without a message",
	} {
		_, err := Unwrap("s:t:u", json.RawMessage(in))
		e, ok := errors.AsType[*CallError](err)
		if !ok || e.Message != want || e.Server != "s" || e.Tool != "t:u" || e.Code != "tool_failed" {
			t.Errorf("%s: %#v", in, err)
		}
	}
	for _, in := range []string{``, `null`, `[]`, `"x"`, `{"content":{}}`} {
		if _, err := Unwrap("s:t", json.RawMessage(in)); fault.CodeOf(err) != fault.ToolFailed {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func FuzzUnwrap(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"[1]"},{"type":"image","data":"aGk="},{"type":"resource","resource":{"blob":"x"}}],"isError":false}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := Unwrap("s:t", raw)
		if err == nil && !json.Valid(v.JSON) {
			t.Fatalf("no JSON: %s", v.JSON)
		}
	})
}

func TestValidateArgs(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"path":{"type":"string"},"head":{"type":["integer","null"]},"mode":{"enum":["r","w"]},"opt":{"$ref":"#/$defs/o"},"list":{"type":"array","items":{"type":"object","properties":{"n":{"type":"number"}}}}},"required":["path"],"additionalProperties":false,"$defs":{"o":{"type":"object","properties":{"deep":{"type":"boolean"}}}}}`
	const hint = `t takes { path: string, head?: integer | null, list?: array, mode?: "r" | "w", opt?: any }`
	for _, tc := range []struct{ args, want string }{
		{`{"path":"a","head":null,"mode":"r","opt":{"deep":true},"list":[{"n":1}]}`, ""},
		{`{"path":"a","head":9007199254740993}`, ""},
		{`{}`, `s:t: the arguments must have "path"`},
		{``, `s:t: the arguments must have "path"`},
		{`{"path":5}`, `s:t: "path" must be string, not integer`},
		{`{"path":"a","head":"x"}`, `s:t: "head" must be integer, null, not string`},
		{`{"path":"a","mode":"x"}`, `s:t: "mode" must be one of r w`},
		{`{"path":"a","pth":1}`, `s:t: the arguments must not have "pth"`},
		{`{"path":"a","opt":{"deep":1}}`, `s:t: "deep" must be boolean, not integer`},
		{`{"path":"a","list":[{"n":"x"}]}`, `s:t: "list.n" must be number, not string`},
		{`[]`, `s:t: the arguments must be an object, not an array`},
		{`{`, `s:t: the arguments are no JSON: unexpected end of JSON input`},
	} {
		err := new(Validator).Validate(Tool{ID: "s:t", InputSchema: json.RawMessage(schema)}, json.RawMessage(tc.args))
		if tc.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tc.args, err)
			}
			continue
		}
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != fault.InvalidToolArguments || f.Message != tc.want || f.Hint != hint {
			t.Errorf("%s: %v, hint %q", tc.args, err, f.Hint)
		}
	}
}

func TestValidateBothDraftsAndNonsense(t *testing.T) {
	t.Parallel()
	var reported []ID
	v := NewValidator(func(id ID, _ error) { reported = append(reported, id) })
	for _, tc := range []struct {
		name, schema, bad string // bad: arguments that must fail; none for a schema of no use
	}{
		{"draft7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"n":{"type":"integer"}},"properties":{"n":{"$ref":"#/definitions/n"}}}`, `{"n":"x"}`},
		{"draft7 without #", `{"$schema":"http://json-schema.org/draft-07/schema","properties":{"n":{"type":"integer"}}}`, `{"n":"x"}`},
		{"2020", `{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"n":{"type":"integer"}},"properties":{"n":{"$ref":"#/$defs/n"}}}`, `{"n":"x"}`},
		{"2019", `{"$schema":"https://json-schema.org/draft/2019-09/schema","properties":{"n":{"type":"integer"}}}`, `{"n":"x"}`},
		{"tuple of draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"n":{"items":[{"type":"integer"}]}}}`, `{"n":["x"]}`},
		{"lookahead", `{"properties":{"n":{"type":"string","pattern":"(?=x)y"}}}`, `{"n":1}`},
		{"dangling", `{"properties":{"n":{"$ref":"#/nowhere"}}}`, ""},
		{"remote", `{"properties":{"n":{"$ref":"https://example.org/x.json"}}}`, ""},
		{"nonsense", `{"properties":7}`, ""},
		{"no schema", ``, ""},
	} {
		tl := Tool{ID: ID("s:" + tc.name), InputSchema: json.RawMessage(tc.schema), SchemaHash: tc.name}
		for range 2 {
			args := tc.bad
			if args == "" {
				args = `{"n":1}`
			}
			if err := v.Validate(tl, json.RawMessage(args)); (err != nil) != (tc.bad != "") {
				t.Errorf("%s: %v", tc.name, err)
			}
		}
	}
	if diff := cmp.Diff([]ID{"s:dangling", "s:remote", "s:nonsense", "s:no schema"}, reported); diff != "" {
		t.Error(diff)
	}
}
