// Package denotest finds the Deno that tests run with.
package denotest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Path is the Deno to test with. A test that needs one fails without.
func Path(tb testing.TB) string {
	tb.Helper()
	path, err := Find()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// Find looks in PML_DENO, where make setup puts it, and in PATH.
func Find() (string, error) {
	if path := os.Getenv("PML_DENO"); path != "" {
		return path, nil
	}
	found, err := filepath.Glob(filepath.Join(root(), ".tools", "node_modules", "@deno", "*", "deno"))
	if err == nil && len(found) > 0 {
		return found[0], nil
	}
	path, err := exec.LookPath("deno")
	if err != nil {
		return "", fmt.Errorf("this test needs Deno: run 'make setup', or set PML_DENO: %w", err)
	}
	return path, nil
}

// root is the repository's folder.
func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}
