package tool_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/upstream/upstreamtest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestSignaturesOfServers writes the signatures of real servers' tools.
func TestSignaturesOfServers(t *testing.T) {
	t.Parallel()
	const scope = "@modelcontextprotocol/server-"
	servers := []string{"everything", "filesystem", "memory"}
	commands := upstreamtest.NPM(t, scope+servers[0], scope+servers[1], scope+servers[2])
	for _, name := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tools := listTools(t, name, commands[scope+name])
			var b strings.Builder
			for _, tl := range tools {
				b.WriteString(tool.Signature(tl, nil) + ";\n")
			}
			golden(t, filepath.Join("testdata", "signature", name+".ts"), b.String())
			for _, source := range []string{"interface T {\n" + b.String() + "}", tool.Declarations(name, tools, nil)} {
				if r := api.Transform(source, api.TransformOptions{Loader: api.LoaderTS}); len(r.Errors) > 0 {
					t.Errorf("no TypeScript: %s\n%s", r.Errors[0].Text, source)
				}
			}
		})
	}
}

func listTools(t *testing.T, name string, c upstreamtest.Command) []tool.Tool {
	t.Helper()
	if name == "filesystem" {
		c.Args = append(c.Args, t.TempDir())
	}
	cmd := exec.CommandContext(t.Context(), c.Path, c.Args...)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var raw []json.RawMessage
	for _, declared := range list.Tools {
		text, err := json.Marshal(declared)
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, text)
	}
	tools, problems := tool.ParseList(name, raw)
	if len(tools) == 0 || len(problems) > 0 {
		t.Fatalf("%d tools, %v", len(tools), problems)
	}
	return tools
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}
