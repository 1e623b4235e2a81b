// Package deno finds the Deno binary that workers and the embedded database run
// in, and installs it through npm where there is none. It runs Deno only to ask
// for its version.
package deno

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/pml-run/pml/internal/fault"
)

// Version is the release that Install fetches and that is tested.
const Version = "2.9.6"

// The oldest release that works: the sandbox depends on its flags.
const (
	minMajor = 2
	minMinor = 9
)

// Binary is a usable Deno.
type Binary struct {
	Path    string // the native executable, never a script around it
	Version string
}

// Find returns the first Deno of at least 2.9: explicit (when given, no other is
// looked for), then the one on PATH, then those that Install put into dirs.
func Find(ctx context.Context, explicit string, dirs ...string) (Binary, error) {
	if explicit != "" {
		return probe(ctx, explicit)
	}
	var problems []error
	candidates := make([]string, 0, len(dirs)+1)
	if onPath, err := exec.LookPath("deno"); err == nil {
		candidates = append(candidates, onPath)
	}
	for _, dir := range dirs {
		candidates = append(candidates, filepath.Join(dir, "node_modules", "deno", "deno"))
	}
	for _, path := range candidates {
		b, err := probe(ctx, path)
		if err == nil {
			return b, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			problems = append(problems, err)
		}
	}
	err := fault.New(fault.Unavailable, "Deno %d.%d or newer was not found", minMajor, minMinor).
		WithHint("run pml setup, which installs it through npm; or install Deno and put it on PATH, or name it in PML_DENO")
	return Binary{}, errors.Join(append([]error{err}, problems...)...)
}

// Install fetches Deno with npm into dir, unless it is there, and returns it.
// What npm says goes to out.
func Install(ctx context.Context, dir string, out io.Writer) (Binary, error) {
	path := filepath.Join(dir, "node_modules", "deno", "deno")
	if b, err := probe(ctx, path); err == nil {
		return b, nil
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return Binary{}, fault.New(fault.Unavailable, "neither Deno nor npm is on PATH").
			WithHint("install Deno %d.%d or newer, or Node.js with npm, and try again", minMajor, minMinor)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // programs, readable by the sandbox's user
		return Binary{}, fmt.Errorf("make %s: %w", dir, err)
	}
	cmd := exec.CommandContext(ctx, npm, "install", "--prefix", dir, "--no-audit", "--no-fund", "--no-save", "deno@"+Version) //nolint:gosec // fixed arguments
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return Binary{}, fmt.Errorf("npm install deno@%s into %s: %w", Version, dir, err)
	}
	return probe(ctx, path)
}

// probe asks path for its version, after replacing a script by its binary.
func probe(ctx context.Context, path string) (Binary, error) {
	native, err := nativePath(path)
	if err != nil {
		return Binary{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, native, "--version") //nolint:gosec // the operator's own choice of Deno
	cmd.Env = []string{"NO_COLOR=1", "DENO_NO_UPDATE_CHECK=1", "HOME=" + os.TempDir()}
	out, err := cmd.Output()
	if err != nil {
		return Binary{}, fmt.Errorf("%s --version: %w", native, err)
	}
	version, err := parseVersion(out)
	if err != nil {
		return Binary{}, fmt.Errorf("%s: %w", native, err)
	}
	return Binary{Path: native, Version: version}, nil
}

// parseVersion reads the first line of deno --version.
func parseVersion(out []byte) (string, error) {
	line, _, _ := bytes.Cut(out, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) < 2 || fields[0] != "deno" {
		return "", fmt.Errorf("unexpected version %q", line)
	}
	major, rest, _ := strings.Cut(fields[1], ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	if errA != nil || errB != nil {
		return "", fmt.Errorf("unexpected version %q", line)
	}
	if a < minMajor || a == minMajor && b < minMinor {
		return "", fmt.Errorf("version %s is older than %d.%d", fields[1], minMajor, minMinor)
	}
	return fields[1], nil
}

// nativePath follows links and the script that npm puts in front of the binary:
// the sandbox executes the binary itself.
func nativePath(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("deno at %s: %w", path, err)
	}
	script, err := isScript(path)
	if err != nil || !script {
		return path, err
	}
	dir := filepath.Dir(path)
	for _, near := range []string{
		filepath.Join(dir, "deno"),
		filepath.Join(dir, "..", "@deno", platform(), "deno"),
		filepath.Join(dir, "node_modules", "@deno", platform(), "deno"),
	} {
		if script, err := isScript(near); err == nil && !script {
			return filepath.Clean(near), nil
		}
	}
	return "", fmt.Errorf("deno at %s is a script, and the binary it stands for was not found near it", path)
}

func isScript(path string) (bool, error) {
	f, err := os.Open(path) //nolint:gosec // the operator's own choice of Deno
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 2)
	if _, err := io.ReadFull(f, head); err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	return string(head) == "#!", nil
}

// platform is the name of npm's package with the binary for this machine.
func platform() string {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	if runtime.GOOS == "linux" {
		return "linux-" + arch + "-glibc"
	}
	return runtime.GOOS + "-" + arch
}
