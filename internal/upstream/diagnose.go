package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/pml-run/pml/internal/config"
	"github.com/pml-run/pml/internal/fault"
)

// commandNotFound says what to check when the command of a server is not there.
func commandNotFound(server, command, path string, err error) error {
	if os.IsPermission(err) {
		return fault.New(fault.UpstreamUnavailable, "server %q: %s may not be executed", server, command).
			WithHint("make the file executable (chmod +x) or name the right program in \"command\"")
	}
	if strings.ContainsRune(command, '/') {
		return fault.New(fault.UpstreamUnavailable, "server %q: there is no program %s", server, command).
			WithHint("check the path in \"command\"; a relative one starts at \"cwd\"")
	}
	if path == "" {
		path = "(empty)"
	}
	return fault.New(fault.UpstreamUnavailable, "server %q: the command %q was not found on PATH", server, command).
		WithHint("install it, or write its full path (which %s) in \"command\". PATH is %s", command, path)
}

// lastWordsWait bounds how long the end of a child is waited for, so that its
// exit status and last words can go with the error.
const lastWordsWait = 1500 * time.Millisecond

// diagnoseStart explains a failed connect.
func (s *session) diagnoseStart(ctx context.Context, err error) error {
	if s.opts.config.Transport() != config.TypeStdio {
		return diagnoseHTTP(s.opts.name, err)
	}
	if s.stdio == nil || s.stdio.conn == nil { // the child was never there
		return fault.New(fault.UpstreamUnavailable, "server %q could not be started: %v", s.opts.name, err).
			WithHint("run the command by hand: %s", commandLine(s.opts.config))
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.New(fault.UpstreamUnavailable, "server %q started but did not answer the handshake in time", s.opts.name).
			WithHint("%s", joinHints("it may wait for something, or be no MCP server: run it by hand: "+commandLine(s.opts.config), lastWords(s.stderr())))
	}
	if how, ended := s.waitExit(); ended {
		return s.died("ended before the handshake", how)
	}
	return fault.New(fault.UpstreamUnavailable, "server %q: the handshake failed: %v", s.opts.name, err).
		WithHint("%s", joinHints("check that the command is an MCP server: "+commandLine(s.opts.config), lastWords(s.stderr())))
}

// waitExit waits shortly for the child's end.
func (s *session) waitExit() (how string, ended bool) {
	if s.stdio == nil || s.stdio.conn == nil {
		return "", false
	}
	t := time.NewTimer(lastWordsWait)
	defer t.Stop()
	select {
	case <-s.stdio.conn.process.Done():
	case <-t.C:
	}
	return s.stdio.conn.exit()
}

// died is the error for a child that has ended by itself.
func (s *session) died(when, how string) error {
	stderr := s.stderr()
	return fault.New(fault.UpstreamUnavailable, "server %q %s (%s)", s.opts.name, when, how).
		WithHint("%s", joinHints(hintFor(stderr, s.opts.config), lastWords(stderr)))
}

// hintFor recognises the usual reasons in the last words of a server.
func hintFor(stderr string, c config.Server) string {
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(stderr, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "ECONNREFUSED", "network request", "Could not resolve"):
		return "it could not reach the network (a package registry or a service): check the connection and the proxy variables"
	case has("E404", "404 Not Found"):
		return "the package was not found: check its name and version in \"args\""
	case has("EACCES", "permission denied", "Permission denied"):
		return "it was denied access to a file: check permissions and \"cwd\""
	case has("Could not read package.json") && strings.Contains(stderr, "_npx"):
		return "an earlier install was cut off and left npx's cache broken: delete the folder _npx that it names"
	case has("Cannot find module", "ModuleNotFoundError", "MODULE_NOT_FOUND"):
		return "it is not fully installed: install its dependencies"
	case has("API_KEY", "api key", "API key", "TOKEN", "environment variable", "env var"):
		return "it seems to miss a setting: check \"env\" of the server"
	}
	return "run it by hand to see more: " + commandLine(c)
}

// diagnoseHTTP explains a failed connect over HTTP.
func diagnoseHTTP(server string, err error) error {
	e := fault.New(fault.UpstreamUnavailable, "server %q cannot be reached: %v", server, plain(err))
	text := err.Error()
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return e.WithHint("the host name does not resolve: check \"url\" and the connection")
	case strings.Contains(text, "connection refused"):
		return e.WithHint("nothing listens there: start the server, or check host and port in \"url\"")
	case strings.Contains(text, "Unauthorized"), strings.Contains(text, "Forbidden"):
		return e.WithHint("it wants other credentials: check \"headers\" (for example Authorization)")
	case strings.Contains(text, "Not Found"), strings.Contains(text, "Method Not Allowed"):
		return e.WithHint("the address is no MCP endpoint: check the path in \"url\" (often /mcp)")
	case strings.Contains(text, "certificate"), strings.Contains(text, "x509"):
		return e.WithHint("its certificate is not trusted: add its authority with SSL_CERT_FILE")
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return e.WithHint("it did not answer in time: check that it runs and that no firewall is between")
	}
	return e.WithHint("check \"url\" and \"headers\" of the server")
}

// plain drops the URL from a url.Error: it may hold a key.
func plain(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// callFailed turns what the SDK returned for a call into our words.
func (s *session) callFailed(err error) error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e
	}
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return s.refused(wire)
	}
	if s.stdio != nil {
		if how, ended := s.waitExit(); ended {
			return s.died("ended during the call", how)
		}
		return fault.New(fault.UpstreamUnavailable, "the connection to server %q was lost during the call: %v", s.opts.name, err).
			WithHint("%s", joinHints("it is being restarted; whether the call had an effect is unknown", lastWords(s.stderr())))
	}
	return diagnoseHTTP(s.opts.name, err)
}

// refused is an answer in the protocol's own error form: made up by our
// transport, or the server's.
func (s *session) refused(wire *jsonrpc.Error) error {
	switch wire.Code {
	case codeTooLarge:
		return fault.New(fault.OutputLimit, "server %q: %s", s.opts.name, wire.Message).
			WithHint("ask for less: most tools have a limit, a page or a path")
	case codeTransport:
		return fault.New(fault.UpstreamUnavailable, "server %q: %s", s.opts.name, wire.Message).
			WithHint("the session goes on; try again, and look at the server if it stays")
	case jsonrpc.CodeInvalidParams:
		return fault.New(fault.InvalidToolArguments, "server %q refused the arguments: %s", s.opts.name, wire.Message).
			WithHint("look at the tool's schema")
	}
	return fault.New(fault.ToolFailed, "server %q answered with the protocol error %d: %s", s.opts.name, wire.Code, wire.Message)
}

// lastWords are the last lines of stderr, for a hint.
func lastWords(stderr string) string {
	lines := tailLines(stderr, 5)
	if len(lines) == 0 {
		return ""
	}
	return "its last words: " + strings.Join(lines, " | ")
}

// tailLines are the last n lines that are not blank, each cut at 300 bytes.
func tailLines(text string, n int) []string {
	var lines []string
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, strings.ToValidUTF8(l[:min(len(l), 300)], ""))
		}
	}
	return lines[max(0, len(lines)-n):]
}

func joinHints(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "; ")
}

// commandLine is the command as it stands in the file: variables by name.
func commandLine(c config.Server) string {
	command, args := c.Written()
	var b strings.Builder
	b.WriteString(command)
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\"'$") {
			a = fmt.Sprintf("%q", a)
		}
		b.WriteByte(' ')
		b.WriteString(a)
	}
	return b.String()
}
