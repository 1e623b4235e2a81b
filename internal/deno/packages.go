package deno

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pml-run/pml/internal/disk"
	"github.com/pml-run/pml/internal/fault"
)

// Packages are npm packages that a deno.json names and a deno.lock pins.
type Packages struct {
	What         string // for messages, as in "fetch ..."
	Config, Lock []byte
	Code         fault.Code    // of what cannot be fetched
	Without      string        // what a person can do without them, for the hint; "" is nothing
	Timeout      time.Duration // bounds the download
}

// Install downloads the packages and makes the folder target of them, unless it is
// there. Deno checks them against the lock; assemble puts what is kept of a folder
// with node_modules into another, which appears as target whole or not at all. The
// download inherits the environment, where a proxy, certificates and another npm
// registry (NPM_CONFIG_REGISTRY) may be set.
func (p Packages) Install(ctx context.Context, deno, target string, assemble func(from, to string) error) error {
	if exists(target) {
		return nil
	}
	dir := filepath.Dir(target)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	work, err := os.MkdirTemp(dir, ".install-")
	if err != nil {
		return err
	}
	out := filepath.Join(work, "out")
	err = p.fetch(ctx, deno, work)
	if err == nil {
		err = assemble(work, out)
	}
	if err == nil {
		err = disk.SyncTree(out)
	}
	if err == nil {
		err = errors.Join(os.Rename(out, target), disk.Sync(dir))
		if err != nil && exists(target) {
			err = nil // another process was faster
		}
	}
	return errors.Join(err, os.RemoveAll(work))
}

// fetch lets Deno download the packages into work and check them against the lock.
func (p Packages) fetch(ctx context.Context, deno, work string) error {
	for name, data := range map[string][]byte{"deno.json": p.Config, "deno.lock": p.Lock} {
		if err := os.WriteFile(filepath.Join(work, name), data, 0o600); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
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
		return fault.New(p.Code, "fetch %s: %v", p.What, context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return fault.New(p.Code, "cannot run Deno at %q: %v", deno, err).WithHint("install Deno, or set its path in the configuration")
	default:
		return fault.New(p.Code, "fetch %s: %v\n%s", p.What, err, strings.TrimSpace(said.String())).WithHint("%s", p.hint())
	}
}

func (p Packages) hint() string {
	const hint = "the npm registry must be reachable once; behind a proxy set HTTPS_PROXY, for a mirror NPM_CONFIG_REGISTRY"
	if p.Without == "" {
		return hint
	}
	return hint + "; " + p.Without
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
