package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/google/go-cmp/cmp"
)

// parses fails the test when the text is no TypeScript.
func parses(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, source string,
) {
	t.Helper()
	result := api.Transform(source, api.TransformOptions{Loader: api.LoaderTS, LogLevel: api.LogLevelSilent})
	if len(result.Errors) > 0 {
		t.Fatalf("no TypeScript: %s\n%s", result.Errors[0].Text, source)
	}
}

func TestTypeOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, schema, want string }{
		{"words", `{"properties":{"s":{"type":"string"},"i":{"type":"integer"},"n":{"type":"number"},"b":{"type":"boolean"},"z":{"type":"null"}}}`, `{ s?: string; i?: number; n?: number; b?: boolean; z?: null }`},
		{"required come first", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b"]}`, `{ b: string; a?: string }`},
		{"required but not declared", `{"type":"object","properties":{"a":{"type":"string"}},"required":["z","a"]}`, `{ a: string; z: unknown }`},
		{"nested", `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"array","items":{"type":"object","properties":{"c":{"type":"integer"}},"required":["c"]}}}}}}`, `{ a?: { b?: { c: number }[] } }`},
		{"quoted names", `{"properties":{"a-b":true,"2":{"type":"string"},"größe":{"type":"string"},"":{"type":"string"},"x\"*/":{"type":"string"},"class":{"type":"string"}}}`, `{ "a-b"?: unknown; "2"?: string; "größe"?: string; ""?: string; "x\"*/"?: string; class?: string }`},
		{"no list items", `{"type":"array"}`, `unknown[]`},
		{"union items", `{"type":"array","items":{"type":["string","null"]}}`, `(string | null)[]`},
		{"tuple", `{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}],"items":false}`, `[string, number]`},
		{"draft 7 tuple", `{"type":"array","items":[{"type":"string"},{"type":["number","null"]}],"additionalItems":{"type":"boolean"},"minItems":1}`, `[string, (number | null)?, ...boolean[]]`},
		{"anyOf", `{"anyOf":[{"type":"null"},{"type":"string"},{"type":"array","items":{"type":"string"}},{"type":"string"}]}`, `string | string[] | null`},
		{"anyOf with anything", `{"anyOf":[{"type":"string"},{}]}`, `unknown`},
		{"oneOf beside properties", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"oneOf":[{"properties":{"b":{"type":"string"}},"required":["b"]},{"properties":{"c":{"type":"number"}}}]}`, `{ a: string; b: string } | { a: string; c?: number }`},
		{"anyOf that only requires", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{ a?: string; b?: string }`},
		{"allOf", `{"allOf":[{"type":"object","properties":{"a":{"type":"string"},"n":{"type":["number","null"]}}},{"properties":{"b":{"type":"number"},"n":{"type":"number"}},"required":["a"]},{"required":["b"]}]}`, `{ a: string; b: number; n?: number }`},
		{"allOf that cannot be", `{"allOf":[{"type":"string"},{"type":"number"}]}`, `never`},
		{"allOf of an enum and its type", `{"allOf":[{"type":"string"},{"enum":["a","b"]}]}`, `"a" | "b"`},
		{"enum", `{"type":"string","enum":["a","b\"","a"]}`, `"a" | "b\""`},
		{"enum of kinds", `{"enum":[1,-2.5,true,null,"x"]}`, `1 | -2.5 | true | "x" | null`},
		{"both booleans", `{"enum":[true,false,null]}`, `boolean | null`},
		{"long enum", `{"enum":["a","b","c","d","e","f","g","h","i","j","k","l","m","n"]}`, `"a" | "b" | "c" | "d" | "e" | "f" | "g" | "h" | "i" | "j" | "k" | "l" | string /* 2 more */`},
		{"long literal", `{"enum":["a","` + strings.Repeat("x", 50) + `"]}`, `"a" | string`},
		{"const", `{"const":"v1"}`, `"v1"`},
		{"const object", `{"properties":{"a":{"const":{"x":1}},"b":{"const":[1]}}}`, `{ a?: object; b?: unknown[] }`},
		{"type list", `{"type":["object","null"],"properties":{"a":{"type":"string"}}}`, `{ a?: string } | null`},
		{"nullable", `{"type":"string","nullable":true}`, `string | null`},
		{"record", `{"type":"object","additionalProperties":{"type":"number"}}`, `Record<string, number>`},
		{"record beside properties", `{"type":"array","items":{"properties":{"a":{"type":"string"}},"additionalProperties":{"type":"number"}}}`, `({ a?: string } & Record<string, number>)[]`},
		{"pattern properties", `{"patternProperties":{"^x":{"type":"number"},"^y":{"type":"string"}}}`, `Record<string, number | string>`},
		{"open", `{"type":"object"}`, `Record<string, unknown>`},
		{"closed", `{"type":"object","additionalProperties":false}`, `{}`},
		{"forbidden property", `{"properties":{"a":{"type":"string"},"b":false}}`, `{ a?: string }`},
		{"definitions", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#/definitions/x~1y%25","type":"string"}},"definitions":{"x/y%":{"type":"integer"}}}`, `{ a?: number }`},
		{"$defs with something beside", `{"properties":{"a":{"$ref":"#/$defs/o","required":["x"]}},"$defs":{"o":{"type":"object","properties":{"x":{"type":"integer"}}}}}`, `{ a?: { x: number } }`},
		{"recursive", `{"$ref":"#/$defs/tree_node","$defs":{"tree_node":{"type":"object","properties":{"v":{"type":"string"},"sub":{"type":"array","items":{"$ref":"#/$defs/tree_node"}}}}}}`, `{ v?: string; sub?: TreeNode[] }`},
		{"recursive root", `{"type":"object","properties":{"next":{"$ref":"#"}}}`, `{ next?: Self }`},
		{"recursive record", `{"type":"object","additionalProperties":{"$ref":"#"}}`, `{ [key: string]: Self }`},
		{"titled root", `{"title":"my 2nd list","properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}}`, `{ next?: My2ndList | null }`},
		{"dangling", `{"properties":{"a":{"$ref":"#/nowhere"},"b":{"$ref":"https://example.org/x.json"},"c":{"$ref":"#anchor"}}}`, `{ a?: unknown; b?: unknown; c?: unknown }`},
		{"default", `{"properties":{"a":{"type":"number","default":10},"b":{"type":"string","default":"*/"},"c":{"type":"string","default":""},"d":{"type":"string","default":{}}}}`, `{ a?: number /* = 10 */; b?: string; c?: string; d?: string }`},
		{"booleans", `true`, `unknown`},
		{"false", `false`, `never`},
		{"empty", ``, `unknown`},
		{"cut off", `{"type":"string"`, `unknown`},
		{"odd", `{"type":7,"properties":[],"enum":{},"anyOf":[],"required":"x","$ref":1}`, `unknown`},
		{"unknown type", `{"type":["file","string"]}`, `unknown`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := TypeOf(json.RawMessage(tc.schema), 0)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			parses(t, "type T = "+got)
		})
	}
}

