package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pml-run/pml/internal/sandbox/jail"
	"github.com/pml-run/pml/internal/supervise"
	"github.com/pml-run/pml/internal/upstream/upstreamtest"
)

// asPML tells the test binary to be pml itself.
const asPML = "PML_TEST_AS_PML"

// TestMain lets the test binary be everything that the real one is: pml, the
// sandbox's shim and the watchdog.
func TestMain(m *testing.M) {
	jail.MaybeExec()
	upstreamtest.Main()
	if len(os.Args) > 1 && os.Args[1] == supervise.WatchdogArg || os.Getenv(asPML) != "" {
		main()
		return
	}
	testscript.Main(withTemplate{m}, map[string]func(){"pml": main})
}

// repository is the root of the checkout.
func repository(tb testing.TB) string {
	tb.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}

// environment is what pml gets in tests: the machine's, a data folder of its own, its
// database where that is not in the folder, and the tools that make setup has fetched.
func environment(tb testing.TB, home string) []string {
	tb.Helper()
	url, _ := databases.Load(home)
	database, _ := url.(string)
	return append(os.Environ(),
		asPML+"=1", "PML_HOME="+home, "PML_TOOLS="+filepath.Join(repository(tb), ".tools"), "DATABASE_URL="+database)
}

// folder makes a folder of the run's own with a configuration of real servers
// (filesystem on a folder with some files, memory, everything).
type folder struct {
	root, home, config, files string
}

// newFolder makes a folder whose gateway allows every call and carries every run out.
func newFolder(tb testing.TB) folder {
	tb.Helper()
	return newFolderWith(tb, map[string]any{"permissions": map[string]any{"default": "allow"}, "cache": map[string]any{"disabled": true}})
}

// newFolderWith makes a folder with more keys in its configuration.
func newFolderWith(tb testing.TB, more map[string]any) folder {
	tb.Helper()
	root := tb.TempDir()
	f := folder{root: root, home: filepath.Join(root, "home"), config: filepath.Join(root, "pml.json"), files: filepath.Join(root, "files")}
	if err := os.MkdirAll(f.files, 0o755); err != nil {
		tb.Fatal(err)
	}
	for name, content := range map[string]string{"a.txt": "alpha\n", "b.txt": "beta\n", "c.txt": "gamma\n"} {
		if err := os.WriteFile(filepath.Join(f.files, name), []byte(content), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	newHome(tb, f.home)
	const scope = "@modelcontextprotocol/server-"
	npm := upstreamtest.NPM(tb, scope+"filesystem", scope+"memory", scope+"everything")
	entry := func(name string, env map[string]string, args ...string) map[string]any {
		c := npm[scope+name]
		return map[string]any{"command": c.Path, "args": append(append([]string{}, c.Args...), args...), "env": env}
	}
	keys := map[string]any{"mcpServers": map[string]any{
		"filesystem": entry("filesystem", nil, f.files),
		"memory":     entry("memory", map[string]string{"MEMORY_FILE_PATH": filepath.Join(root, "memory.jsonl")}),
		"everything": entry("everything", nil),
	}}
	keys["embedding"] = map[string]any{"provider": "none"} // what is not about search need not wait for it
	maps.Copy(keys, more)
	b, err := json.Marshal(keys)
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(f.config, b, 0o600); err != nil {
		tb.Fatal(err)
	}
	return f
}

// pml runs the program to its end and returns its stdout.
func (f folder) pml(ctx context.Context, tb testing.TB, args ...string) (string, error) {
	tb.Helper()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env, cmd.Dir = environment(tb, f.home), f.root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("pml %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), err
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("PML_HOME", home)
			env.Setenv("HOME", filepath.Join(env.WorkDir, "user"))
			env.Setenv("PML_TOOLS", filepath.Join(repository(t), ".tools"))
			return os.MkdirAll(filepath.Join(env.WorkDir, "user"), 0o700)
		},
	})
}
