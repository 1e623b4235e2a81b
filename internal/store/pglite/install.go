package pglite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pml-run/pml"
	"github.com/pml-run/pml/internal/deno"
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

// Install fetches the pinned packages into a folder of dir that is named after the
// lock file, unless they are there. It takes as long as about 20 MB take.
func Install(ctx context.Context, executable, dir string) error {
	pinned := deno.Packages{
		What: "the embedded database's packages", Config: pml.DenoConfig, Lock: pml.DenoLock, Timeout: 5 * time.Minute,
		Code: fault.StorageUnavailable, Without: "or set DATABASE_URL and do without",
	}
	target := packages(dir)
	if err := pinned.Install(ctx, executable, target, assemble); err != nil {
		return err
	}
	return writeProgram(target) // another release may have fetched them
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
