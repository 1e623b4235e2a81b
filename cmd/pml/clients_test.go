package main

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// program is the one that every client runs: a loop, calls at once, a caught tool
// error, and a TypeScript generic, over two real servers.
const program = `
interface Note { name: string; text: string }
const pick = <T, K extends keyof T>(items: T[], key: K): T[K][] => items.map((i) => i[key]);
const names: string[] = args.names;
const notes: Note[] = await Promise.all(names.map(async (name) => {
  const { content } = await mcp.filesystem.read_text_file({ path: args.dir + "/" + name });
  return { name, text: content.trim() };
}));
let missing = "";
try {
  await mcp.filesystem.read_text_file({ path: args.dir + "/none.txt" });
} catch (e) {
  missing = e.name;
}
for (const note of notes) {
  await mcp.memory.create_entities({ entities: [{ name: note.name, entityType: "note", observations: [note.text] }] });
}
const found: any = await mcp.memory.search_nodes({ query: "beta" });
progress(1, 1, "done");
console.log("read", notes.length, "notes");
return { texts: pick(notes, "text"), missing, found: found.entities.map((e: { name: string }) => e.name) };
`

// clientJob is what scripts/test-clients/call.mjs is told.
type clientJob struct {
	SDK     string         `json:"sdk"`
	Era     string         `json:"era"`
	Modules string         `json:"modules"`
	Stdio   map[string]any `json:"stdio,omitempty"`
	HTTP    string         `json:"http,omitempty"`
	Calls   []clientCall   `json:"calls"`
	// Persons are the answers of the person who is asked, in turn; nil: the client
	// cannot ask.
	Persons []map[string]any `json:"persons,omitempty"`
}

type clientCall struct {
	Name      string `json:"name"`
	Arguments any    `json:"arguments"`
}

// clientReport is what it prints.
type clientReport struct {
	Protocol string   `json:"protocol"`
	Tools    []string `json:"tools"`
	Progress int      `json:"progress"`
	Asked    []string `json:"asked"`
	Answers  []struct {
		IsError           bool            `json:"isError"`
		StructuredContent json.RawMessage `json:"structuredContent"`
		Content           []struct{ Text string }
	} `json:"answers"`
}

// String shows what a model would have seen.
func (r clientReport) String() string {
	var b strings.Builder
	for _, a := range r.Answers {
		for _, c := range a.Content {
			b.WriteString(c.Text + "\n")
		}
	}
	return b.String()
}

var installClients = sync.OnceValues(func() (string, error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, ".tools", "clients")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	pinned, err := os.ReadFile(filepath.Join(root, "scripts", "test-clients", "package.json"))
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), pinned, 0o600); err != nil {
		return "", err
	}
	cmd := exec.Command("npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--prefer-offline")
	cmd.Stderr = os.Stderr
	return dir, cmd.Run()
})

// runClient drives PML with a real client library and returns what it saw.
func runClient(t *testing.T, job clientJob) clientReport {
	t.Helper()
	modules, err := installClients()
	if err != nil {
		t.Fatalf("install the test clients with npm: %v", err)
	}
	job.Modules = modules
	b, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(repository(t), "scripts", "test-clients", "call.mjs"), string(b))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("client: %v\n%s", err, stderr.String())
	}
	var report clientReport
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("client printed %q: %v", out, err)
	}
	return report
}

func (f folder) executeCall() clientCall {
	return clientCall{Name: "pml_execute", Arguments: map[string]any{
		"intent": "remember the notes", "implementation": map[string]string{"type": "code", "code": program},
		"args": map[string]any{"dir": f.files, "names": []string{"a.txt", "b.txt", "c.txt"}},
	}}
}

func (f folder) check(t *testing.T, r clientReport, protocol string) {
	t.Helper()
	if r.Protocol != protocol && r.Protocol != "" { // the old library does not tell over stdio
		t.Errorf("negotiated %q, want %q", r.Protocol, protocol)
	}
	if len(r.Tools) != 3 {
		t.Errorf("listed tools %v", r.Tools)
	}
	if len(r.Answers) != 1 || r.Answers[0].IsError {
		t.Fatalf("answers: %s", r)
	}
	var answer struct {
		Status string
		Result struct {
			Texts   []string
			Missing string
			Found   []string
		}
		Logs         []string
		ToolFailures []struct{ Tool string } `json:"tool_failures"`
	}
	if err := json.Unmarshal(r.Answers[0].StructuredContent, &answer); err != nil {
		t.Fatal(err)
	}
	got := answer.Result
	if answer.Status != "success" || strings.Join(got.Texts, " ") != "alpha beta gamma" || got.Missing != "ToolError" ||
		strings.Join(got.Found, " ") != "b.txt" || len(answer.Logs) != 1 || len(answer.ToolFailures) != 1 {
		t.Errorf("answer: %s", r.Answers[0].StructuredContent)
	}
}

// eras are the client libraries and protocol eras that are driven.
var eras = map[string]struct{ sdk, era, protocol string }{
	"sdk 1.x":        {"v1", "legacy", "2025-11-25"},
	"client 2.x old": {"v2", "legacy", "2025-11-25"},
	"client 2.x new": {"v2", "modern", "2026-07-28"},
}

func TestRealClientsOverStdio(t *testing.T) {
	t.Parallel()
	for name, c := range eras {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t)
			env := map[string]string{}
			for _, kv := range environment(t, f.home) {
				k, v, _ := strings.Cut(kv, "=")
				env[k] = v
			}
			job := clientJob{SDK: c.sdk, Era: c.era, Calls: []clientCall{f.executeCall()}}
			job.Stdio = map[string]any{"command": os.Args[0], "args": []string{"serve", "--config", f.config}, "env": env}
			f.check(t, runClient(t, job), c.protocol)
		})
	}
}

func TestRealClientsOverHTTP(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	url := f.serveHTTP(t)
	for name, c := range eras {
		t.Run(name, func(t *testing.T) {
			f.check(t, runClient(t, clientJob{SDK: c.sdk, Era: c.era, HTTP: url, Calls: []clientCall{f.executeCall()}}), c.protocol)
		})
	}
}

// gateway is a running pml serve.
type gateway struct {
	cmd *exec.Cmd
	url string
}

// serveHTTP starts pml serve --http for the test and returns its MCP address.
func (f folder) serveHTTP(t *testing.T) string {
	t.Helper()
	g := f.start(t)
	t.Cleanup(func() {
		_ = g.cmd.Process.Signal(os.Interrupt)
		if err := g.cmd.Wait(); err != nil {
			t.Errorf("pml serve: %v", err)
		}
	})
	return g.url
}

// start starts pml serve --http and waits until it is healthy.
func (f folder) start(t *testing.T) gateway {
	t.Helper()
	address := freeAddress(t)
	cmd := exec.Command(os.Args[0], "serve", "--http", address, "--config", f.config, "--log-level", "info")
	cmd.Env, cmd.Dir = environment(t, f.home), f.root
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	go func() { // ends with the process
		lines := bufio.NewScanner(stderr)
		once := sync.OnceFunc(func() { close(ready) })
		for lines.Scan() {
			if strings.Contains(lines.Text(), `"msg":"serving"`) {
				once()
			}
			t.Log(lines.Text())
		}
	}()
	select {
	case <-ready:
	case <-time.After(2 * time.Minute):
		t.Fatal("pml serve did not get ready")
	}
	return gateway{cmd: cmd, url: "http://" + address + "/mcp"}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