func TestSignature(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, id, input, declared, learnt, want string }{
		{
			"as in the manual", "fs:read_file", `{"type":"object","properties":{"path":{"type":"string"},"head":{"type":"integer"}},"required":["path"]}`,
			`{"type":"object","properties":{"content":{"type":"string"}},"required":["content"]}`, ``,
			`read_file(args: { path: string; head?: number }): Promise<{ content: string }>`,
		},
		{"a declared output outranks", "s:a", `{"type":"object"}`, `{"type":"string"}`, `{"type":"number"}`, `a(args?: Record<string, unknown>): Promise<string>`},
		{"learnt", "s:a", `{"type":"object","properties":{}}`, ``, `{"type":["array","null"],"items":{"type":"integer"}}`, `a(): Promise<number[] | null>`},
		{"no schemas", "s:get-Time", ``, ``, ``, `get_time(args: unknown): Promise<unknown>`},
		{"no identifier", "s:--", `{"type":"object","properties":{"a":{"type":"string"}}}`, ``, ``, `"--"(args?: { a?: string }): Promise<unknown>`},
		{"a word of the language", "s:delete", `{"type":"object","additionalProperties":false}`, ``, ``, `delete(): Promise<unknown>`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tl := Tool{ID: ID(tc.id), InputSchema: json.RawMessage(tc.input), OutputSchema: json.RawMessage(tc.declared)}
			got := SignatureOptions{}.Tool(tl, json.RawMessage(tc.learnt))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			parses(t, "interface T { "+got+" }")
		})
	}
}

