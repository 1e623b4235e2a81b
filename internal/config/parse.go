package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// maxFile bounds a configuration file.
const maxFile = 4 << 20

// Read reads and validates a file. lookup finds variables; nil is the process's
// environment. The error is an *Invalid, or that of reading the file.
func Read(path string, lookup Lookup) (*Config, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if info.Size() > maxFile {
		return nil, &Invalid{File: path, Problems: []Problem{{Message: fmt.Sprintf("larger than %d bytes", maxFile)}}}
	}
	src, err := os.ReadFile(path) //nolint:gosec // reading the file that the user names is this package's purpose
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	c, err := Parse(src, lookup)
	if invalid, ok := errors.AsType[*Invalid](err); ok {
		invalid.File = path
	}
	if err != nil {
		return nil, err
	}
	c.Path = path
	return c, nil
}

// Parse reads JSON with comments and trailing commas. All problems are found at
// once; with any the Config is nil. Unknown keys and servers that cannot be
// started are Warnings.
func Parse(src []byte, lookup Lookup) (*Config, error) {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	src = []byte(strings.TrimPrefix(string(src), "\ufeff"))
	root, bad := syntax(src)
	if bad != nil {
		return nil, &Invalid{Problems: []Problem{*bad}}
	}
	d := &decoder{src: src, at: map[string]int{}}
	c := &Config{}
	d.value(&root, reflect.ValueOf(c).Elem(), "")
	d.secret("http.token", &c.HTTP.Token, lookup)
	d.secret("embedding.key", &c.Embedding.Key, lookup)
	d.validate(c)
	for name, s := range c.Servers {
		d.server(name, &s, lookup)
		c.Servers[name] = s
	}
	if len(d.problems) > 0 {
		slices.SortStableFunc(d.problems, byPlace)
		return nil, &Invalid{Problems: d.problems}
	}
	slices.SortStableFunc(d.warnings, byPlace)
	c.Warnings = d.warnings
	return c, nil
}

func byPlace(a, b Problem) int {
	if a.Line != b.Line {
		return a.Line - b.Line
	}
	return a.Column - b.Column
}

// oneOf checks a word; the empty one is the default.
func (d *decoder) oneOf(path, value string, words ...string) {
	if value != "" && !slices.Contains(words, value) {
		d.problem(path, "%q is none of %s", value, strings.Join(words, ", "))
	}
}

// secret expands a secret of our own; without its variable the file is invalid.
func (d *decoder) secret(path string, s *Secret, lookup Lookup) {
	e := expander{lookup: lookup}
	*s = Secret(e.text(s.Reveal()))
	if len(e.missing) > 0 {
		d.problem(path, "%s", unset(e.missing))
	}
}

func (d *decoder) validate(c *Config) {
	d.oneOf("permissions.default", c.Permissions.Default, DefaultAnnotations, DefaultAllow, DefaultAsk, DefaultDeny)
	for key, rules := range map[string][]string{"allow": c.Permissions.Allow, "ask": c.Permissions.Ask, "deny": c.Permissions.Deny} {
		for i, r := range rules {
			if r != "*" && !strings.Contains(r, ":") {
				d.problem(fmt.Sprintf("permissions.%s[%d]", key, i), "%q is no rule: want server:tool, with * for any", r)
			}
		}
	}
	d.oneOf("sandbox.require", c.Sandbox.Require, "full", "best")
	d.oneOf("sandbox.jit", c.Sandbox.JIT, "auto", "on", "off")
	d.oneOf("embedding.provider", c.Embedding.Provider, "local", "openai", "folder", "none")
	if c.Embedding.Provider == "openai" && c.Embedding.URL == "" {
		d.problem("embedding.url", "is needed with the provider openai")
	}
	if c.Embedding.Provider == "folder" && c.Embedding.Path == "" {
		d.problem("embedding.path", "is needed with the provider folder")
	}
	d.listen(c.HTTP)
}

func (d *decoder) listen(h HTTP) {
	if h.Listen == "" {
		return
	}
	host, _, err := net.SplitHostPort(h.Listen)
	if err != nil {
		d.problem("http.listen", "%q is no address: want host:port, for example 127.0.0.1:7777", h.Listen)
		return
	}
	ip := net.ParseIP(host)
	if loopback := host == "localhost" || ip != nil && ip.IsLoopback(); !loopback && h.Token == "" {
		d.problem("http.listen", "%q can be reached from other machines: set http.token", h.Listen)
	}
}

// server checks and expands one entry of mcpServers.
func (d *decoder) server(name string, s *Server, lookup Lookup) {
	path := join("mcpServers", name)
	if strings.TrimSpace(name) == "" || strings.ContainsRune(name, ':') {
		d.problem(path, "a server's name must not be empty or hold a colon")
	}
	switch s.Type { // other clients' words for the same
	case "streamable-http", "streamableHttp", "streamable_http":
		s.Type = TypeHTTP
	}
	d.oneOf(join(path, "type"), s.Type, TypeStdio, TypeHTTP, TypeSSE)
	d.oneOf(join(path, "start"), s.Start, StartEager, StartLazy)
	d.oneOf(join(path, "approval"), s.Approval, ApprovalAllow, ApprovalAsk, ApprovalDeny)
	if s.Command != "" && s.URL != "" {
		d.problem(path, "has both a command and a url: keep one")
	}
	for variable := range s.Env {
		if variable == "" || strings.ContainsAny(variable, "=\x00") {
			d.problem(join(path, "env"), "%q is no name of a variable", variable)
		}
	}
	e := expander{lookup: lookup}
	e.server(s)
	if s.Problem == "" {
		s.Problem = unusable(*s)
	}
	if s.Problem != "" && !s.Disabled {
		d.warn(path, "this server cannot be started: %s", s.Problem)
	}
}

// unusable says why an entry cannot be started.
func unusable(s Server) string {
	if s.Transport() == TypeStdio {
		if strings.TrimSpace(s.Command) == "" {
			return "it has no command (nor a url)"
		}
		return ""
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "its url is no http or https address"
	}
	return ""
}

// Names of our file, in the order in which they are looked for in a folder.
var fileNames = []string{"pml.json", ".mcp.json"}

// Find returns the file to read: explicit when given; pml.json or .mcp.json in
// dir; pml/pml.json in the configuration folder of home. It is empty when there
// is none. An explicit file that does not exist is an error.
func Find(explicit, dir, home string) (string, error) {
	if explicit != "" {
		if _, err := os.Stat(explicit); err != nil {
			return "", fmt.Errorf("configuration: %w", err)
		}
		return explicit, nil
	}
	var candidates []string
	for _, name := range fileNames {
		candidates = append(candidates, filepath.Join(dir, name))
	}
	if home != "" {
		candidates = append(candidates, filepath.Join(home, ".config", "pml", "pml.json"))
	}
	for _, path := range candidates {
		info, err := os.Stat(path)
		switch {
		case err == nil && info.Mode().IsRegular():
			return path, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
			return "", fmt.Errorf("configuration: %w", err)
		}
	}
	return "", nil
}
