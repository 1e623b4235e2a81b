package internal_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/pml-run/pml"

// allowed is the import graph of internal/: a package may import only what is
// listed here. Data flows down this list; only daemon joins the parts.
var allowed = map[string][]string{
	// words
	"fault":      {},
	"tool":       {"fault"},
	"structure":  {"fault"},
	"analysis":   {"fault", "tool", "structure"},
	"trace":      {"fault", "tool", "structure"},
	"capability": {"fault", "tool", "structure"},
	"graph":      {},
	"policy":     {"fault", "tool"},
	"connector":  {"tool"}, // what a kind of server answers, from its tools' declarations

	// means
	"supervise":         {},
	"telemetry":         {},
	"disk":              {},
	"deno":              {"fault", "disk"},
	"deno/denotest":     {},
	"config":            {"fault"},
	"sandbox":           {"fault", "tool", "sandbox/wire", "sandbox/jail"},
	"sandbox/wire":      {},
	"sandbox/jail":      {"sandbox/jail/shim"},
	"sandbox/jail/shim": {}, // and next to nothing else: it runs before every other package

	"embedding/kernel":     {},
	"embedding/kernel/gen": {}, // a module of its own
	"embedding/wordpiece":  {},
	"embedding/bert":       {"embedding/kernel"},
	"embedding":            {"fault", "deno", "embedding/bert", "embedding/kernel", "embedding/wordpiece"},

	"upstream":              {"fault", "tool", "supervise", "config"},
	"upstream/upstreamtest": {},

	// use
	"execute":         {"fault", "tool", "structure", "policy", "connector", "capability", "trace", "analysis", "sandbox"},
	"search":          {"fault", "tool", "graph", "capability", "embedding/kernel"}, // its products of vectors
	"search/evaluate": {"fault", "tool", "capability", "search"},                    // data sets and measurements, never in a request
	"learn":           {"fault", "tool", "structure", "capability", "trace"},
	"jobs":            {"fault", "telemetry", "capability", "graph", "learn"},

	// memory
	"store":           {"fault", "tool", "structure", "policy", "capability", "trace", "supervise", "store/pglite"},
	"store/pglite":    {"fault", "supervise", "disk", "deno"},
	"store/storetest": {"deno/denotest", "store", "store/pglite"},

	// faces
	"mcpserver": {"fault", "telemetry", "policy", "execute", "search"},
	"httpapi":   {"fault", "policy", "capability", "trace"},
	"relay":     {},

	// whole
	"daemon": {"*"},
	"cli":    {"fault", "tool", "structure", "policy", "capability", "trace", "analysis", "execute", "config", "telemetry", "httpapi", "relay", "daemon", "embedding", "search", "search/evaluate"},
}

// TestImportDirection reads the files itself instead of asking 'go list', so
// that the test cache knows which files it depends on.
func TestImportDirection(t *testing.T) {
	seen := map[string]bool{}
	walk := func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(filepath.Dir(path))
		may, ok := allowed[name]
		if !ok && !seen[name] {
			t.Errorf("%s: not in the import table; add it with a reason", name)
		}
		seen[name] = true
		for _, spec := range file.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			dep, internal := strings.CutPrefix(imp, module+"/internal/")
			if internal && !slices.Contains(may, dep) && (!slices.Contains(may, "*") || dep == "cli") {
				t.Errorf("%s imports %s: not allowed", path, dep)
			}
		}
		return nil
	}
	if err := filepath.WalkDir(".", walk); err != nil {
		t.Fatal(err)
	}
	for name := range allowed {
		if !seen[name] {
			t.Errorf("%s: in the import table, but there is no such package", name)
		}
	}
}
