package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connect opens an MCP session with a gateway.
func connect(t *testing.T, url string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "crash-test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// answer is what the tests read of pml_execute's answer.
type answer struct {
	Status     string          `json:"status"`
	WorkflowID string          `json:"workflow_id"`
	Result     json.RawMessage `json:"result"`
	Error      *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// execute runs a program; an error is the connection's.
func execute(t *testing.T, s *mcp.ClientSession, code string, options map[string]any) (answer, error) {
	t.Helper()
	var a answer
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "pml_execute", Arguments: map[string]any{
		"intent": "test", "implementation": map[string]string{"type": "code", "code": code}, "options": options,
	}})
	if err != nil {
		return a, err
	}
	b, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(b, &a)
}

// descendants lists the processes below pid, found through /proc.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	children := map[int][]int{}
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		var child, parent int
		if _, err := fmt.Sscan(filepath.Base(filepath.Dir(path)), &child); err != nil {
			continue
		}
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if parent, err = strconv.Atoi(fields[1]); err == nil {
			children[parent] = append(children[parent], child)
		}
	}
	var all []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		all = append(all, children[queue[0]]...)
		queue = append(queue, children[queue[0]]...)
	}
	return all
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

func TestKilledGatewayLeavesNoProcessAndLosesNoAcknowledgedRun(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	g := f.start(t)
	var mu sync.Mutex
	acknowledged := map[string]string{}
	var clients sync.WaitGroup
	enough := make(chan struct{})
	once := sync.OnceFunc(func() { close(enough) })
	for c := range 4 {
		session := connect(t, g.url)
		clients.Go(func() {
			for i := 0; ; i++ {
				want := fmt.Sprintf(`"%d-%d"`, c, i)
				code := fmt.Sprintf(`await mcp.memory.create_entities({entities: [{name: %s, entityType: "x", observations: []}]}); return %s`, want, want)
				a, err := execute(t, session, code, nil)
				if err != nil {
					return // killed
				}
				if a.Status != "success" {
					t.Errorf("run %s: %+v", want, a)
					return
				}
				mu.Lock()
				acknowledged[a.WorkflowID] = want
				n := len(acknowledged)
				mu.Unlock()
				if n >= 20 {
					once()
				}
			}
		})
	}
	<-enough
	family := append(descendants(t, g.cmd.Process.Pid), g.cmd.Process.Pid)
	killed := time.Now()
	if err := g.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	clients.Wait()
	_ = g.cmd.Wait() // killed
	for deadline := killed.Add(10 * time.Second); slices.ContainsFunc(family, alive) && time.Now().Before(deadline); {
		<-time.After(10 * time.Millisecond)
	}
	t.Logf("%d processes, all gone %s after the kill", len(family), time.Since(killed).Round(time.Millisecond))
	for _, pid := range family {
		if alive(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}

	again := f.start(t)
	again.stopLater(t)
	states := map[string]string{}
	for _, r := range f.settled(t) {
		states[r.ID] = r.Status
	}
	for id := range acknowledged {
		if states[id] != "succeeded" {
			t.Errorf("acknowledged run %s is %q", id, states[id])
		}
	}
}

// large asks for more than the defaults of a run, on real servers.
func TestLargeValuesAndManyCalls(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	big := strings.Repeat("0123456789abcdef", 20<<20/16)
	if err := os.WriteFile(filepath.Join(f.files, "big.txt"), []byte(big), 0o600); err != nil {
		t.Fatal(err)
	}
	f.edit(t, func(c map[string]any) {
		c["sandbox"] = map[string]any{"limits": map[string]any{"calls": 6000, "memory_mb": 512}}
	})
	session := connect(t, f.serveHTTP(t))
	for name, c := range map[string]struct{ code, want string }{
		"20 MB from a tool": {
			`const { content } = await mcp.filesystem.read_text_file({ path: "` + f.files + `/big.txt" }); return content.length`,
			strconv.Itoa(20 << 20),
		},
		"1 MB argument": {
			`const r = await mcp.everything.echo({ message: "x".repeat(1 << 20) }); return r.length`,
			strconv.Itoa(1<<20 + len("Echo: ")),
		},
		"5,000 calls": {
			`let n = 0; for (let i = 0; i < 50; i++) n += (await Promise.all(Array.from({ length: 100 }, (_, k) => mcp.everything.get_sum({ a: i, b: k })))).length; return n`,
			"5000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := execute(t, session, c.code, nil)
			if err != nil || a.Status != "success" || string(a.Result) != c.want {
				t.Errorf("got %+v, %v", a, err)
			}
		})
	}
}

// edit changes the folder's configuration.
func (f folder) edit(t *testing.T, change func(map[string]any)) {
	t.Helper()
	b, err := os.ReadFile(f.config)
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	change(c)
	if b, err = json.Marshal(c); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.config, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// databaseProcess finds the embedded database's process below the gateway.
func databaseProcess(t *testing.T, gateway int) int {
	t.Helper()
	for _, pid := range descendants(t, gateway) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(b), "pglite") {
			return pid
		}
	}
	return 0
}

func TestKilledDatabaseComesBackAndLosesNoAcknowledgedRun(t *testing.T) {
	t.Parallel()
	if isNative() {
		t.Skip("the database is not ours to kill")
	}
	f := newFolder(t)
	g := f.start(t)
	t.Cleanup(func() {
		_ = g.cmd.Process.Signal(os.Interrupt)
		_ = g.cmd.Wait()
	})
	session := connect(t, g.url)
	acknowledged := map[string]bool{}
	for round := range 3 {
		pid := databaseProcess(t, g.cmd.Process.Pid)
		if pid == 0 {
			t.Fatal("the database's process was not found")
		}
		killed := make(chan error, 1)
		for i := range 6 {
			if i == 2 {
				go func() { killed <- syscall.Kill(pid, syscall.SIGKILL) }()
			}
			a, err := execute(t, session, fmt.Sprintf("return %d", 10*round+i), nil)
			switch {
			case err != nil:
				t.Fatal(err)
			case a.Status == "success":
				acknowledged[a.WorkflowID] = true
			case a.Error == nil || a.Error.Code != "storage_unavailable":
				t.Errorf("round %d, run %d: %+v", round, i, a.Error)
			}
		}
		if err := <-killed; err != nil {
			t.Fatal(err)
		}
	}
	if len(acknowledged) < 9 {
		t.Errorf("only %d of 18 runs succeeded", len(acknowledged))
	}
	out, err := f.pml(t.Context(), t, "trace", "ls", "--status", "succeeded", "--limit", "1000", "--json")
	if err != nil {
		t.Fatal(err)
	}
	for id := range acknowledged {
		if !strings.Contains(out, id) {
			t.Errorf("acknowledged run %s is gone", id)
		}
	}
}
