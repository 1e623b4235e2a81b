package upstream

import (
	"context"
	"encoding/json"
	"errors"
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
	"golang.org/x/sync/errgroup"

	"github.com/pml-run/pml/internal/config"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/upstream/upstreamtest"
)

// Trap 1: noise on stdout is skipped and counted.
func TestNoise(t *testing.T) {
	t.Parallel()
	m := start(t, scripted("noise"))
	if _, err := call(t, m, "s:noise", `{}`); err != nil {
		t.Fatal(err)
	}
	if got := m.States()[0].SkippedLines; got != 5 { // an array of two is two
		t.Errorf("%d lines skipped", got)
	}
}

func TestNoiseOfRealServer(t *testing.T) {
	t.Parallel()
	cmd := upstreamtest.NPM(t, "time-mcp")["time-mcp"]
	m := start(t, config.Server{Command: cmd.Path, Args: cmd.Args})
	if _, err := call(t, m, "s:current_time", `{"format":"YYYY-MM-DD","timezone":"UTC"}`); err != nil {
		t.Fatal(err)
	}
}

// Trap 2: a line over the limit fails its call alone; a long one passes.
func TestLineLimit(t *testing.T) {
	t.Parallel()
	m := start(t, scripted(), func(o *Options) { o.MaxMessage = 21 << 20 })
	raw, err := call(t, m, "s:large", `{"bytes":20000000}`)
	if err != nil || len(raw) < 20_000_000 {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	var g errgroup.Group
	g.Go(func() error {
		_, err := m.Call(t.Context(), "s:large", json.RawMessage(`{"bytes":30000000}`), nil)
		if fault.CodeOf(err) != fault.OutputLimit {
			return errors.New("too long, but: " + err.Error())
		}
		return nil
	})
	g.Go(func() error {
		_, err := m.Call(t.Context(), "s:echo", json.RawMessage(`{"a":1}`), nil)
		return err
	})
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if s := m.States()[0]; s.Restarts != 0 || s.State != StateReady {
		t.Errorf("%+v", s)
	}
}

// Trap 3: nothing of a server is left behind, whatever it does.
func TestNoOrphans(t *testing.T) {
	t.Parallel()
	for _, modes := range [][]string{{"plain"}, {"stubborn"}, {"grandchild"}, {"stubborn", "grandchild"}} {
		t.Run(strings.Join(modes, "+"), func(t *testing.T) {
			t.Parallel()
			m := start(t, scripted(modes...))
			s := session1(m)
			pgid := s.stdio.conn.process.PID()
			m.Stop()
			if err := syscall.Kill(-pgid, 0); !errors.Is(err, syscall.ESRCH) && !zombies(pgid) {
				t.Errorf("the group lives: %v", err)
			}
		})
	}
}

// zombies reports whether all that is left of a group waits for its parent.
func zombies(pgid int) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		rest := string(data)[strings.LastIndexByte(string(data), ')')+1:]
		f := strings.Fields(rest)
		if len(f) > 2 && f[2] == strconv.Itoa(pgid) && f[0] != "Z" && f[0] != "X" {
			return false
		}
	}
	return true
}

func session1(m *Manager) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.links["s"]
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// Trap 4: death fails the calls in flight with the reason, and a new session follows.
func TestDeathAndReconnect(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"plain", "grandchild"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			m := start(t, scripted(mode))
			var g errgroup.Group
			g.Go(func() error {
				_, err := m.Call(t.Context(), "s:hang", nil, nil)
				return want(err, fault.UpstreamUnavailable)
			})
			g.Go(func() error {
				awaitStderr(t, m, "hanging")
				_, err := m.Call(t.Context(), "s:crash", nil, nil)
				return want(err, fault.UpstreamUnavailable)
			})
			if err := g.Wait(); err != nil {
				t.Fatal(err)
			}
			if raw, err := call(t, m, "s:echo", `{"a":1}`); err != nil || !strings.Contains(raw, `{"a":1}`) {
				t.Fatalf("%s, %v", raw, err)
			}
			if s := m.States()[0]; s.Restarts < 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// awaitStderr waits until the only server has written a line.
func awaitStderr(t *testing.T, m *Manager, line string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !slices.Contains(m.States()[0].Stderr, line) {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			return
		}
	}
}

