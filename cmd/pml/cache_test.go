package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cacher runs programs on a folder whose caches are on.
type cacher struct{ learner }

func newCacher(t *testing.T, more map[string]any) cacher {
	t.Helper()
	f := newFolderWith(t, more)
	return cacher{learner{f, connect(t, f.serveHTTP(t))}}
}

func allowAll() map[string]any {
	return map[string]any{"permissions": map[string]any{"default": "allow"}}
}

// cacheAnswer is what the tests read of an answer.
type cacheAnswer struct {
	Status     string
	WorkflowID string `json:"workflow_id"`
	Result     json.RawMessage
	Error      *struct{ Code, Message string }
	CacheHit   string  `json:"cache_hit"`
	CacheAgeMS float64 `json:"cache_age_ms"`
	Capability struct{ Name string }
	Trace      struct {
		ToolsCalled []struct{ Tool string } `json:"tools_called"`
	}
}

func (c cacher) ask(t *testing.T, code string, options map[string]any) cacheAnswer {
	t.Helper()
	var a cacheAnswer
	raw := c.raw(t, map[string]any{
		"intent": "read a note", "implementation": map[string]any{"type": "code", "code": code},
		"args": map[string]any{"dir": c.files}, "options": options,
	})
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// must runs pml and returns what it prints.
func (c cacher) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.pml(t.Context(), t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// behind changes a file without the gateway.
func (c cacher) behind(t *testing.T, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.files, "a.txt"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// check fails unless an answer is a result from a level of the cache; "" is none.
func (a cacheAnswer) check(t *testing.T, what, result, level string) {
	t.Helper()
	if a.Status != "success" || string(a.Result) != `"`+result+`"` || a.CacheHit != level {
		t.Errorf("%s: %s %s from %q, not %q from %q (%+v)", what, a.Status, a.Result, a.CacheHit, result, level, a.Error)
	}
}

const (
	readsNote  = `return (await mcp.filesystem.read_text_file({ path: args.dir + "/a.txt" })).content.trim();`
	mayWrite   = `if (args.never) await mcp.filesystem.write_file({ path: args.dir + "/x", content: "x" });` + "\n" + readsNote
	writesNote = `await mcp.filesystem.write_file({ path: args.dir + "/b.txt", content: "written" }); return "done";`
)

func TestReadingRunsAreAnsweredFromTheCache(t *testing.T) {
	t.Parallel()
	c := newCacher(t, allowAll())
	first := c.ask(t, readsNote, nil)
	first.check(t, "first", "alpha", "")
	c.behind(t, "beta")
	second := c.ask(t, readsNote, nil)
	level := "execution"
	if isNative() { // another gateway may write: nothing is kept in memory
		level = "capability"
	}
	second.check(t, "second", "alpha", level)
	if second.CacheAgeMS <= 0 || second.WorkflowID == first.WorkflowID || len(second.Trace.ToolsCalled) != 0 {
		t.Errorf("got %+v", second)
	}
	if k := c.show(t, first.Capability.Name).Capability; k.UsageCount != 1 {
		t.Errorf("a hit was learnt from: %+v", k)
	}
	if out := c.must(t, "trace", "show", second.WorkflowID, "--json"); !strings.Contains(out, `"cache_hit": "`+level+`"`) {
		t.Errorf("trace: %s", out)
	}
	c.ask(t, readsNote, map[string]any{"use_cache": false}).check(t, "fresh", "beta", "")
	c.ask(t, readsNote, nil).check(t, "after a fresh run", "beta", level)
	c.behind(t, "gamma")
	c.ask(t, readsNote, nil).check(t, "before the write", "beta", level)
	c.ask(t, writesNote, nil).check(t, "the write", "done", "")
	c.ask(t, readsNote, nil).check(t, "after a write to another file of the server", "gamma", "")
	c.behind(t, "delta")
	if out := c.must(t, "cache", "ls"); !strings.Contains(out, first.Capability.Name) || !strings.Contains(out, level) {
		t.Errorf("list: %s", out)
	}
	c.must(t, "cache", "clear", "--capability", first.Capability.Name)
	c.ask(t, readsNote, nil).check(t, "after it was cleared", "delta", "")
	for _, content := range []string{"one", "two"} {
		c.behind(t, content)
		c.ask(t, mayWrite, nil).check(t, "with a write in a branch", content, "")
	}
	c.must(t, "capability", "cache", first.Capability.Name, "--off")
	c.ask(t, readsNote, nil).check(t, "turned off", "two", "")
	c.ask(t, readsNote, nil).check(t, "turned off, again", "two", "")
	if _, err := c.pml(t.Context(), t, "capability", "cache", first.Capability.Name, "--on", "--off"); err == nil {
		t.Error("on and off at once")
	}
}

func TestADeniedToolIsNotServedFromTheCache(t *testing.T) {
	t.Parallel()
	c := newCacher(t, allowAll())
	c.ask(t, readsNote, nil).check(t, "first", "alpha", "")
	c.must(t, "policy", "deny", "filesystem:read_*")
	if a := c.ask(t, readsNote, nil); a.Error == nil || a.Error.Code != "denied" || a.CacheHit != "" {
		t.Errorf("got %+v", a)
	}
}

func TestTheSecondLevelOutlivesTheGateway(t *testing.T) {
	t.Parallel()
	f := newFolderWith(t, allowAll())
	g := f.start(t)
	c := cacher{learner{f, connect(t, g.url)}}
	c.ask(t, readsNote, nil).check(t, "first", "alpha", "")
	_ = c.session.Close()
	_ = g.cmd.Process.Signal(os.Interrupt)
	if err := g.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	c.behind(t, "beta")
	c = cacher{learner{f, connect(t, f.serveHTTP(t))}}
	c.ask(t, readsNote, nil).check(t, "after a restart", "alpha", "capability")
	c.ask(t, writesNote, nil).check(t, "the write", "done", "")
	c.ask(t, readsNote, nil).check(t, "after a write", "beta", "")
}