func TestSignatureBudget(t *testing.T) {
	t.Parallel()
	const deep = `{"type":"object","properties":{"filter":{"type":"object","properties":{"by":{"type":"object","properties":{"field":{"type":"string"},"op":{"enum":["lt","gt"]}},"required":["field"]}},"required":["by"]},"limit":{"type":"integer","default":5},"sort":{"enum":["a","b","c","d","e","f"]}},"required":["filter"]}`
	wide := `{"type":"object","properties":{`
	for i := range 30 {
		wide += fmt.Sprintf(`"optional_%02d":{"type":"string"},"required_%02d":{"type":"number"},`, i, i)
	}
	wide += `"list":{"type":"array"}},"required":["required_00","required_01","required_02","list"]}`
	for _, tc := range []struct {
		name, input, output string
		limit               int
		want                string
	}{
		{"all of it", deep, ``, 300, `find(args: { filter: { by: { field: string; op?: "lt" | "gt" } }; limit?: number /* = 5 */; sort?: "a" | "b" | "c" | "d" | "e" | "f" }): Promise<unknown>`},
		{"no defaults", deep, ``, 151, `find(args: { filter: { by: { field: string; op?: "lt" | "gt" } }; limit?: number; sort?: "a" | "b" | "c" | "d" | "e" | "f" }): Promise<unknown>`},
		{"two levels", deep, ``, 140, `find(args: { filter: { by: object }; limit?: number; sort?: "a" | "b" | "c" | "d" | string /* 2 more */ }): Promise<unknown>`},
		{"one level", deep, ``, 120, `find(args: { filter: object; limit?: number; sort?: "a" | "b" | "c" | "d" | string /* 2 more */ }): Promise<unknown>`},
		{"optional ones go", deep, ``, 100, `find(args: { filter: object; limit?: number /* 1 more optional */ }): Promise<unknown>`},
		{"then all", deep, ``, 40, `find(args: object): Promise<unknown>`},
		{"less than the least", deep, ``, 1, `find(args: unknown): Promise<unknown>`},
		{"required ones first", wide, ``, 130, `find(args: { required_00: number; required_01: number /* 2 more required, 57 more optional */ }): Promise<unknown>`},
		{"wide result", `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`, `{"type":"array","items":` + wide + `}`, 150, `find(args: { q: string }): Promise<{ required_00: number; required_01: number; required_02: number; list: unknown[] /* 57 more optional */ }[]>`},
		{"two thirds for the arguments", wide, wide, 300, `find(args: { required_00: number; required_01: number; required_02: number; list: unknown[]; optional_00?: string; optional_01?: string; optional_02?: string; optional_03?: string /* 53 more optional */ }): Promise<{ required_00: number; required_01: number /* 2 more required, 57 more optional */ }>`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tl := Tool{ID: "s:find", InputSchema: json.RawMessage(tc.input)}
			got := SignatureOptions{Max: tc.limit}.Tool(tl, json.RawMessage(tc.output))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			parses(t, "interface T { "+got+" }")
		})
	}
}