func want(err error, code fault.Code) error {
	if fault.CodeOf(err) != code {
		return errors.New("want " + string(code) + ", got " + err.Error())
	}
	return nil
}

func TestDeathIsExplained(t *testing.T) {
	t.Parallel()
	m := start(t, scripted())
	_, err := call(t, m, "s:crash", `{}`)
	f := wantFault(t, err, fault.UpstreamUnavailable)
	if !strings.Contains(f.Message, `server "s"`) || !strings.Contains(f.Message, "exit status 7") ||
		!strings.Contains(f.Hint, "the disk is on fire") || f.Tool != "s:crash" {
		t.Errorf("%q, hint %q, tool %q", f.Message, f.Hint, f.Tool)
	}
}

// Trap 5: results are the server's bytes, arguments ours.
func TestVerbatim(t *testing.T) {
	t.Parallel()
	m := start(t, scripted())
	for id, wantRaw := range map[tool.ID]string{"s:big": upstreamtest.BigResult, "s:unknown": upstreamtest.UnknownResult} {
		if raw, err := call(t, m, id, `{}`); err != nil || raw != wantRaw {
			t.Errorf("%s: %s, %v", id, raw, err)
		}
	}
	raw, err := call(t, m, "s:echo", `{"n":9007199254740993,"s":"<&>"}`)
	if err != nil || !strings.Contains(raw, `9007199254740993`) {
		t.Errorf("%s, %v", raw, err)
	}
	v, err := tool.Unwrap("s:echo", json.RawMessage(raw))
	if err != nil || !strings.Contains(string(v.JSON), "9007199254740993") {
		t.Errorf("%s, %v", v.JSON, err)
	}
}

