package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func vars(m map[string]string) Lookup {
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

func parse(t *testing.T, src string, env map[string]string) *Config {
	t.Helper()
	c, err := Parse([]byte(src), vars(env))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParseWhole(t *testing.T) {
	t.Parallel()
	c := parse(t, `// ours
{
  "$schema": "https://example.org/pml.json",
  "mcpServers": {
    "fs": { "command": "npx", "args": ["-y", "server", "${DIR}"], "env": {"KEY": "${KEY}"}, "cwd": "${DIR:-/}", "timeout_ms": 5000, "start": "lazy" },
    "web": { "type": "http", "url": "https://${HOST:-example.org}/mcp", "headers": {"Authorization": "Bearer ${KEY}"}, "approval": "ask", },
    "off": { "disabled": true },
  },
  "permissions": { "allow": ["fs:*"], "deny": ["*:delete_*"], "default": "ask" },
  "approvals": { "hold_ms": 0, "expire_hours": 1, "allow_agent_relay": true },
  "sandbox": { "require": "full", "jit": "off", "size": 3, "limits": { "wall_ms": 1000 } },
  "results": { "ttl_seconds": 0, "quota_mb": 5 },
  "roots": ["/tmp"],
  "http": { "listen": "127.0.0.1:7777", "token": "${KEY}" },
}`, map[string]string{"DIR": "/data", "KEY": "s3cret"})
	if len(c.Warnings) != 0 {
		t.Errorf("warnings %v", c.Warnings)
	}
	fs := c.Servers["fs"]
	if diff := cmp.Diff([]string{"-y", "server", "/data"}, fs.Args); diff != "" {
		t.Error(diff)
	}
	if fs.Env["KEY"].Reveal() != "s3cret" || fs.Cwd != "/data" || !fs.Lazy() || fs.Timeout() != 5*time.Second {
		t.Errorf("fs = %+v", fs)
	}
	web := c.Servers["web"]
	if web.URL != "https://example.org/mcp" || web.Headers["Authorization"].Reveal() != "Bearer s3cret" || web.Transport() != TypeHTTP {
		t.Errorf("web = %+v", web)
	}
	if c.Approvals.Hold() != 0 || c.Results.TTL() != 0 || c.Results.Quota() != 5<<20 || c.HTTP.Token.Reveal() != "s3cret" || c.Sandbox.Limits.WallMS != 1000 {
		t.Errorf("config = %+v", c)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c := parse(t, `{"mcpServers":{"a":{"command":"x"}}}`, nil)
	a := c.Servers["a"]
	if a.Timeout() != time.Minute || a.Concurrency() != 8 || a.Lazy() || a.Transport() != TypeStdio {
		t.Errorf("server %+v", a)
	}
	if c.Approvals.Hold() != time.Minute || c.Approvals.Expire() != 24*time.Hour || c.Results.TTL() != time.Hour || c.Results.Quota() != 1<<30 || c.Cache.TTL() != 5*time.Minute {
		t.Error("wrong defaults")
	}
}

func TestProblemsAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte(`{
  "mcpServers": {
    "a": { "command": 7, "args": "x", "timeout_ms": "5s" },
    "a": {},
    "b:c": { "command": "x", "start": "now" },
  },
  "sandbox": { "require": "some", "size": -1 },
  "permissions": { "allow": ["fs"] },
  "http": { "listen": "0.0.0.0:80", "token": "${NOPE}" },
}`), vars(nil))
	want := `3:23: mcpServers.a.command: want a string, not the number 7
3:34: mcpServers.a.args: want a list, not a string
3:53: mcpServers.a.timeout_ms: want a whole number, not a string
4:5: mcpServers.a: the key stands twice
5:12: mcpServers.b:c: a server's name must not be empty or hold a colon
5:39: mcpServers.b:c.start: "now" is none of eager, lazy
7:27: sandbox.require: "some" is none of full, best
7:43: sandbox.size: -1 is out of range: want 0 to 2147483647
8:30: permissions.allow[0]: "fs" is no rule: want server:tool, with * for any
9:23: http.listen: "0.0.0.0:80" can be reached from other machines: set http.token
9:46: http.token: the variable NOPE is not set; set it, or write ${NOPE:-default}`
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
}

func TestSyntaxError(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"{\n  \"a\": }", "", "{\"a\":1} x", "{\"a\"", strings.Repeat("[", 100000)} {
		_, err := Parse([]byte(src), nil)
		invalid, ok := errors.AsType[*Invalid](err)
		if !ok || len(invalid.Problems) != 1 {
			t.Errorf("%.20q: %v", src, err)
		}
	}
	_, err := Parse([]byte("{\n  \"a\": }"), nil)
	if !strings.HasPrefix(err.Error(), "2:8: ") {
		t.Errorf("no position: %v", err)
	}
}

