package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pml-run/pml/internal/store/storetest"
	"github.com/pml-run/pml/internal/upstream/upstreamtest"
)

// remembering makes many short calls that change something and may not be repeated.
const remembering = `
for (let i = 0; i < 200; i++) {
  await mcp.memory.create_entities({ entities: [{ name: "entity-" + i, entityType: "x", observations: [] }] });
}
return "all";`

func rememberingCall() *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: "pml_execute", Arguments: map[string]any{
		"intent": "remember", "implementation": map[string]string{"type": "code", "code": remembering},
	}}
}

// begun waits until the program is in the middle of its calls.
func (f folder) begun() {
	for !contains(filepath.Join(f.root, "memory.jsonl"), `"entity-5"`) {
		<-time.After(time.Millisecond)
	}
}

// checkRemembered: each call has had its effect once.
func (f folder) checkRemembered(t *testing.T) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(f.root, "memory.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if n := strings.Count(string(b), fmt.Sprintf(`"entity-%d"`, i)); n != 1 {
			t.Errorf("entity-%d is there %d times", i, n)
		}
	}
}

// checkHandedOver: the client was told that its run goes on, and where.
func checkHandedOver(t *testing.T, r *mcp.CallToolResult, err error) (workflow string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	var a struct {
		Status, Next string
		WorkflowID   string `json:"workflow_id"`
	}
	if err := json.Unmarshal(b, &a); err != nil {
		t.Fatal(err)
	}
	if r.IsError || a.Status != "running" || a.WorkflowID == "" || !strings.Contains(a.Next, "the next one goes on") {
		t.Fatalf("answered %s", b)
	}
	return a.WorkflowID
}

// checkGoesOn: a run that was left completes at this gateway.
func (l learner) checkGoesOn(t *testing.T, workflow string) {
	t.Helper()
	o := l.call(t, map[string]any{"intent": "go on", "continue": map[string]any{"workflow_id": workflow}})
	if o.Status != "success" || string(o.Result) != `"all"` {
		t.Errorf("continued: %+v, %+v", o, o.Error)
	}
	l.checkRemembered(t)
}

// terminate ends the gateway politely.
func (g gateway) terminate(t *testing.T) {
	t.Helper()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := g.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

func TestAPoliteStopLosesNothing(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	g := f.start(t)
	session := connect(t, g.url)
	stopped := make(chan struct{})
	go func() { f.begun(); g.terminate(t); close(stopped) }()
	r, err := session.CallTool(t.Context(), rememberingCall())
	workflow := checkHandedOver(t, r, err)
	<-stopped
	learner{f, connect(t, f.serveHTTP(t))}.checkGoesOn(t, workflow)
}

// TestAnotherGatewayTakesOver: of two gateways on one database one stops, and the
// client goes on waiting at the other, which has been there before.
func TestAnotherGatewayTakesOver(t *testing.T) {
	t.Parallel()
	if os.Getenv(storetest.URLVariable) == "" {
		t.Skip("two gateways share a native Postgres only; 'make test-native' has one")
	}
	f := newFolder(t)
	second := f
	second.home = filepath.Join(f.root, "second")
	url, _ := databases.Load(f.home)
	databases.Store(second.home, url)
	g, other := f.start(t), learner{second, connect(t, second.serveHTTP(t))}
	session := connect(t, g.url)
	stopped := make(chan struct{})
	go func() { f.begun(); g.terminate(t); close(stopped) }()
	r, err := session.CallTool(t.Context(), rememberingCall())
	workflow := checkHandedOver(t, r, err)
	other.checkGoesOn(t, workflow)
	<-stopped
}

// TestAPoliteStopOnStdio: the client that owns the gateway is answered before the
// process ends.
func TestAPoliteStopOnStdio(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	cmd := f.stdio(t)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "stop-test"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { f.begun(); _ = cmd.Process.Signal(syscall.SIGTERM) }()
	r, err := session.CallTool(t.Context(), rememberingCall())
	workflow := checkHandedOver(t, r, err)
	if err := session.Close(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	learner{f, connect(t, f.serveHTTP(t))}.checkGoesOn(t, workflow)
}

// stdio is pml serve on the folder.
func (f folder) stdio(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "serve", "--config", f.config)
	cmd.Env, cmd.Dir = environment(t, f.home), f.root
	return cmd
}

// TestAClientThatLeavesLosesNothing: it closes the stdin of the gateway that it owns
// while its run goes on.
func TestAClientThatLeavesLosesNothing(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	cmd := f.stdio(t)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	call, err := json.Marshal(rememberingCall())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"stop-test","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":` + string(call) + `}`,
	} {
		if _, err := fmt.Fprintln(in, line); err != nil {
			t.Fatal(err)
		}
	}
	f.begun()
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after its client has left: %v", err)
	}
	g := f.start(t)
	g.stopLater(t)
	runs := f.settled(t)
	if len(runs) != 1 || runs[0].Status != "succeeded" {
		t.Errorf("runs: %+v", runs)
	}
	f.checkRemembered(t)
}

// TestAnInterruptedCommandCancelsItsRun: what a person stops with Ctrl-C does not go
// on by itself later.
func TestAnInterruptedCommandCancelsItsRun(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	program := filepath.Join(f.root, "remember.ts")
	if err := os.WriteFile(program, []byte(remembering), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "run", "--config", f.config, program)
	cmd.Env, cmd.Dir = environment(t, f.home), f.root
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f.begun()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the command has succeeded")
	}
	g := f.start(t)
	g.stopLater(t)
	runs := f.settled(t)
	if len(runs) != 1 || runs[0].Status != "cancelled" {
		t.Errorf("runs: %+v", runs)
	}
}

// TestPoliteStopsUnderLoad stops the gateway while several clients run programs that
// write, some of it at the same time: every run completes at the next one, each line
// is there once, and no outcome is unknown.
func TestPoliteStopsUnderLoad(t *testing.T) {
	t.Parallel()
	ledger := filepath.Join(t.TempDir(), "ledger.jsonl")
	env := upstreamtest.Environ()
	env[upstreamtest.LedgerVar] = ledger
	f := newFolderWith(t, map[string]any{"permissions": map[string]any{"default": "allow"}})
	f.addServer(t, "ledger", map[string]any{"command": os.Args[0], "env": env})
	for round := range 2 {
		g := f.start(t)
		acknowledge := runSome(t, f, g, round)
		for !contains(ledger, fmt.Sprintf(`"run":"%d-`, round)) {
			<-time.After(time.Millisecond)
		}
		g.terminate(t)
		acknowledge()
	}
	g := f.start(t)
	g.stopLater(t)
	runs := f.settled(t)
	checkLedger(t, runs, readLedger(t, ledger))
	for _, r := range runs {
		if r.Status != "succeeded" {
			t.Errorf("%s is %s: %+v", r.Intent, r.Status, r.Error)
		}
	}
	t.Logf("%d runs", len(runs))
}
