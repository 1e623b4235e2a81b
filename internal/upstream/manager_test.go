package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pml-run/pml/internal/config"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/supervise"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/upstream/upstreamtest"
)

func TestMain(m *testing.M) {
	upstreamtest.Main()
	if os.Getenv(sdkVar) != "" {
		serveModern()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == supervise.WatchdogArg {
		supervise.RunWatchdog(os.Stdin)
		return
	}
	goleak.VerifyTestMain(m)
}

// scripted is the entry of a scripted server with the given manners.
func scripted(modes ...string) config.Server {
	env := map[string]config.Secret{}
	for k, v := range upstreamtest.Environ(modes...) {
		env[k] = config.Secret(v)
	}
	return config.Server{Command: os.Args[0], Env: env}
}

// start starts a manager with one server "s" and waits until it is ready.
func start(t *testing.T, c config.Server, more ...func(*Options)) *Manager {
	t.Helper()
	m := launch(t, map[string]config.Server{"s": c}, more...)
	await(t, m, "s", StateReady)
	return m
}

// launch starts a manager; it is stopped at the end of the test.
func launch(t *testing.T, servers map[string]config.Server, more ...func(*Options)) *Manager {
	t.Helper()
	o := Options{Servers: servers, Version: "test"}
	for _, f := range more {
		f(&o)
	}
	m := New(o)
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	return m
}

// await waits for a state of a server, on the signal that the link itself gives.
func await(t *testing.T, m *Manager, server, state string) State {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m.mu.Lock()
	l := m.links[server]
	m.mu.Unlock()
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		if s := l.describe(); s.State == state {
			return s
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("server %s did not become %s: %+v", server, state, l.describe())
		}
	}
}

func call(t *testing.T, m *Manager, id tool.ID, args string) (string, error) {
	t.Helper()
	raw, err := m.Call(t.Context(), id, json.RawMessage(args), nil)
	return string(raw), err
}

func wantFault(t *testing.T, err error, code fault.Code) *fault.Error {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Fatalf("error %v, want code %s", err, code)
	}
	f := &fault.Error{}
	ok := errors.As(err, &f)
	if !ok {
		t.Fatalf("%T is no *fault.Error", err)
	}
	return f
}

func TestCallRealServer(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := upstreamtest.NPM(t, "@modelcontextprotocol/server-filesystem")["@modelcontextprotocol/server-filesystem"]
	m := start(t, config.Server{Command: cmd.Path, Args: append(cmd.Args, dir)})
	raw, err := call(t, m, "s:read_text_file", `{"path":"`+filepath.Join(dir, "a.txt")+`"}`)
	if err != nil {
		t.Fatal(err)
	}
	v, err := tool.Unwrap("s:read_text_file", json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	if string(v.JSON) != `{"content":"hello"}` {
		t.Errorf("value %s", v.JSON)
	}
	if got := len(m.Catalog().Tools()); got < 10 {
		t.Errorf("%d tools", got)
	}
}
