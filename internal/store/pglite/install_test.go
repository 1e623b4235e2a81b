package pglite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/store/pglite"
)

// TestInstallIsIdempotent: packages that are there need neither Deno nor a network.
func TestInstallIsIdempotent(t *testing.T) {
	t.Parallel()
	opts, err := options(t.TempDir())
	must(t, err)
	must(t, pglite.Install(t.Context(), "/no/such/deno", opts.RuntimeDir))
	if !pglite.Installed(opts.RuntimeDir) || pglite.Installed(t.TempDir()) {
		t.Error("Installed is wrong")
	}
}

func TestInstallFails(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "deno")
	must(t, os.WriteFile(broken, []byte("#!/bin/sh\necho no network >&2\nexit 1\n"), 0o700))
	lazy := filepath.Join(t.TempDir(), "deno")
	must(t, os.WriteFile(lazy, []byte("#!/bin/sh\nexit 0\n"), 0o700))
	for name, deno := range map[string]string{"no deno": "/no/such/deno", "no network": broken} {
		dir := t.TempDir()
		err := pglite.Install(t.Context(), deno, dir)
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != fault.StorageUnavailable || f.Hint == "" {
			t.Errorf("%s: %v, want a fault with a hint", name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
	if err := pglite.Install(t.Context(), lazy, t.TempDir()); err == nil {
		t.Error("an installation without files succeeded")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pglite.Install(ctx, broken, t.TempDir()); err == nil {
		t.Error("an installation that was called off succeeded")
	}
}