func TestUnknownKeysAreWarnings(t *testing.T) {
	t.Parallel()
	c := parse(t, `{
  "mcpServers": {"a": {"command": "x", "timeoutMs": 5, "alwaysAllow": []}},
  "sandbx": {}
}`, nil)
	var got []string
	for _, w := range c.Warnings {
		got = append(got, w.String())
	}
	if len(got) != 3 || !strings.HasPrefix(got[0], `2:40: mcpServers.a.timeoutMs: unknown key; did you mean "timeout_ms"?`) ||
		!strings.HasPrefix(got[2], "3:3: sandbx: unknown key") {
		t.Errorf("warnings %q", got)
	}
}

func TestUnsetVariableStopsOneServer(t *testing.T) {
	t.Parallel()
	c := parse(t, `{"mcpServers":{"a":{"command":"x","env":{"K":"${NOPE}"}},"b":{"command":"${ALSO:-y}"}}}`, nil)
	if want := "the variable NOPE is not set; set it, or write ${NOPE:-default}"; c.Servers["a"].Problem != want {
		t.Errorf("problem %q", c.Servers["a"].Problem)
	}
	if b := c.Servers["b"]; b.Problem != "" || b.Command != "y" {
		t.Errorf("b = %+v", b)
	}
	if len(c.Warnings) != 1 {
		t.Errorf("warnings %v", c.Warnings)
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"${A}":            "1",
		"x${A}y${A}":      "x1y1",
		"${EMPTY:-d}":     "d",
		"${EMPTY}":        "",
		"${NONE:-}":       "",
		"${NONE:-a:-b}":   "a:-b",
		"$A ${ ${not ok}": "$A ${ ${not ok}",
		"${A":             "${A",
		"${input:key}":    "${input:key}",
	} {
		e := expander{lookup: vars(map[string]string{"A": "1", "EMPTY": ""})}
		if got := e.text(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	c := parse(t, `{"mcpServers":{"a":{"command":"x","args":["--key=${KEY}"],"env":{"K":"hunter2"}}},"http":{"token":"hunter2"}}`,
		map[string]string{"KEY": "hunter2"})
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	logger.Info("x", "server", c.Servers["a"], "token", c.HTTP.Token)
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	printed := fmt.Sprintf("%v %+v %s %#v", c.HTTP, c.HTTP, c.HTTP.Token, c.HTTP.Token)
	for _, out := range []string{log.String(), string(encoded), printed} {
		if strings.Contains(out, "hunter2") {
			t.Errorf("secret in %s", out)
		}
	}
	if c.Servers["a"].Args[0] != "--key=hunter2" {
		t.Error("not expanded")
	}
}

func TestHashIgnoresValues(t *testing.T) {
	t.Parallel()
	src := `{"mcpServers":{"a":{"command":"x","args":["${K}"],"env":{"K":"${K}"}}}}`
	a := parse(t, src, map[string]string{"K": "1"}).Servers["a"]
	b := parse(t, src, map[string]string{"K": "2"}).Servers["a"]
	if a.Hash() != b.Hash() || a.Equal(b) || !a.Equal(a) {
		t.Error("the hash must not depend on values, Equal must")
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir, home := t.TempDir(), t.TempDir()
	write := func(path string) string {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	expect := func(explicit, want string) {
		t.Helper()
		if got, err := Find(explicit, dir, home); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	expect("", "")
	user := write(filepath.Join(home, ".config", "pml", "pml.json"))
	expect("", user)
	mcp := write(filepath.Join(dir, ".mcp.json"))
	expect("", mcp)
	ours := write(filepath.Join(dir, "pml.json"))
	expect("", ours)
	expect(user, user)
	if _, err := Find(filepath.Join(dir, "none.json"), dir, home); err == nil {
		t.Error("an explicit file must exist")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"mcpServers":{"a":{"command":"${X:-y}","env":{"A":"b"}}}, "http":{"listen":"x"}, // c
}`)
	f.Add(`{"mcpServers":{"":null,"a":[],"b":{"args":[null,1,"x"]}}}`)
	f.Add("\ufeff/* */ [1e999]")
	f.Fuzz(func(t *testing.T, src string) {
		c, err := Parse([]byte(src), vars(nil))
		if (c == nil) == (err == nil) {
			t.Fatal("either a configuration or an error")
		}
		if c != nil {
			if _, err := json.Marshal(c); err != nil {
				t.Fatal(err)
			}
		}
	})
}