// An isError result is a result; a JSON-RPC error is a fault.
func TestErrorsOfTools(t *testing.T) {
	t.Parallel()
	m := start(t, scripted())
	raw, err := call(t, m, "s:fail", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tool.Unwrap("s:fail", json.RawMessage(raw))
	if e, ok := errors.AsType[*tool.CallError](err); !ok || e.Message != "no such thing" {
		t.Errorf("%v", err)
	}
	_, err = call(t, m, "s:refuse", `{}`)
	if f := wantFault(t, err, fault.InvalidToolArguments); !strings.Contains(f.Message, "path is required") {
		t.Error(f.Message)
	}
}

// Trap 6: a hostile list costs its bad tools only.
func TestHostileList(t *testing.T) {
	t.Parallel()
	m := start(t, scripted("hostile"))
	c := m.Catalog()
	for _, name := range []string{"no_schema", "null_schema", "nullable", "draft7", "draft2020", "broken", "twice", "Odd name/with.dots & more", "long", "liar", "echo"} {
		tl, err := c.Resolve("s", name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(tl.InputSchema) == 0 || len([]rune(tl.Description)) > 2000 {
			t.Errorf("%s: schema %s, %d characters", name, tl.InputSchema, len(tl.Description))
		}
	}
	if got, wantN := len(c.Tools()), len(upstreamtest.Names)+10; got != wantN {
		t.Errorf("%d tools, want %d", got, wantN)
	}
	if raw, err := call(t, m, "s:Odd name/with.dots & more", `{}`); err != nil {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestManyAndPagedTools(t *testing.T) {
	t.Parallel()
	if got := len(start(t, scripted("many")).Catalog().Tools()); got != 500+len(upstreamtest.Names) {
		t.Errorf("%d tools", got)
	}
	if got := len(start(t, scripted("paged")).Catalog().Tools()); got != len(upstreamtest.Names) {
		t.Errorf("%d tools", got)
	}
}

// Trap 7: Start does not wait; the remembered catalog serves until a server is up.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	slow := scripted()
	slow.Env[upstreamtest.GateVar] = config.Secret(gate)
	store := &memory{tools: []tool.Tool{{ID: "slow:echo"}, {ID: "gone:x"}}}
	changed := make(chan Change, 8)
	m := New(Options{Servers: map[string]config.Server{"slow": slow, "fast": scripted()}, Store: store})
	m.OnChange(func(c Change) { changed <- c })
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	if _, err := m.Catalog().Resolve("slow", "echo"); err != nil {
		t.Error(err)
	}
	if _, err := m.Catalog().Resolve("gone", "x"); err == nil {
		t.Error("a server that is not configured is in the catalog")
	}
	await(t, m, "fast", StateReady)
	if s := m.States()[1]; s.Name != "slow" || s.State != StateStarting {
		t.Errorf("%+v", s)
	}
	f, err := os.OpenFile(gate, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	await(t, m, "slow", StateReady)
	for range 2 {
		if c := <-changed; len(c.IDs()) == 0 {
			t.Error("no change")
		}
	}
	if got := store.saved("slow"); got != len(upstreamtest.Names) {
		t.Errorf("%d tools saved", got)
	}
}

// A server that never answers has a deadline.
func TestConnectDeadline(t *testing.T) {
	t.Parallel()
	m := launch(t, map[string]config.Server{"s": scripted("mute")}, func(o *Options) { o.ConnectTimeout = 300 * time.Millisecond })
	s := await(t, m, "s", StateFailed)
	if !strings.Contains(s.Error, "did not answer the handshake in time") {
		t.Errorf("%+v", s)
	}
}

// Servers that know no server/discover, and say so badly, are reached all the same.
func TestOldServers(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"silent", "diediscover"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			m := start(t, scripted(mode), func(o *Options) { o.ConnectTimeout = 3 * time.Second })
			if got := m.States()[0].ProtocolVersion; got != "2025-06-18" {
				t.Errorf("protocol %s", got)
			}
		})
	}
}

// Trap 9: what servers ask of the client.
func TestQuestionsOfServers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := start(t, scripted(), func(o *Options) {
		o.Roots = []string{dir}
		o.Elicit = func(_ context.Context, server string, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"sure": server == "s" && p.Message == "Really?"}}, nil
		}
	})
	for id, wantPart := range map[tool.ID]string{
		"s:elicit": `"sure":true`,
		"s:sample": `"code":-`,
		"s:roots":  "file://" + dir,
	} {
		if raw, err := call(t, m, id, `{}`); err != nil || !strings.Contains(raw, wantPart) {
			t.Errorf("%s: %s, %v", id, raw, err)
		}
	}
}

func TestElicitationDeclined(t *testing.T) {
	t.Parallel()
	m := start(t, scripted())
	if raw, err := call(t, m, "s:elicit", `{}`); err != nil || !strings.Contains(raw, "does not support elicitation") {
		t.Errorf("%s, %v", raw, err)
	}
}

// Trap 10: a changed list is fetched again and told.
func TestListChanged(t *testing.T) {
	t.Parallel()
	changed := make(chan Change, 8)
	m := New(Options{Servers: map[string]config.Server{"s": scripted()}})
	m.OnChange(func(c Change) { changed <- c })
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	<-changed
	before := m.Catalog().Version()
	if _, err := call(t, m, "s:grow", `{}`); err != nil {
		t.Fatal(err)
	}
	if c := <-changed; len(c.Altered) != 0 || len(c.New) != 1 || c.New[0] != "s:grown_0" {
		t.Errorf("changed %v", c)
	}
	if m.Catalog().Version() == before {
		t.Error("the version must change")
	}
}

// memory is a CatalogStore in memory.
type memory struct {
	mu     sync.Mutex
	tools  []tool.Tool
	counts map[string]int
	states []tool.ServerState
}

func (m *memory) Catalog(context.Context) ([]tool.Tool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tools, nil
}

func (m *memory) SaveCatalog(_ context.Context, server string, tools []tool.Tool) ([]tool.ID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = map[string]int{}
	}
	m.counts[server] = len(tools)
	return nil, nil
}

func (m *memory) SaveServer(_ context.Context, s tool.ServerState) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.states = append(m.states, s)
	return nil
}

func (m *memory) saved(server string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[server]
}
