package jail

import (
	"context"
	"debug/elf"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// resolved matches one line of the dynamic loader's list, "libm.so.6 => /lib/… (0x…)".
var resolved = regexp.MustCompile(`(?m)(?:=>\s+|^\s*)(/\S+)\s+\(0x`)

// Libraries returns what a dynamically linked binary must be able to read in order
// to start. It asks the binary's own loader; where the loader cannot say, the usual
// library directories stand in.
func Libraries(ctx context.Context, binary string) Reads {
	r := Reads{Loader: interpreter(binary)}
	if r.Loader == "" {
		return r // a static binary
	}
	r.Files = []string{"/etc/ld.so.cache"}
	out, err := exec.CommandContext(ctx, r.Loader, "--list", binary).Output() //nolint:gosec // the loader that the kernel would run
	found := resolved.FindAllStringSubmatch(string(out), -1)
	if err != nil || len(found) == 0 {
		r.Dirs = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64"}
		return r
	}
	for _, m := range found {
		r.Files = append(r.Files, filepath.Clean(m[1]))
	}
	return r
}

// interpreter is the path of the dynamic loader in the binary's program headers.
func interpreter(binary string) string {
	f, err := elf.Open(binary)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	s := f.Section(".interp")
	if s == nil {
		return ""
	}
	b, err := s.Data()
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(b), "\x00")
}
