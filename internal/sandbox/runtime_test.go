package sandbox

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pml-run/pml/internal/deno/denotest"
)

// TestRuntimeTypes has Deno check the types of the worker's runtime.
func TestRuntimeTypes(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs("../../sandbox-runtime")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), denotest.Path(t), "check", "--no-config", "--no-lock", "--no-remote", dir+"/main.ts", dir+"/boot.ts")
	cmd.Env = []string{"HOME=/nonexistent", "DENO_DIR=" + t.TempDir(), "NO_COLOR=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestRuntimeBundle keeps the runtime small, so that the pipe takes it before anybody
// reads, and away from what costs 30 ms per start.
func TestRuntimeBundle(t *testing.T) {
	t.Parallel()
	text, err := bundleRuntime()
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 48<<10 {
		t.Errorf("the runtime has %d bytes", len(text))
	}
	if !strings.HasPrefix(text, `"use strict";`) {
		t.Error("the runtime is not strict")
	}
	for _, bad := range []string{"process.", "\"node:", "import("} {
		if strings.Contains(text, bad) {
			t.Errorf("the runtime uses %q", bad)
		}
	}
}
