package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ResolveDeno returns the executable behind path: path itself when it is one, and
// what npm's wrapper script would start when it is that. The jail allows one
// executable and no interpreter, so the wrapper itself cannot run in it.
func ResolveDeno(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("deno: %w", err)
	}
	dir := filepath.Dir(real)
	candidates := []string{real, filepath.Join(dir, "deno")}
	for _, pattern := range []string{"../@deno/*/deno", "node_modules/@deno/*/deno"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is well formed
		candidates = append(candidates, found...)
	}
	for _, c := range candidates {
		if isExecutable(c) {
			return c, nil
		}
	}
	return "", fmt.Errorf("deno: %s is a script and no executable is beside it; give the path of the executable", path)
}

// isExecutable reports whether the file is a program for a CPU (ELF or Mach-O).
func isExecutable(path string) bool {
	f, err := os.Open(path) //nolint:gosec // a configured path
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	magic := make([]byte, 4)
	if _, err := io.ReadFull(f, magic); err != nil {
		return false
	}
	for _, m := range []string{"\x7fELF", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe"} {
		if bytes.Equal(magic, []byte(m)) {
			return true
		}
	}
	return false
}
