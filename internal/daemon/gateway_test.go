package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/httpapi"
	"github.com/pml-run/pml/internal/upstream"
)

func TestOneGatewayOwnsAFolder(t *testing.T) {
	g := newGateway(t)
	second := New(g.options)
	err := second.Start(t.Context())
	owned, ok := errors.AsType[*OwnedError](err)
	if !ok || owned.PID != os.Getpid() || owned.Socket != g.Socket() {
		t.Fatalf("got %v", err)
	}
	second.Stop() // without effect on the first
	client := httpapi.NewClient(owned.Socket)
	defer client.Close()
	if err := client.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	g.Stop()
	third := New(g.options)
	if err := third.Start(t.Context()); err != nil {
		t.Errorf("the folder was not given up: %v", err)
	}
	third.Stop()
	third.Stop()
}

func TestAPIReportsRunsAndFaults(t *testing.T) {
	g := newGateway(t)
	client := httpapi.NewClient(g.Socket())
	defer client.Close()
	var a struct{ Status, WorkflowID string }
	err := client.CallTool(t.Context(), "pml_execute", program(`console.log("x"); return 5`), &a)
	if err != nil || a.Status != "success" {
		t.Fatalf("got %+v, %v", a, err)
	}
	runs, err := client.Runs(t.Context(), httpapi.RunFilter{Limit: 5})
	if err != nil || len(runs) != 1 || runs[0].Intent != "benchmark" {
		t.Fatalf("got %+v, %v", runs, err)
	}
	tr, err := client.Trace(t.Context(), runs[0].ID.String())
	if err != nil || !tr.Success || len(tr.Run.Logs) != 1 || tr.SandboxLevel == "" {
		t.Errorf("got %+v, %v", tr, err)
	}
	for _, c := range []struct {
		want fault.Code
		got  error
	}{
		{fault.NotFound, errOnly(client.Trace(t.Context(), "01890000-0000-7000-8000-000000000000"))},
		{fault.InvalidInput, errOnly(client.Trace(t.Context(), "nonsense"))},
		{fault.NotFound, client.CallTool(t.Context(), "pml_frobnicate", nil, nil)},
	} {
		if fault.CodeOf(c.got) != c.want {
			t.Errorf("want %s, got %v", c.want, c.got)
		}
	}
}

func errOnly[T any](_ T, err error) error { return err }

func TestBrokenConfigurationIsSaidToEveryCaller(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pml.json")
	writeFile(t, path, `{"sandbox": {"jit": 5}}`)
	tools, err := filepath.Abs(filepath.Join("..", "..", ".tools"))
	if err != nil {
		t.Fatal(err)
	}
	g := New(Options{
		Home: t.TempDir(), Config: path, ToolDirs: []string{tools}, Binary: os.Args[0],
		Logger: slog.New(slog.DiscardHandler), Getenv: os.Getenv,
	})
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer g.Stop()
	if err := g.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "pml.json:1:") {
		t.Errorf("got %v", err)
	}
	a := g.Execute(t.Context(), program("return 1"))
	if a.Error == nil || a.Error.Code != fault.Unavailable || !strings.Contains(a.Error.Message, "pml.json:1:") {
		t.Errorf("got %+v", a.Error)
	}
}

func TestChangedConfigurationIsAppliedAndABrokenOneIsNot(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pml.json")
	writeFile(t, path, `{"mcpServers": {"one": {"command": "absent-program"}}}`)
	base := newGateway(t).options
	base.Home, base.Config = t.TempDir(), path
	g := New(base)
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer g.Stop()
	if err := g.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectServers(t, g, "one")
	writeFile(t, path, `{"mcpServers": {"one": {"command": "absent-program"}, "two": {"command": "absent-program"}}}`)
	expectServers(t, g, "one two")
	writeFile(t, path, `{"mcpServers": {`)
	await(t, "the doctor's word on the broken file", func() bool {
		b, err := json.Marshal(first(g.Doctor(t.Context())))
		return err == nil && strings.Contains(string(b), "not in force")
	})
	expectServers(t, g, "one two")
}

func first[T any](v T, _ error) T { return v }

func expectServers(t *testing.T, g *Gateway, want string) {
	t.Helper()
	await(t, "servers "+want, func() bool {
		v, err := g.Servers(t.Context())
		states, ok := v.([]upstream.State)
		var names []string
		for _, s := range states {
			names = append(names, s.Name)
		}
		return err == nil && ok && strings.Join(names, " ") == want
	})
}

// await polls what another process or goroutine brings about.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never came: %s", what)
		}
	}
}

func TestTokenGuardsEverythingButHealth(t *testing.T) {
	h := requireToken("secret", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for name, c := range map[string]struct {
		path, header string
		want         int
	}{
		"no token":     {"/mcp", "", http.StatusUnauthorized},
		"wrong token":  {"/mcp", "Bearer secre", http.StatusUnauthorized},
		"other scheme": {"/mcp", "Basic secret", http.StatusUnauthorized},
		"right token":  {"/mcp", "Bearer secret", http.StatusTeapot},
		"metrics":      {"/metrics", "", http.StatusUnauthorized},
		"health":       {"/healthz", "", http.StatusTeapot},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, c.path, http.NoBody)
			r.Header.Set("Authorization", c.header)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("got %d", w.Code)
			}
		})
	}
}

func TestOtherMachinesNeedAToken(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:80": true, "localhost:80": true, "[::1]:80": true,
		":80": false, "0.0.0.0:80": false, "10.1.2.3:80": false, "example.com:80": false, "nonsense": false,
	} {
		if got := loopback(address); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
	g := New(Options{HTTP: ":0", Getenv: func(string) string { return "" }, Logger: slog.New(slog.DiscardHandler)})
	if _, err := g.publicHandler(); fault.CodeOf(err) != fault.InvalidInput {
		t.Errorf("got %v", err)
	}
}

func TestSocketPathFitsAnAddress(t *testing.T) {
	if got := socketPath("/home/me/pml"); got != "/home/me/pml/gateway.sock" {
		t.Errorf("got %s", got)
	}
	long := "/" + strings.Repeat("x", 200)
	if got := socketPath(long); len(got) > maxSocketPath || got != socketPath(long) || got == socketPath(long+"y") {
		t.Errorf("got %s", got)
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestApprovalsNeedAToken: without a token the public address has no door for them.
func TestApprovalsNeedAToken(t *testing.T) {
	g := newGateway(t)
	for token, want := range map[string]int{"": http.StatusNotFound, "secret": http.StatusOK} {
		g.options.Getenv = func(string) string { return token }
		g.options.HTTP = "127.0.0.1:0"
		h, err := g.publicHandler()
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/v1/approvals", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("with the token %q: %d, want %d", token, w.Code, want)
		}
	}
}
