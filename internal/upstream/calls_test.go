package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pml-run/pml/internal/config"
	"github.com/pml-run/pml/internal/fault"
)

func TestTimeoutCancelsAtTheServer(t *testing.T) {
	t.Parallel()
	c := scripted()
	c.TimeoutMS = 100
	m := start(t, c)
	_, err := call(t, m, "s:hang", `{}`)
	if f := wantFault(t, err, fault.UpstreamTimeout); !strings.Contains(f.Message, "100ms") {
		t.Error(f.Message)
	}
	// It answers when the cancellation has reached it.
	for range 100 {
		if _, err = call(t, m, "s:wait_cancelled", `{}`); err == nil {
			return
		}
	}
	t.Errorf("no cancellation: %v", err)
}

func TestCallerCancels(t *testing.T) {
	t.Parallel()
	m := start(t, scripted())
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	res := make(chan error, 1)
	go func() { _, err := m.Call(ctx, "s:hang", nil, nil); res <- err }()
	inFlight(t, m, 1)
	cancel(cause)
	if err := <-res; !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	if _, err := call(t, m, "s:wait_cancelled", `{}`); err != nil {
		t.Error(err)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	m := start(t, scripted())
	var got []string
	raw, err := m.Call(t.Context(), "s:progress", json.RawMessage(`{}`), func(done, total float64, msg string) {
		if total == 2 {
			got = append(got, msg)
		}
	})
	if err != nil || strings.Join(got, ",") != "step 1,step 2" {
		t.Errorf("%v, %s, %v", got, raw, err)
	}
}

func TestConcurrencyLimit(t *testing.T) {
	t.Parallel()
	c := scripted()
	c.MaxConcurrency = 1
	m := start(t, c)
	ctx, cancel := context.WithCancelCause(t.Context())
	first := make(chan error, 1)
	go func() { _, err := m.Call(ctx, "s:hang", nil, nil); first <- err }()
	inFlight(t, m, 1)
	waiting, stop := context.WithCancel(t.Context())
	second := make(chan error, 1)
	go func() { _, err := m.Call(waiting, "s:echo", nil, nil); second <- err }()
	stop() // it cannot have been sent: there is no slot for it
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	cancel(errors.New("enough"))
	if err := <-first; err == nil {
		t.Error("no error")
	}
	if _, err := call(t, m, "s:echo", `{}`); err != nil {
		t.Error(err)
	}
}

// inFlight waits until the transport of "s" expects n results: so many calls were sent.
func inFlight(t *testing.T, m *Manager, n int) {
	t.Helper()
	s := session1(m)
	for {
		s.calls.mu.Lock()
		have := len(s.calls.byID)
		s.calls.mu.Unlock()
		if have >= n {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal("no call was sent")
		}
		runtime.Gosched()
	}
}

func TestUnknownTools(t *testing.T) {
	t.Parallel()
	off := scripted()
	off.Disabled = true
	m := launch(t, map[string]config.Server{"s": scripted(), "off": off, "bad": {Command: "x", Problem: "the variable K is not set"}})
	await(t, m, "s", StateReady)
	_, err := call(t, m, "s:ecko", `{}`)
	if f := wantFault(t, err, fault.UnknownTool); !strings.Contains(f.Hint, `"echo"`) {
		t.Error(f.Hint)
	}
	_, err = call(t, m, "z:echo", `{}`)
	if f := wantFault(t, err, fault.UnknownTool); !strings.Contains(f.Hint, "s:echo") {
		t.Error(f.Hint)
	}
	_, err = call(t, m, "off:echo", `{}`)
	wantFault(t, err, fault.UpstreamUnavailable)
	_, err = call(t, m, "bad:echo", `{}`)
	if f := wantFault(t, err, fault.UpstreamUnavailable); !strings.Contains(f.Message, "K is not set") {
		t.Error(f.Message)
	}
}

func TestLazyServer(t *testing.T) {
	t.Parallel()
	c := scripted()
	c.Start = config.StartLazy
	m := launch(t, map[string]config.Server{"s": c})
	if s := m.States()[0]; s.State != StateStopped {
		t.Errorf("%+v", s)
	}
	if _, err := call(t, m, "s:echo", `{}`); err != nil {
		t.Error(err)
	}
}

func TestStartFailuresAreExplained(t *testing.T) {
	t.Parallel()
	m := launch(t, map[string]config.Server{
		"missing": {Command: "no-such-command-here"},
		"path":    {Command: "/no/such/program"},
		"folder":  {Command: "sh", Cwd: "/no/such/folder"},
		"exits":   scripted("exit"),
		"chatty":  {Command: "sh", Args: []string{"-c", "echo E404 not in the registry >&2; exit 1"}},
	})
	for name, wantPart := range map[string]string{
		"missing": `"no-such-command-here" was not found on PATH`,
		"path":    "no program /no/such/program",
		"folder":  "/no/such/folder is no folder",
		"exits":   "ended before the handshake (exit status 3)",
		"chatty":  "the package was not found",
	} {
		s := await(t, m, name, StateFailed)
		if !strings.Contains(s.Error+s.Hint, wantPart) {
			t.Errorf("%s: %q, hint %q", name, s.Error, s.Hint)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	m := start(t, scripted(), func(o *Options) {
		o.Environ = []string{"PATH=/bin", "HOME=/h", "SECRET=x", "CLAUDECODE=1", "https_proxy=p", "npm_config_registry=r", "npm_config__authToken=t", "NODE_EXTRA_CA_CERTS=c", "AWS_SECRET_ACCESS_KEY=k"}
	})
	raw, err := call(t, m, "s:env", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []string{"PATH=/bin", "HOME=/h", "https_proxy=p", "npm_config_registry=r", "NODE_EXTRA_CA_CERTS=c"} {
		if !strings.Contains(raw, wanted) {
			t.Errorf("%s is missing in %s", wanted, raw)
		}
	}
	for _, unwanted := range []string{"SECRET", "CLAUDECODE", "authToken"} {
		if strings.Contains(raw, unwanted) {
			t.Errorf("%s is in %s", unwanted, raw)
		}
	}
}

func TestApplyRestartsOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	servers := map[string]config.Server{"a": scripted(), "b": scripted(), "c": scripted()}
	m := launch(t, servers)
	pids := map[string]int{}
	for name := range servers {
		await(t, m, name, StateReady)
		pids[name] = pid(m, name)
	}
	b := scripted()
	b.TimeoutMS = 1234
	m.Apply(map[string]config.Server{"a": scripted(), "b": b, "d": scripted()})
	for _, name := range []string{"a", "b", "d"} {
		await(t, m, name, StateReady)
	}
	if pid(m, "a") != pids["a"] || pid(m, "b") == pids["b"] {
		t.Error("a must stay and b must restart")
	}
	if got := m.Catalog().Servers(); strings.Join(got, "") != "abd" {
		t.Errorf("servers %v", got)
	}
}

func pid(m *Manager, name string) int {
	m.mu.Lock()
	l := m.links[name]
	m.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session.stdio.conn.process.PID()
}

func TestStopFailsCallsInFlight(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	m := start(t, scripted(), func(o *Options) { o.Registerer = reg })
	res := make(chan error, 1)
	go func() { _, err := m.Call(t.Context(), "s:hang", nil, nil); res <- err }()
	inFlight(t, m, 1)
	m.Stop()
	m.Stop()
	if err := <-res; fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("error %v", err)
	}
	if _, err := call(t, m, "s:echo", `{}`); err == nil {
		t.Error("no error after Stop")
	}
	if families, err := reg.Gather(); err != nil || len(families) == 0 {
		t.Errorf("metrics: %v", err)
	}
	New(Options{}).Stop() // safe without Start
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &breaker{now: time.Now}
		for range breakerFailures {
			if !b.allow() {
				t.Fatal("closed too early")
			}
			b.failure()
		}
		if b.allow() || b.rest() != breakerRest {
			t.Error("must be open")
		}
		<-time.After(breakerRest)
		if !b.allow() || b.allow() {
			t.Error("one call may try")
		}
		b.failure()
		if b.allow() {
			t.Error("must be open again")
		}
		<-time.After(breakerRest)
		if !b.allow() {
			t.Error("one call may try again")
		}
		b.success()
		if !b.allow() || b.rest() != 0 {
			t.Error("must be closed")
		}
	})
}

func TestBreakerOpensOnTimeouts(t *testing.T) {
	t.Parallel()
	c := scripted()
	c.TimeoutMS = 20
	m := start(t, c)
	for range breakerFailures {
		_, err := call(t, m, "s:hang", `{}`)
		wantFault(t, err, fault.UpstreamTimeout)
	}
	_, err := call(t, m, "s:echo", `{}`)
	if f := wantFault(t, err, fault.UpstreamUnavailable); !strings.Contains(f.Message, "rests") {
		t.Error(f.Message)
	}
	if s := m.States()[0]; s.State != StateOpenBreaker {
		t.Errorf("%+v", s)
	}
}
