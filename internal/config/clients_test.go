package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadClients(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, src string
		client    Client
		want      map[string]string // name → type command url
		problems  int
	}{
		{"desktop", `{"globalShortcut":"x","mcpServers":{"fs":{"command":"npx","args":["-y","s"],"env":{"A":"b"}}}}`, ClaudeDesktop, map[string]string{"fs": "stdio npx "}, 0},
		{"code", `{"mcpServers":{"a":{"type":"stdio","command":"x","args":[]},"b":{"type":"http","url":"https://h/mcp","headers":{"X":"y"}},"c":{"type":"sse","url":"https://h/sse"}}}`, ClaudeCode, map[string]string{"a": "stdio x ", "b": "http  https://h/mcp", "c": "sse  https://h/sse"}, 0},
		{"cursor", `{"mcpServers":{"a":{"command":"${env:HOME}/x"}}}`, Cursor, map[string]string{"a": "stdio ${HOME}/x "}, 0},
		{"vscode", `{"inputs":[],"servers":{"a":{"type":"stdio","command":"x","env":{"K":"${input:key}"}},"b":{"type":"http","url":"http://h/"}}, // c
}`, VSCode, map[string]string{"b": "http  http://h/"}, 1},
		{"windsurf", `{"mcpServers":{"a":{"serverUrl":"https://h/mcp"},"b":{"command":"x","disabled":true}}}`, Windsurf, map[string]string{"a": "http  https://h/mcp", "b": "stdio x "}, 0},
		{"gemini", `{"theme":"x","mcpServers":{"a":{"httpUrl":"https://h/mcp","timeout":5000},"b":{"url":"https://h/sse"},"c":{"command":7}}}`, Gemini, map[string]string{"a": "http  https://h/mcp", "b": "sse  https://h/sse"}, 1},
		{"none", `{}`, Cursor, map[string]string{}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "c.json")
			if err := os.WriteFile(path, []byte(tc.src), 0o600); err != nil {
				t.Fatal(err)
			}
			servers, problems, err := ReadClient(tc.client, path)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for name, s := range servers {
				got[name] = s.Transport() + " " + s.Command + " " + s.URL
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if len(problems) != tc.problems {
				t.Errorf("problems %v", problems)
			}
		})
	}
}

func TestClientPaths(t *testing.T) {
	t.Parallel()
	for _, c := range Clients() {
		for _, goos := range []string{"linux", "darwin", "windows"} {
			if len(ClientPaths(c, goos, "/h", "/d")) == 0 {
				t.Errorf("%s has no path on %s", c, goos)
			}
		}
	}
	if got := ClientPaths(ClaudeDesktop, "linux", "/h", "/d")[0]; got != "/h/.config/Claude/claude_desktop_config.json" {
		t.Error(got)
	}
}

func TestInstallKeepsFormatting(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		client     Client
		have, want string
	}{
		{"new file", ClaudeDesktop, "", "{\n  \"mcpServers\": {\n    \"pml\": {\n      \"command\": \"/bin/pml\",\n      \"args\": [\n        \"serve\"\n      ]\n    }\n  }\n}\n"},
		{
			"comments and tabs", Cursor,
			"{\n\t// mine\n\t\"mcpServers\": {\n\t\t\"a\": { \"command\": \"x\" } // last\n\t},\n\t\"z\": 1,\n}\n",
			"{\n\t// mine\n\t\"mcpServers\": {\n\t\t\"a\": { \"command\": \"x\" }, // last\n\t\t\"pml\": {\n\t\t\t\"command\": \"/bin/pml\",\n\t\t\t\"args\": [\n\t\t\t\t\"serve\"\n\t\t\t]\n\t\t}\n\t},\n\t\"z\": 1,\n}\n",
		},
		{
			"replace, keep env", VSCode,
			"{\n  \"servers\": {\n    \"pml\": {\n      \"type\": \"stdio\",\n      \"command\": \"old\", // path\n      \"args\": [],\n      \"env\": {\"A\": \"b\"}\n    },\n  }\n}\n",
			"{\n  \"servers\": {\n    \"pml\": {\n      \"type\": \"stdio\",\n      \"command\": \"/bin/pml\", // path\n      \"args\": [\n        \"serve\"\n      ],\n      \"env\": {\"A\": \"b\"}\n    },\n  }\n}\n",
		},
		{
			"trailing comma", Cursor,
			"{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"},\n  },\n}\n",
			"{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"},\n    \"pml\": {\n      \"command\": \"/bin/pml\",\n      \"args\": [\n        \"serve\"\n      ]\n    },\n  },\n}\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "sub", "c.json")
			if tc.have != "" {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(tc.have), 0o640); err != nil {
					t.Fatal(err)
				}
			}
			change, err := InstallInto(tc.client, path, "pml", "/bin/pml", []string{"serve"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Error(diff)
			}
			if tc.have != "" {
				kept, err := os.ReadFile(change.Backup)
				if err != nil || string(kept) != tc.have {
					t.Errorf("backup %q, %v", kept, err)
				}
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
					t.Errorf("mode %v, %v", info.Mode(), err)
				}
			}
			again, err := InstallInto(tc.client, path, "pml", "/bin/pml", []string{"serve"})
			if err != nil || again.Changed || again.Backup != "" {
				t.Errorf("not idempotent: %+v, %v", again, err)
			}
		})
	}
}

func TestInstallRefusesBrokenFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.json")
	for _, src := range []string{"{ not json", `{"mcpServers": []}`, `[]`} {
		if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := InstallInto(Cursor, path, "pml", "x", nil); err == nil {
			t.Errorf("%s: no error", src)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != src {
			t.Errorf("changed to %s", got)
		}
	}
}

func TestAddServers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pml.json")
	servers := map[string]Server{
		"a": {Command: "x", Env: map[string]Secret{"K": "v"}},
		"b": {URL: "https://h/mcp", Headers: map[string]Secret{"H": "w"}},
	}
	change, err := AddServers(path, servers)
	if err != nil || !cmp.Equal(change.Names, []string{"a", "b"}) {
		t.Fatalf("%+v, %v", change, err)
	}
	c, err := Read(path, vars(nil))
	if err != nil {
		t.Fatal(err)
	}
	if c.Servers["a"].Env["K"].Reveal() != "v" || c.Servers["b"].Headers["H"].Reveal() != "w" {
		t.Errorf("%+v", c.Servers)
	}
	if again, err := AddServers(path, servers); err != nil || again.Changed {
		t.Errorf("%+v, %v", again, err)
	}
	if names, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".pml-*")); len(names) != 0 {
		t.Errorf("left over: %s", strings.Join(names, " "))
	}
}
