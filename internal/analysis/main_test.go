package analysis

import (
	"context"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/pml-run/pml/internal/deno/denotest"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/sandbox/jail"
)

func TestMain(m *testing.M) {
	jail.MaybeExec()
	goleak.VerifyTestMain(m)
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
		p, err := sandbox.New(sandbox.Options{Deno: denotest.Path(tb), Size: 4})
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
