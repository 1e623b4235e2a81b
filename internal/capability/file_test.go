package capability

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/structure"
)

func exported(t *testing.T) (Capability, string) {
	t.Helper()
	c := Capability{
		Name: "read_it", Intent: "read <it>", HashExact: "e", HashShape: "s", Version: 3, State: Promoted, UsageCount: 9,
		Source:     Source{Type: CodeSource, Code: "return await mcp.fs.read({path: \"<a>\u2028\"})"},
		Parameters: []structure.Parameter{{Name: "path", Schema: json.RawMessage(`{"type":"string"}`), Required: true}},
		Structure: structure.Structure{Nodes: []structure.Node{
			{ID: "n1", Type: structure.Task, Tool: "fs:read"},
			{ID: "n2", Type: structure.Task, Tool: "fs:read"},
			{ID: "n3", Type: structure.Task, Tool: "fs:*"},
			{ID: "c1", Type: structure.Capability, CapabilityID: "other"},
		}, Edges: []structure.Edge{}},
	}
	var b bytes.Buffer
	if err := Export(&b, []Capability{c}, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	return c, b.String()
}

func TestExportAndImport(t *testing.T) {
	t.Parallel()
	c, file := exported(t)
	for _, want := range []string{`"needs_tools": [`, `"fs:read"`, `"needs_capabilities": [`, `"other"`, `"pml_capabilities": 1`} {
		if !strings.Contains(file, want) {
			t.Errorf("%s is not in the file:\n%s", want, file)
		}
	}
	if strings.Contains(file, "fs:*") && strings.Contains(file, "usage") {
		t.Error("the file has more than the program")
	}
	hash := func(s Source) (string, string, structure.Structure, error) { return "e", "s", c.Structure, nil }
	got, err := Import(strings.NewReader(file), hash)
	if err != nil {
		t.Fatal(err)
	}
	want := c
	want.State, want.Version, want.UsageCount, want.Origin = Candidate, 1, 0, Imported
	if diff := cmp.Diff([]Capability{want}, got); diff != "" {
		t.Error(diff)
	}
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	_, file := exported(t)
	right := func(Source) (string, string, structure.Structure, error) { return "e", "s", structure.Structure{}, nil }
	other := func(Source) (string, string, structure.Structure, error) { return "x", "s", structure.Structure{}, nil }
	broken := func(Source) (string, string, structure.Structure, error) {
		return "", "", structure.Structure{}, errors.New("syntax")
	}
	tests := map[string]struct {
		file string
		hash func(Source) (string, string, structure.Structure, error)
		want string
	}{
		"another program": {file, other, "not the one that was exported"},
		"no program":      {file, broken, "syntax"},
		"changed":         {strings.Replace(file, "mcp.fs.read", "mcp.fs.rm", 1), right, "changed after it was exported"},
		"a newer format":  {strings.Replace(file, `_capabilities": 1`, `_capabilities": 2`, 1), right, "newer than this binary's"},
		"something else":  {`{"a":1}`, right, "not a file"},
		"not JSON":        {`hello`, right, "not a file"},
		"cut":             {file[:len(file)/2], right, "not a file"},
		"empty":           {"", right, "not a file"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Import(strings.NewReader(tt.file), tt.hash)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if name != "no program" && fault.CodeOf(err) != fault.InvalidInput {
				t.Errorf("code %s", fault.CodeOf(err))
			}
		})
	}
}

// FuzzImport: the file comes from anywhere.
func FuzzImport(f *testing.F) {
	f.Add(`{"pml_capabilities":1,"capabilities":[{"name":"a"}],"sha256":"x"}`)
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = Import(strings.NewReader(text), func(Source) (string, string, structure.Structure, error) { return "", "", structure.Structure{}, nil })
	})
}
