package tool_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
				b.WriteString(tool.SignatureOptions{}.Tool(tl, nil) + ";\n")
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

// TestSignaturesOfCorpus: every tool of a public collection has a signature that is
// TypeScript, short and names each required argument that there is room for.
func TestSignaturesOfCorpus(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "..", "shared", "data", "retrieval", "livemcp", "corpus.jsonl")
	file, err := os.Open(path)
	if err != nil {
		t.Skipf("the collection is not beside the checkout: %v", err)
	}
	defer file.Close()
	var lengths []int
	var all strings.Builder
	for d := json.NewDecoder(file); d.More(); {
		var line struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"input_schema"`
		}
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		text := tool.SignatureOptions{}.Tool(tool.Tool{ID: tool.MakeID("s", line.Name), InputSchema: line.Schema}, nil)
		lengths = append(lengths, len(text))
		all.WriteString(text + ";\n")
		var schema struct {
			Required []string `json:"required"`
		}
		_ = json.Unmarshal(line.Schema, &schema)
		for _, name := range schema.Required {
			if !strings.Contains(text, name) && !strings.Contains(text, "more required") {
				t.Errorf("%s is not in %s", name, text)
			}
		}
	}
	if r := api.Transform("interface T {\n"+all.String()+"}", api.TransformOptions{Loader: api.LoaderTS}); len(r.Errors) > 0 {
		t.Errorf("no TypeScript: %s\n%s", r.Errors[0].Text, r.Errors[0].Location.LineText)
	}
	slices.Sort(lengths)
	t.Logf("%d signatures, half of them under %d bytes, nine in ten under %d, the longest %d",
		len(lengths), lengths[len(lengths)/2], lengths[len(lengths)*9/10], lengths[len(lengths)-1])
	if longest := lengths[len(lengths)-1]; longest > 600 {
		t.Errorf("%d bytes", longest)
	}
}