func TestCapabilitySignature(t *testing.T) {
	t.Parallel()
	got := CapabilitySignature("build_report", []Parameter{
		{Name: "limit", Schema: json.RawMessage(`{"type":"integer","default":3}`)},
		{Name: "month", Schema: json.RawMessage(`{"type":"string"}`), Required: true},
		{Name: "odd", Schema: json.RawMessage(`{`)},
	}, json.RawMessage(`{"type":"array","items":{"type":"string"}}`))
	if diff := cmp.Diff(`build_report(args: { month: string; limit?: number /* = 3 */; odd?: unknown }): Promise<string[]>`, got); diff != "" {
		t.Error(diff)
	}
	if got := CapabilitySignature("ping", nil, nil); got != "ping(): Promise<unknown>" {
		t.Error(got)
	}
}

func TestDeclarations(t *testing.T) {
	t.Parallel()
	tools := []Tool{
		{
			ID: "my-files:save", Description: "Saves */ a tree.\n\nIn one go.",
			InputSchema:  json.RawMessage(`{"type":"object","properties":{"tree":{"$ref":"#/$defs/node","description":"what\nto save"}},"required":["tree"],"$defs":{"node":{"type":"object","properties":{"left":{"$ref":"#/$defs/node"},"leaf":{"$ref":"#/$defs/leaf"}}},"leaf":{"type":"object","properties":{"up":{"$ref":"#/$defs/leaf"}}}}}`),
			OutputSchema: json.RawMessage(`{"type":"boolean"}`),
		},
		{ID: "my-files:--", InputSchema: json.RawMessage(`{"type":"object","properties":{}}`)},
	}
	got := Declarations("my-files", tools, func(id ID) json.RawMessage { return json.RawMessage(`{"const":"` + id.Name() + `"}`) })
	want := `// The tools of the MCP server "my-files", as programs call them.
declare namespace mcp {
  type MyFilesSaveArgsNode = { left?: MyFilesSaveArgsNode; leaf?: { up?: MyFilesSaveArgsLeaf } };
  type MyFilesSaveArgsLeaf = { up?: MyFilesSaveArgsLeaf };
  interface Servers {
    readonly my_files: {
      /**
       * Saves *\/ a tree.
       *
       * In one go.
       * @param args.tree what to save
       */
      save(args: { tree: { left?: MyFilesSaveArgsNode; leaf?: { up?: MyFilesSaveArgsLeaf } } }): Promise<boolean>;
      "--"(): Promise<"--">;
    };
  }
}
declare var mcp: mcp.Servers;
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	parses(t, got+Declarations("--", tools, nil))
}

// TestDeclarationsOfLikeNames: no two types have the same name.
func TestDeclarationsOfLikeNames(t *testing.T) {
	t.Parallel()
	twice := json.RawMessage(`{"properties":{"a":{"$ref":"#/$defs/node"},"b":{"$ref":"#/definitions/node"},"c":{"$ref":"#/$defs/loop"},"d":{"$ref":"#/$defs/any"}},
		"$defs":{"node":{"properties":{"n":{"$ref":"#/$defs/node"}}},"loop":{"$ref":"#/$defs/loop"},"any":{"anyOf":[{"$ref":"#/$defs/any"},{"type":"null"},{"type":"array","items":{"$ref":"#/$defs/any"}}]}},"definitions":{"node":{"properties":{"n":{"$ref":"#/definitions/node"}}}}}`)
	got := Declarations("s", []Tool{{ID: "s:get-x", InputSchema: twice}, {ID: "s:get_x", OutputSchema: twice}}, nil)
	var names []string
	for line := range strings.Lines(got) {
		if rest, ok := strings.CutPrefix(line, "  type "); ok {
			names = append(names, strings.TrimSpace(rest))
		}
	}
	want := []string{
		"SGetXArgsNode = { n?: SGetXArgsNode };", "SGetXArgsNode2 = { n?: SGetXArgsNode2 };", "SGetXArgsLoop = unknown;", "SGetXArgsAny = SGetXArgsAny[] | null;",
		"SGetXTool2ResultNode = { n?: SGetXTool2ResultNode };", "SGetXTool2ResultNode2 = { n?: SGetXTool2ResultNode2 };", "SGetXTool2ResultLoop = unknown;", "SGetXTool2ResultAny = SGetXTool2ResultAny[] | null;",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}
