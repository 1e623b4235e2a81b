package pglite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pml-run/pml"
	"github.com/pml-run/pml/internal/fault"
	program "github.com/pml-run/pml/sandbox-runtime/pglite"
)

// importMap lets the child run from plain files: with it Deno needs no npm
// resolver, no cache and no network, and can be denied all three.
const importMap = `{"imports":{
"@electric-sql/pglite":"./pglite/index.js",
"@electric-sql/pglite/nodefs":"./pglite/fs/nodefs.js",
"@electric-sql/pglite-pgvector":"./pgvector/index.js",
"crypto":"node:crypto","fs":"node:fs","fs/promises":"node:fs/promises","module":"node:module","path":"node:path",
"stream":"node:stream","stream/promises":"node:stream/promises","url":"node:url","util":"node:util","zlib":"node:zlib"}}
`

// kept lists the files of each package that the child needs, a tenth of what
// the packages hold.
var kept = []struct{ from, to string }{
	{"node_modules/@electric-sql/pglite/dist/*.js", "pglite"},
	{"node_modules/@electric-sql/pglite/dist/fs/*.js", "pglite/fs"},
	{"node_modules/@electric-sql/pglite/dist/initdb.wasm", "pglite"},
	{"node_modules/@electric-sql/pglite/dist/pglite.wasm", "pglite"},
	{"node_modules/@electric-sql/pglite/dist/pglite.data", "pglite"},
	{"node_modules/@electric-sql/pglite-pgvector/dist/index.js", "pgvector"},
	{"node_modules/@electric-sql/pglite-pgvector/dist/vector.tar.gz", "pgvector"},
}

// installTimeout bounds the download of about 20 MB.
const installTimeout = 5 * time.Minute

// Install fetches the pinned packages into a folder of dir that is named after the
// lock file, unless they are there. The lock's hashes are verified by Deno; the
// folder appears whole or not at all. It inherits the environment, where a proxy,
// certificates and another npm registry (NPM_CONFIG_REGISTRY) may be set.
func Install(ctx context.Context, deno, dir string) error {
	target := packages(dir)
	if Installed(dir) {
		return writeProgram(target)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	work, err := os.MkdirTemp(dir, ".install-")
	if err != nil {
		return err
	}
	err = fetch(ctx, deno, work)
	if err == nil {
		err = assemble(work, filepath.Join(work, "out"))
	}
	if err == nil {
		err = syncTree(filepath.Join(work, "out"))
	}
	if err == nil {
		err = os.Rename(filepath.Join(work, "out"), target)
		if err != nil && Installed(dir) {
			err = nil // another process was faster
		}
	}
	return errors.Join(err, os.RemoveAll(work))
}

// packages is the folder of dir that belongs to this binary's lock file.
func packages(dir string) string {
	h := sha256.New()
	for _, b := range [][]byte{pml.DenoConfig, pml.DenoLock, []byte(importMap)} {
		h.Write(b)
	}
	return filepath.Join(dir, hex.EncodeToString(h.Sum(nil))[:16])
}

// Installed reports whether dir has the packages of this binary.
func Installed(dir string) bool {
	_, err := os.Stat(filepath.Join(packages(dir), "map.json"))
	return err == nil
}

// fetch lets Deno download the packages into work and check them against the lock.
func fetch(ctx context.Context, deno, work string) error {
	for name, data := range map[string][]byte{"deno.json": pml.DenoConfig, "deno.lock": pml.DenoLock} {
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
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.StorageUnavailable, "cannot run Deno at %q: %v", deno, err).WithHint("install Deno, or set its path in the configuration")
	default:
		return fault.New(fault.StorageUnavailable, "fetch the embedded database's packages: %v\n%s", err, strings.TrimSpace(said.String())).
			WithHint("the npm registry must be reachable once; behind a proxy set HTTPS_PROXY, for a mirror NPM_CONFIG_REGISTRY; or set DATABASE_URL and do without")
	}
}

// assemble copies what is needed out of the downloaded packages.
func assemble(from, to string) error {
	for _, k := range kept {
		files, err := filepath.Glob(filepath.Join(from, k.from))
		if err != nil || len(files) == 0 {
			return errors.Join(fmt.Errorf("the packages hold no %s", k.from), err)
		}
		dir := filepath.Join(to, k.to)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		for _, f := range files {
			data, err := os.ReadFile(f) //nolint:gosec // below our own temporary folder
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(f)), data, 0o600); err != nil {
				return err
			}
		}
	}
	if err := writeProgram(to); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "map.json"), []byte(importMap), 0o600)
}

// programPath names the child's program after its content: binaries of several
// releases may share the packages.
func programPath(dir string) string {
	sum := sha256.Sum256(program.Program)
	return filepath.Join(dir, "pglite-"+hex.EncodeToString(sum[:])[:16]+".ts")
}

// writeProgram puts the child's program beside its packages, unless it is there.
func writeProgram(dir string) error {
	path := programPath(dir)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	f, err := os.CreateTemp(dir, ".program-")
	if err != nil {
		return err
	}
	_, err = f.Write(program.Program)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
