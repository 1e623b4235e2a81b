package upstreamtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Command is a program with its first arguments.
type Command struct {
	Path string
	Args []string
}

var install struct {
	once sync.Once
	dir  string
	err  string
}

// NPM installs the pinned test servers (scripts/test-servers) under the
// repository's .tools/servers, once for all test binaries, and returns how to
// start the given packages, by name. Without npm the test fails: these servers
// are part of what is promised.
func NPM(t testing.TB, packages ...string) map[string]Command {
	t.Helper()
	install.once.Do(installServers)
	if install.err != "" {
		t.Fatal(install.err)
	}
	node := filepath.Join(install.dir, "node_modules", ".bin", "node")
	out := map[string]Command{}
	for _, p := range packages {
		bin := filepath.Base(p)
		if strings.HasPrefix(p, "@modelcontextprotocol/") {
			bin = "mcp-" + bin
		}
		script, err := filepath.EvalSymlinks(filepath.Join(install.dir, "node_modules", ".bin", bin))
		if err != nil {
			t.Fatalf("%s is not among the servers of scripts/test-servers/package.json: %v", p, err)
		}
		out[p] = Command{Path: node, Args: []string{script}}
	}
	return out
}

// installServers runs npm ci when the lock file is another than the installed one.
func installServers() {
	root, err := repository()
	if err != nil {
		install.err = err.Error()
		return
	}
	source := filepath.Join(root, "scripts", "test-servers")
	install.dir = filepath.Join(root, ".tools", "servers")
	if err := os.MkdirAll(install.dir, 0o755); err != nil { //nolint:gosec // a build folder
		install.err = err.Error()
		return
	}
	lock, err := os.OpenFile(filepath.Join(install.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644) //nolint:gosec // a build folder
	if err != nil {
		install.err = err.Error()
		return
	}
	defer func() { _ = lock.Close() }() // lets go of the lock as well
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		install.err = err.Error()
		return
	}
	install.err = npmCI(source, install.dir)
}

// npmCI returns what went wrong, in words for a person.
func npmCI(source, dir string) string {
	for _, name := range []string{"package.json", "package-lock.json"} {
		want, err := os.ReadFile(filepath.Join(source, name)) //nolint:gosec // our own file
		if err != nil {
			return err.Error()
		}
		if name == "package-lock.json" {
			if have, err := os.ReadFile(filepath.Join(dir, "installed.json")); err == nil && string(have) == string(want) { //nolint:gosec // our own file
				return ""
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), want, 0o644); err != nil { //nolint:gosec // a build folder
			return err.Error()
		}
	}
	cmd := exec.Command("npm", "ci", "--no-audit", "--no-fund") //nolint:noctx // ends by itself
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PUPPETEER_SKIP_DOWNLOAD=1", "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "the test servers could not be installed: npm ci in " + dir + ": " + err.Error() +
			"\n(npm and a package registry are needed)\n" + string(out)
	}
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json")) //nolint:gosec // our own file
	if err != nil {
		return err.Error()
	}
	if err := os.WriteFile(filepath.Join(dir, "installed.json"), lock, 0o644); err != nil { //nolint:gosec // a build folder
		return err.Error()
	}
	return ""
}

// repository is the folder of go.mod, found from this file.
func repository() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Dir(file)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", os.ErrNotExist
		}
		dir = parent
	}
}
