package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/fault"
)

func catalog(ids ...ID) *Catalog {
	servers := map[string][]Tool{}
	for _, id := range ids {
		servers[id.Server()] = append(servers[id.Server()], Tool{ID: id})
	}
	return NewCatalog(servers)
}

func TestResolve(t *testing.T) {
	t.Parallel()
	c := catalog("my-files:read-file", "my-files:readFile", "my-files:Get.URL", "my-files:2fa", "a:list_all", "b:getV2", "b:x:y")
	for _, tc := range []struct {
		server, name string
		want         ID
	}{
		{"my-files", "read-file", "my-files:read-file"},
		{"my-files", "readFile", "my-files:readFile"},
		{"my_files", "Get.URL", "my-files:Get.URL"},
		{"myFiles", "get_url", "my-files:Get.URL"},
		{"myFiles", "getURL", "my-files:Get.URL"},
		{"my_files", "_2fa", "my-files:2fa"},
		{"a", "listAll", "a:list_all"},
		{"b", "get_v2", "b:getV2"},
		{"b", "x:y", "b:x:y"},
	} {
		if got, err := c.Resolve(tc.server, tc.name); err != nil || got.ID != tc.want {
			t.Errorf("%s.%s: %q, %v", tc.server, tc.name, got.ID, err)
		}
	}
	if _, err := c.Resolve("my-files", "read_file"); err == nil || !strings.Contains(err.Error(), "ambiguous") {
		t.Errorf("error %v", err)
	}
}

func TestResolveUnknown(t *testing.T) {
	t.Parallel()
	c := catalog("fs:read_file", "fs:read_files", "fs:write_file", "fs:stat", "git:log")
	for _, tc := range []struct{ server, name, hint string }{
		{"fs", "raed_file", `the nearest tools are: "read_file", "read_files", "write_file"`},
		{"fz", "x", `the nearest servers are: "fs", "git"`},
		{"fss", "log", `a tool of that name is at: "git:log"`},
	} {
		_, err := c.Resolve(tc.server, tc.name)
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != fault.UnknownTool || f.Hint != tc.hint {
			t.Errorf("%s.%s: %+v", tc.server, tc.name, err)
		}
	}
	var none *Catalog
	if _, err := none.Resolve("a", "b"); fault.CodeOf(err) != fault.UnknownTool {
		t.Error(err)
	}
}

func TestCatalogIsDeterministic(t *testing.T) {
	t.Parallel()
	a := catalog("b:2", "a:1", "b:1")
	b := catalog("b:1", "b:2", "a:1")
	if a.Version() != b.Version() || a.Version() == catalog("a:1").Version() {
		t.Error("versions")
	}
	var ids []ID
	for _, tl := range a.Tools() {
		ids = append(ids, tl.ID)
	}
	if diff := cmp.Diff([]ID{"a:1", "b:1", "b:2"}, ids); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, a.Servers()); diff != "" {
		t.Error(diff)
	}
	a.Tools()[0].ID = "x:x"
	if _, ok := a.Get("a:1"); !ok || len(a.ServerTools("b")) != 2 {
		t.Error("the snapshot changed")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][2]string{
		"get-current-time": {"get_current_time", "getCurrentTime"},
		"HTTPServer":       {"http_server", "httpServer"},
		"readFile":         {"read_file", "readFile"},
		"3d.render":        {"_3d_render", "_3dRender"},
		"schöne-Grüße":     {"schöne_grüße", "schöneGrüße"},
		"--":               {"", ""},
	} {
		if got := [2]string{Snake(in), Camel(in)}; got != want {
			t.Errorf("%s: %v", in, got)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, in string
		want     Tool
		problems int
	}{
		{
			"plain", `{"name":"a","description":"d","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
			Tool{ID: "s:a", Description: "d", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: Annotations{ReadOnly: new(true)}},
			0,
		},
		{"no schema", `{"name":"a"}`, Tool{ID: "s:a", InputSchema: anything}, 1},
		{"schema of a wrong kind", `{"name":"a","inputSchema":[]}`, Tool{ID: "s:a", InputSchema: anything}, 1},
		{"nullable", `{"name":"a","inputSchema":{"type":["object","null"],"x":1}}`, Tool{ID: "s:a", InputSchema: json.RawMessage(`{"type":"object","x":1}`)}, 0},
		{"string schema", `{"name":"a","inputSchema":{"type":"string"}}`, Tool{ID: "s:a", InputSchema: json.RawMessage(`{"type":"object"}`)}, 1},
		{
			"title", `{"name":"a","title":"T","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`,
			Tool{ID: "s:a", InputSchema: anything, OutputSchema: json.RawMessage(`{"type":"object"}`), Annotations: Annotations{Title: "T"}},
			0,
		},
		{"liar", `{"name":"a","inputSchema":{"type":"object"},"description":5,"annotations":{"readOnlyHint":"yes"}}`, Tool{ID: "s:a", InputSchema: anything}, 2},
		{"no name", `{"description":"x"}`, Tool{}, 1},
		{"empty name", `{"name":" "}`, Tool{}, 1},
		{"control", `{"name":"a\u0000"}`, Tool{}, 1},
		{"no object", `[]`, Tool{}, 1},
		{"null", `null`, Tool{}, 1},
		{"garbage", `{`, Tool{}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, problems := Parse("s", json.RawMessage(tc.in))
			if (got.SchemaHash == "") != (got.ID == "") {
				t.Error("no hash")
			}
			got.SchemaHash = ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if len(problems) != tc.problems {
				t.Errorf("problems %v", problems)
			}
		})
	}
}

func TestParseList(t *testing.T) {
	t.Parallel()
	var raw []json.RawMessage
	for i := range 500 {
		raw = append(raw, json.RawMessage(fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"},"description":%q}`, i%499, strings.Repeat("é", 6500))))
	}
	tools, problems := ParseList("s", raw)
	if len(tools) != 499 || len(problems) != 1 || problems[0] != (Problem{"s", "t0", "declared twice; the first declaration is used"}) {
		t.Errorf("%d tools, %v", len(tools), problems)
	}
	if d := []rune(tools[0].Description); len(d) != 2000 || !strings.HasSuffix(string(d), CutMark) {
		t.Errorf("%d characters", len(d))
	}
}

func TestSchemaHashIsCanonical(t *testing.T) {
	t.Parallel()
	hash := func(schema string) string {
		tl, _ := Parse("s", json.RawMessage(`{"name":"a","inputSchema":`+schema+`}`))
		return tl.SchemaHash
	}
	if hash(`{"type":"object","a":1}`) != hash(`{ "a": 1, "type": "object" }`) {
		t.Error("order and space must not matter")
	}
	if hash(`{"type":"object","maximum":9007199254740993}`) == hash(`{"type":"object","maximum":9007199254740992}`) {
		t.Error("digits must matter")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"name":"a","inputSchema":{"type":["object","null"]},"annotations":{"title":1},"outputSchema":7}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		tl, problems := Parse("s", raw)
		if tl.ID == "" && len(problems) == 0 {
			t.Fatal("skipped without a word")
		}
		if _, err := json.Marshal(tl); err != nil {
			t.Fatal(err)
		}
		if tl.ID != "" {
			_ = new(Validator).Validate(tl, json.RawMessage(`{"a":1}`))
			if _, err := NewCatalog(map[string][]Tool{"s": {tl}}).Resolve("s", tl.ID.Name()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
