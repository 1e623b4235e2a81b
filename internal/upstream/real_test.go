package upstream

import (
	"bufio"
	"encoding/json"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pml-run/pml/internal/config"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/upstream/upstreamtest"
)

const everything = "@modelcontextprotocol/server-everything"

func TestEverythingOverStdio(t *testing.T) {
	t.Parallel()
	cmd := upstreamtest.NPM(t, everything)[everything]
	m := start(t, config.Server{Command: cmd.Path, Args: append(cmd.Args, "stdio")}, func(o *Options) { o.Roots = []string{t.TempDir()} })
	exercise(t, m)
}

func TestEverythingOverHTTP(t *testing.T) {
	t.Parallel()
	cmd := upstreamtest.NPM(t, everything)[everything]
	port := freePort(t)
	server := exec.CommandContext(t.Context(), cmd.Path, append(cmd.Args, "streamableHttp")...)
	server.Env = []string{"PORT=" + strconv.Itoa(port)}
	out, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "listening") {
			break
		}
	}
	m := start(t, config.Server{URL: "http://127.0.0.1:" + strconv.Itoa(port) + "/mcp"})
	exercise(t, m)
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// exercise calls what server-everything is there for.
func exercise(t *testing.T, m *Manager) {
	t.Helper()
	raw, err := call(t, m, "s:echo", `{"message":"hi"}`)
	if err != nil || !strings.Contains(raw, "hi") {
		t.Fatalf("%s, %v", raw, err)
	}
	raw, err = call(t, m, "s:get-tiny-image", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	v, err := tool.Unwrap("s:get-tiny-image", json.RawMessage(raw))
	if err != nil || len(v.Blobs) != 1 || v.Blobs[0].MIMEType != "image/png" {
		t.Errorf("%s, %d blobs, %v", v.JSON, len(v.Blobs), err)
	}
	steps := 0
	if _, err := m.Call(t.Context(), "s:trigger-long-running-operation", json.RawMessage(`{"duration":0.2,"steps":4}`), func(_, _ float64, _ string) { steps++ }); err != nil || steps == 0 {
		t.Errorf("%d steps, %v", steps, err)
	}
	if tl, err := m.Catalog().Resolve("s", "getTinyImage"); err != nil || tl.ID != "s:get-tiny-image" {
		t.Errorf("%s, %v", tl.ID, err)
	}
}

func TestMemoryServer(t *testing.T) {
	t.Parallel()
	const name = "@modelcontextprotocol/server-memory"
	cmd := upstreamtest.NPM(t, name)[name]
	m := start(t, config.Server{Command: cmd.Path, Args: cmd.Args, Env: map[string]config.Secret{"MEMORY_FILE_PATH": config.Secret(filepath.Join(t.TempDir(), "m.json"))}})
	if _, err := call(t, m, "s:create_entities", `{"entities":[{"name":"a","entityType":"t","observations":["o"]}]}`); err != nil {
		t.Fatal(err)
	}
	raw, err := call(t, m, "s:read_graph", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	v, err := tool.Unwrap("s:read_graph", json.RawMessage(raw))
	if err != nil || !strings.Contains(string(v.JSON), `"name":"a"`) {
		t.Errorf("%s, %v", v.JSON, err)
	}
}
