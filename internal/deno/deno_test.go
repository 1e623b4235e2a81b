package deno

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseVersion(t *testing.T) {
	for name, c := range map[string]struct {
		out, want, problem string
	}{
		"tested release": {out: "deno 2.9.6 (stable, release, x86_64-unknown-linux-gnu)\nv8 14\n", want: "2.9.6"},
		"next major":     {out: "deno 3.0.0\n", want: "3.0.0"},
		"canary":         {out: "deno 2.10.1+abcdef\n", want: "2.10.1+abcdef"},
		"too old":        {out: "deno 2.8.9\n", problem: "older than 2.9"},
		"something else": {out: "node v20.1.0\n", problem: "unexpected version"},
		"no number":      {out: "deno canary\n", problem: "unexpected version"},
		"nothing":        {out: "", problem: "unexpected version"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseVersion([]byte(c.out))
			if got != c.want || (err != nil) != (c.problem != "") || err != nil && !strings.Contains(err.Error(), c.problem) {
				t.Errorf("got %q, %v; want %q, problem %q", got, err, c.want, c.problem)
			}
		})
	}
}

func TestNativePathFollowsTheScriptToTheBinary(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "deno", "bin.cjs"), "#!/usr/bin/env node\n")
	write(t, filepath.Join(dir, "@deno", platform(), "deno"), "\x7fELF")
	link := filepath.Join(dir, "bin-deno")
	if err := os.Symlink(filepath.Join(dir, "deno", "bin.cjs"), link); err != nil {
		t.Fatal(err)
	}
	got, err := nativePath(link)
	if want := filepath.Join(dir, "@deno", platform(), "deno"); err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestFindGivesAHint(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Find(t.Context(), "", t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "Deno 2.9 or newer was not found") {
		t.Errorf("got %v", err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}
