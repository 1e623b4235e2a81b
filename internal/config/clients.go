package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Client names an MCP client whose configuration file can be read and edited.
type Client string

// The known clients.
const (
	ClaudeDesktop Client = "claude-desktop"
	ClaudeCode    Client = "claude-code"
	Cursor        Client = "cursor"
	VSCode        Client = "vscode"
	Windsurf      Client = "windsurf"
	Gemini        Client = "gemini"
)

// Clients lists the known clients.
func Clients() []Client {
	return []Client{ClaudeDesktop, ClaudeCode, Cursor, VSCode, Windsurf, Gemini}
}

// key is the member of the client's file that holds the servers.
func (c Client) key() string {
	if c == VSCode {
		return "servers"
	}
	return "mcpServers"
}

// ParseClient finds a client by name; "claude" is Claude Code.
func ParseClient(name string) (Client, error) {
	switch c := Client(strings.ToLower(name)); {
	case c == "claude":
		return ClaudeCode, nil
	case c == "code":
		return VSCode, nil
	case slices.Contains(Clients(), c):
		return c, nil
	}
	names := make([]string, 0, len(Clients()))
	for _, c := range Clients() {
		names = append(names, string(c))
	}
	return "", fmt.Errorf("unknown client %q: known are %s", name, strings.Join(names, ", "))
}

// ClientPaths lists where a client keeps its configuration, the most specific
// first: the project's file in dir, then the user's in home.
func ClientPaths(c Client, goos, home, dir string) []string {
	app := filepath.Join(home, ".config")
	switch goos {
	case "darwin":
		app = filepath.Join(home, "Library", "Application Support")
	case "windows":
		app = filepath.Join(home, "AppData", "Roaming")
	}
	switch c {
	case ClaudeDesktop:
		return []string{filepath.Join(app, "Claude", "claude_desktop_config.json")}
	case ClaudeCode:
		return []string{filepath.Join(dir, ".mcp.json"), filepath.Join(home, ".claude.json")}
	case Cursor:
		return []string{filepath.Join(dir, ".cursor", "mcp.json"), filepath.Join(home, ".cursor", "mcp.json")}
	case VSCode:
		return []string{filepath.Join(dir, ".vscode", "mcp.json"), filepath.Join(app, "Code", "User", "mcp.json")}
	case Windsurf:
		return []string{filepath.Join(home, ".codeium", "windsurf", "mcp_config.json")}
	case Gemini:
		return []string{filepath.Join(dir, ".gemini", "settings.json"), filepath.Join(home, ".gemini", "settings.json")}
	}
	return nil
}

// foreign is an entry in any client's words. Members that mean nothing to us are
// left out without a warning: it is not our file.
type foreign struct {
	Type      string            `json:"type"`
	Command   string            `json:"command"`
	Args      []string          `json:"args"`
	Env       map[string]Secret `json:"env"`
	Cwd       string            `json:"cwd"`
	URL       string            `json:"url"`
	ServerURL string            `json:"serverUrl"`
	HTTPURL   string            `json:"httpUrl"`
	Headers   map[string]Secret `json:"headers"`
	Disabled  bool              `json:"disabled"`
	TimeoutMS int               `json:"timeout"`
}

// ReadClient reads the servers out of a client's file. Variables stay as they are
// written, in our spelling. An entry that cannot be used is left out; the
// problems say why. The error is for the file as a whole.
func ReadClient(c Client, path string) (map[string]Server, []Problem, error) {
	src, err := os.ReadFile(path) //nolint:gosec // reading the file that the user names is this package's purpose
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", c, err)
	}
	return parseClient(c, path, src)
}

func parseClient(c Client, path string, src []byte) (map[string]Server, []Problem, error) {
	src = []byte(strings.TrimPrefix(string(src), "\ufeff"))
	root, bad := syntax(src)
	if bad != nil {
		return nil, nil, &Invalid{File: path, Problems: []Problem{*bad}}
	}
	list, ok := member(&root, c.key())
	if !ok {
		return map[string]Server{}, nil, nil
	}
	object, ok := list.Value.(*hujson.Object)
	if !ok {
		return nil, nil, &Invalid{File: path, Problems: []Problem{{Path: c.key(), Message: "want an object"}}}
	}
	servers := map[string]Server{}
	d := &decoder{src: src, at: map[string]int{}}
	for i := range object.Members {
		m := &object.Members[i]
		name, _ := m.Name.Value.(hujson.Literal)
		where := join(c.key(), name.String())
		before := len(d.problems)
		var f foreign
		d.value(&m.Value, reflect.ValueOf(&f).Elem(), where)
		if len(d.problems) > before {
			continue
		}
		s := f.server(c)
		if why := foreignProblem(name.String(), s); why != "" {
			d.problem(where, "%s", why)
			continue
		}
		servers[name.String()] = s
	}
	return servers, d.problems, nil
}

// server writes an entry in our words.
func (f foreign) server(c Client) Server {
	s := Server{
		Type: f.Type, Command: f.Command, Args: f.Args, Env: f.Env, Cwd: f.Cwd,
		URL: f.URL, Headers: f.Headers, Disabled: f.Disabled, TimeoutMS: f.TimeoutMS,
	}
	switch {
	case f.ServerURL != "":
		s.URL = f.ServerURL
	case f.HTTPURL != "":
		s.URL = f.HTTPURL
	case c == Gemini && f.URL != "" && f.Type == "":
		s.Type = TypeSSE // Gemini's url is SSE, its httpUrl is not
	}
	switch s.Type {
	case "streamable-http", "streamableHttp", "streamable_http":
		s.Type = TypeHTTP
	case TypeStdio:
		s.Type = ""
	}
	s.Command, s.Cwd, s.URL = ours(s.Command), ours(s.Cwd), ours(s.URL)
	for i := range s.Args {
		s.Args[i] = ours(s.Args[i])
	}
	for _, secrets := range []map[string]Secret{s.Env, s.Headers} {
		for k, v := range secrets {
			secrets[k] = Secret(ours(v.Reveal()))
		}
	}
	return s
}

var foreignVariable = regexp.MustCompile(`\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)

// ours spells VS Code's and Cursor's ${env:NAME} as ${NAME}.
func ours(s string) string { return foreignVariable.ReplaceAllString(s, "$${$1}") }

var unknownVariable = regexp.MustCompile(`\$\{(input:[^}]*|workspaceFolder[^}]*|userHome|pathSeparator|/)\}`)

func foreignProblem(name string, s Server) string {
	if name == "" || strings.ContainsRune(name, ':') {
		return "its name is empty or holds a colon"
	}
	texts := append([]string{s.Command, s.Cwd, s.URL}, s.Args...)
	for _, secrets := range []map[string]Secret{s.Env, s.Headers} {
		for _, k := range slices.Sorted(maps.Keys(secrets)) {
			texts = append(texts, secrets[k].Reveal())
		}
	}
	for _, t := range texts {
		if v := unknownVariable.FindString(t); v != "" {
			return v + " means nothing outside of that client: write the value, or an environment variable"
		}
	}
	return unusable(s)
}

// member finds a member of an object by its name.
func member(v *hujson.Value, key string) (*hujson.Value, bool) {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, false
	}
	for i := range o.Members {
		if name, ok := o.Members[i].Name.Value.(hujson.Literal); ok && name.String() == key {
			return &o.Members[i].Value, true
		}
	}
	return nil, false
}
