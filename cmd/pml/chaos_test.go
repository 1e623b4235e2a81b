package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pml-run/pml/internal/upstream/upstreamtest"
)

// appending adds lines to a file, some of them at the same time, with reads between,
// and a value in each line that follows from chance and the clock.
const appending = `
const line = (n: number) => mcp.ledger.append({ run: args.run, n, chance: Math.floor(Math.random() * 1e9), at: Date.now() });
for (let n = 0; n < 6; n++) {
  await line(n);
  if (n % 2) await mcp.filesystem.list_directory({ path: args.dir });
}
await Promise.all([6, 7, 8].map(line));
await line(9);
return args.run;`

const linesOfARun = 10

// entry is a line of the file.
type entry struct {
	Run    string
	N      int
	Chance int64
	At     int64
}

// setting reads a number from the environment.
func setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// TestChaos kills the gateway at random moments while programs with side effects
// run, starts it again each time, and looks at the end for what was done twice, what
// was left out, and what was acknowledged and is gone.
func TestChaos(t *testing.T) {
	rounds, seed := setting("PML_CHAOS", 3), setting("PML_CHAOS_SEED", 1)
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	ledger := filepath.Join(t.TempDir(), "ledger.jsonl")
	env := upstreamtest.Environ()
	env[upstreamtest.LedgerVar] = ledger
	f := newFolderWith(t, map[string]any{"permissions": map[string]any{"default": "allow"}})
	f.addServer(t, "ledger", map[string]any{"command": os.Args[0], "env": env})
	acknowledged := map[string]string{} // workflow → result
	for round := range rounds {
		g := f.start(t)
		acknowledge := runSome(t, f, g, round)
		for !contains(ledger, fmt.Sprintf(`"run":"%d-`, round)) { // the servers are up, and a new run has begun
			<-time.After(5 * time.Millisecond)
		}
		<-time.After(time.Duration(r.IntN(1500)) * time.Millisecond)
		g.kill(t)
		maps.Copy(acknowledged, acknowledge())
	}
	g := f.start(t)
	g.stopLater(t)
	runs := f.settled(t)
	checkLedger(t, runs, readLedger(t, ledger))
	byID := map[string]finishedRun{}
	for _, run := range runs {
		byID[run.ID] = run
	}
	for id, result := range acknowledged {
		if byID[id].Status != "succeeded" {
			t.Errorf("run %s was acknowledged with %s and is %q", id, result, byID[id].Status)
		}
	}
	counts := map[string]int{}
	for _, run := range runs {
		counts[run.Status]++
	}
	t.Logf("%d kills: runs %v, %d acknowledged before a kill", rounds, counts, len(acknowledged))
}

// contains reports whether a file has a text; one that is not there has none.
func contains(path, text string) bool {
	b, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(b), text)
}

// addServer adds a server to a folder's configuration.
func (f folder) addServer(t *testing.T, name string, server map[string]any) {
	t.Helper()
	f.edit(t, func(c map[string]any) {
		servers, _ := c["mcpServers"].(map[string]any)
		servers[name] = server
	})
}

// runSome has clients run the program until the gateway is gone. The returned
// function waits for them and gives the results that they got.
func runSome(t *testing.T, f folder, g gateway, round int) func() map[string]string {
	t.Helper()
	var mu sync.Mutex
	var clients sync.WaitGroup
	got := map[string]string{}
	for c := range 3 {
		session := connect(t, g.url)
		clients.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("%d-%d-%d", round, c, i)
				answer, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "pml_execute", Arguments: map[string]any{
					"intent": "append " + name, "implementation": map[string]any{"type": "code", "code": appending},
					"args": map[string]any{"run": name, "dir": f.files},
				}})
				if err != nil {
					return // the gateway is gone
				}
				b, _ := json.Marshal(answer.StructuredContent)
				var o outcome
				if json.Unmarshal(b, &o) == nil && o.Status == "success" {
					mu.Lock()
					got[o.WorkflowID] = string(o.Result)
					mu.Unlock()
				}
			}
		})
	}
	return func() map[string]string { clients.Wait(); return got }
}

// finishedRun is a run as trace ls shows it.
type finishedRun struct {
	ID     string `json:"workflow_id"`
	Intent string
	Status string
	Parent string `json:"parent_workflow_id"`
	Error  *struct{ Code, Message string }
}

// settled waits until no run is open and returns all.
func (f folder) settled(t *testing.T) []finishedRun {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; <-time.After(200 * time.Millisecond) {
		out, err := f.pml(t.Context(), t, "trace", "ls", "--limit", "1000", "--json")
		if err != nil {
			t.Fatal(err)
		}
		var runs []finishedRun
		if err := json.Unmarshal([]byte(out), &runs); err != nil {
			t.Fatal(err)
		}
		open := 0
		for _, r := range runs {
			if r.Status == "running" || r.Status == "suspended" {
				open++
			}
		}
		if open == 0 {
			return runs
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d runs are still open", open)
		}
	}
}

func readLedger(t *testing.T, path string) map[string][]entry {
	t.Helper()
	out := map[string][]entry{}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		out[e.Run] = append(out[e.Run], e)
	}
	return out
}

// checkLedger: a run that succeeded has each line once, any other none twice; one
// that did not succeed says that a call's outcome is unknown.
func checkLedger(t *testing.T, runs []finishedRun, ledger map[string][]entry) {
	t.Helper()
	for _, r := range runs {
		var name string
		if _, err := fmt.Sscanf(r.Intent, "append %s", &name); err != nil {
			continue
		}
		seen := map[int]int{}
		for _, e := range ledger[name] {
			if seen[e.N]++; seen[e.N] > 1 {
				t.Errorf("run %s (%s) did line %d %d times", name, r.Status, e.N, seen[e.N])
			}
		}
		switch {
		case r.Status == "succeeded" && len(seen) != linesOfARun:
			t.Errorf("run %s succeeded with %d of %d lines", name, len(seen), linesOfARun)
		case r.Status != "succeeded" && (r.Error == nil || r.Error.Code != "interrupted_call"):
			t.Errorf("run %s is %s: %+v", name, r.Status, r.Error)
		}
	}
}
