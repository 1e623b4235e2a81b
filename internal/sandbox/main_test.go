package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/pml-run/pml/internal/deno/denotest"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox/jail"
)

func TestMain(m *testing.M) {
	jail.MaybeExec()
	maybeFakeWorker()
	maybeOrphanGateway()
	goleak.VerifyTestMain(m)
}

// newPool starts a pool that ends with the test.
func newPool(tb testing.TB, o Options) *Pool {
	tb.Helper()
	if o.Deno == "" {
		o.Deno = denotest.Path(tb)
	}
	p, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Stop)
	if err := p.Start(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return p
}

// shared is the pool of the tests that need nothing special of it. It lives as long
// as the tests that use it.
var shared struct {
	mu    sync.Mutex
	pool  *Pool
	users int
}

func sharedPool(tb testing.TB) *Pool {
	tb.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.pool == nil {
		p, err := New(Options{Deno: denotest.Path(tb), Size: 4})
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

// fakeHost answers calls by a function; nil answers with the arguments.
type fakeHost struct {
	call func(ctx context.Context, c Call) (json.RawMessage, error)

	mu      sync.Mutex
	calls   []Call
	reports []string
	logs    []string
}

func (h *fakeHost) Call(ctx context.Context, c Call) (Reply, error) {
	h.mu.Lock()
	h.calls = append(h.calls, c)
	h.mu.Unlock()
	if h.call == nil {
		return Reply{Value: c.Args}, nil
	}
	value, err := h.call(ctx, c)
	return Reply{Value: value}, err
}

func (h *fakeHost) Log(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.logs = append(h.logs, text)
}

func (h *fakeHost) Progress(done, total float64, message string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reports = append(h.reports, fmt.Sprint(done, "/", total, " ", message))
}

// run runs source in the shared pool with a host that answers with the arguments.
func run(t *testing.T, source string) (Outcome, error) {
	t.Helper()
	return sharedPool(t).Run(t.Context(), Program{Source: source}, &fakeHost{})
}

// wantResult fails the test unless the run returned this JSON.
func wantResult(t *testing.T, out Outcome, err error, want string) {
	t.Helper()
	if err != nil {
		t.Fatalf("run: %v (hint %q, logs %q)", err, hintOf(err), out.Logs)
	}
	if string(out.Result) != want {
		t.Fatalf("result %s, want %s", out.Result, want)
	}
}

// wantFault fails the test unless err has this code, and returns it.
func wantFault(t *testing.T, err error, code fault.Code) *fault.Error {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		t.Fatalf("error %v is no fault, want %s", err, code)
	}
	if f.Code != code {
		t.Fatalf("code %s (%s), want %s", f.Code, f.Message, code)
	}
	if f.Hint == "" {
		t.Errorf("%v has no hint", f)
	}
	return f
}

func hintOf(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Hint
	}
	return ""
}
