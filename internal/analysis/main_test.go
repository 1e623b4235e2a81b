package analysis

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/sandbox/jail"
)

func TestMain(m *testing.M) {
	jail.MaybeExec()
	goleak.VerifyTestMain(m)
}

// denoPath finds the Deno to test with.
func denoPath(tb testing.TB) string {
	tb.Helper()
	if path := os.Getenv("PML_DENO"); path != "" {
		return path
	}
	for _, pattern := range []string{"../../.tools/node_modules/@deno/*/deno", "../../.tools/runtime/node_modules/@deno/*/deno"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			path, err := filepath.Abs(found[0])
			if err != nil {
				tb.Fatal(err)
			}
			return path
		}
	}
	path, err := exec.LookPath("deno")
	if err != nil {
		tb.Fatal("this test needs Deno: run 'make setup' or set PML_DENO")
	}
	return path
}

// shared is the pool of all tests that run programs; it lives as long as they do.
var shared struct {
	mu    sync.Mutex
	pool  *sandbox.Pool
	users int
}

func sharedPool(tb testing.TB) *sandbox.Pool {
	tb.Helper()
	if testing.Short() {
		tb.Skip("runs programs in Deno")
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.pool == nil {
		p, err := sandbox.New(sandbox.Options{Deno: denoPath(tb), Size: 4})
		if err != nil {
			tb.Fatal(err)
		}
		if err := p.Start(context.Background()); err != nil {
			tb.Fatal(err)
		}
		shared.pool = p
	}
	shared.users++
	tb.Cleanup(func() {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		if shared.users--; shared.users == 0 {
			shared.pool.Stop()
			shared.pool = nil
		}
	})
	return shared.pool
}
