package sandbox

import (
	"bytes"
	"encoding/base64"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pml-run/pml/internal/sandbox/jail"
)

// inJail runs a command as a worker is run and returns how it ended and its stdout.
func inJail(t *testing.T, s jail.Spec) (*os.ProcessState, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.Reads = jail.Libraries(t.Context(), s.Binary)
	name, args := s.Command(self)
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = workerEnv, "/", &out, &errs
	if err := cmd.Run(); err != nil {
		t.Logf("%v, stderr: %s", err, errs.String())
	}
	return cmd.ProcessState, out.String()
}

func killedBySystem(s *os.ProcessState) bool {
	status, ok := s.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && (status.Signal() == syscall.SIGKILL || status.Signal() == syscall.SIGXCPU)
}

// script runs a script of testdata in Deno inside the jail and returns what it said
// by the name of each line.
func script(t *testing.T, file string, layers jail.Layers, flags ...string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	url := "data:application/javascript;base64," + base64.StdEncoding.EncodeToString(text)
	args := append([]string{"run", "--no-prompt", "--no-config", "--no-lock", "--no-remote", "--no-npm", "--no-code-cache"}, flags...)
	state, out := inJail(t, jail.Spec{Binary: denoPath(t), Layers: layers, Args: append(args, url)})
	if !state.Success() {
		t.Fatalf("%s ended with %s after %q", file, state, out)
	}
	results := map[string]string{}
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		i := strings.LastIndexByte(line, ' ')
		if strings.Contains(line, "Error: ") {
			i = strings.Index(line, " ")
		}
		results[line[:i]] = line[i+1:]
	}
	return results
}

// TestExercise proves that a Deno in the full jail can do all that programs need. It
// is the first test to run with a new version of Deno.
func TestExercise(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--v8-flags=--max-old-space-size=208", "--v8-flags=--jitless"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			results := script(t, "testdata/exercise.js", jail.Full(), flag)
			if len(results) != 24 {
				t.Errorf("%d results, want 24", len(results))
			}
			for name, result := range results {
				if result != "ok" {
					t.Errorf("%s: %s", name, result)
				}
			}
		})
	}
}

// nativeCalls lists what native code inside a worker gets when it tries to leave, by
// the layers that are in place. An empty text is whatever the kernel says by itself.
var nativeCalls = map[string]struct{ seccomp, landlock, full string }{
	"open passwd":          {"allowed", "EACCES", "EACCES"},
	"open environ":         {"allowed", "EACCES", "EACCES"},
	"open proc mem":        {"allowed", "EACCES", "EACCES"},
	"open dev":             {"allowed", "EACCES", "EACCES"},
	"list root":            {"allowed", "EACCES", "EACCES"},
	"create file":          {"", "EACCES", "EACCES"},
	"mkdir":                {"", "EACCES", "EACCES"},
	"rename":               {"ENOSYS", "", "ENOSYS"},
	"link":                 {"ENOSYS", "", "ENOSYS"},
	"symlink":              {"ENOSYS", "EACCES", "ENOSYS"},
	"chmod":                {"ENOSYS", "", "ENOSYS"},
	"chroot":               {"ENOSYS", "", "ENOSYS"},
	"mount":                {"ENOSYS", "EPERM", "ENOSYS"},
	"socket inet":          {"EACCES", "allowed", "EACCES"},
	"socket udp":           {"EACCES", "allowed", "EACCES"},
	"socket inet6":         {"EACCES", "", "EACCES"},
	"socket unix":          {"EACCES", "allowed", "EACCES"},
	"socket netlink":       {"EACCES", "allowed", "EACCES"},
	"socketpair inet":      {"EPERM", "", "EPERM"},
	"execve":               {"EPERM", "EACCES", "EPERM"},
	"execveat worker":      {"EBADF", "EBADF", "EBADF"},
	"execveat path":        {"EPERM", "EACCES", "EPERM"},
	"fcntl dup above":      {"EINVAL", "EINVAL", "EINVAL"},
	"dup2":                 {"ENOSYS", "EBADF", "ENOSYS"},
	"dup3":                 {"ENOSYS", "EBADF", "ENOSYS"},
	"clone user namespace": {"EPERM", "", "EPERM"},
	"clone3":               {"ENOSYS", "", "ENOSYS"},
	"unshare":              {"ENOSYS", "", "ENOSYS"},
	"setns":                {"ENOSYS", "", "ENOSYS"},
	"ptrace":               {"ENOSYS", "EPERM", "ENOSYS"},
	"process_vm_readv":     {"ENOSYS", "", "ENOSYS"},
	"kill parent":          {"ENOSYS", "EPERM", "ENOSYS"},
	"tgkill parent":        {"EPERM", "EPERM", "EPERM"},
	"pidfd_open":           {"ENOSYS", "", "ENOSYS"},
	"setrlimit":            {"ENOSYS", "", "ENOSYS"},
	"prlimit set":          {"EPERM", "", "EPERM"},
	"prlimit get":          {"allowed", "allowed", "allowed"},
	"io_uring_setup":       {"ENOSYS", "", "ENOSYS"},
	"bpf":                  {"ENOSYS", "", "ENOSYS"},
	"userfaultfd":          {"ENOSYS", "", "ENOSYS"},
	"perf_event_open":      {"ENOSYS", "", "ENOSYS"},
	"keyctl":               {"ENOSYS", "", "ENOSYS"},
	"memfd_create":         {"ENOSYS", "", "ENOSYS"},
	"personality":          {"ENOSYS", "", "ENOSYS"},
	"modify_ldt":           {"ENOSYS", "", "ENOSYS"},
	"setuid":               {"ENOSYS", "", "ENOSYS"},
	"setpriority":          {"ENOSYS", "", "ENOSYS"},
	"syslog":               {"ENOSYS", "", "ENOSYS"},
	"prctl dumpable":       {"EINVAL", "", "EINVAL"},
	"tiocsti":              {"ENOTTY", "", "ENOTTY"},
	"landlock again":       {"ENOSYS", "allowed", "ENOSYS"},
	"getpid":               {"allowed", "allowed", "allowed"},
}

// TestNativeEscapes gives native code every permission of Deno's and shows which
// layer of the jail stops which system call. No call that could hurt is made where
// no layer stops it, so processes are made under seccomp only.
func TestNativeEscapes(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("the script names system calls by x86-64's numbers")
	}
	runs := map[string]jail.Layers{
		"full":     jail.Full(),
		"seccomp":  {Rlimits: true, Seccomp: true},
		"landlock": {Rlimits: true, Landlock: true},
	}
	for name, layers := range runs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := "testdata/native.js"
			if layers != jail.Full() {
				file = withoutHarm(t, file, layers)
			}
			results := script(t, file, layers, "--allow-all")
			for call, want := range nativeCalls {
				w := map[string]string{"full": want.full, "seccomp": want.seccomp, "landlock": want.landlock}[name]
				if got, ran := results[call]; ran && w != "" && got != w {
					t.Errorf("%s: %s, want %s", call, got, w)
				}
			}
			if layers.Seccomp {
				for _, call := range []string{"fork", "vfork", "clone process", "kill all", "kill parent"} {
					if got := results[call]; got != "ENOSYS" && got != "EPERM" {
						t.Errorf("%s: %q", call, got)
					}
				}
			}
		})
	}
}

// withoutHarm is the script less what would have an effect on this machine where
// the layer that stops it is off.
func withoutHarm(t *testing.T, file string, layers jail.Layers) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	harmful := []string{`"create file"`, `"mkdir"`}
	if !layers.Seccomp {
		harmful = []string{
			`"fork"`, `"vfork"`, `"clone`, `"kill all"`, `"setrlimit"`, `"prlimit set"`, `"setuid"`, `"unshare"`, `"chroot"`, `"personality"`, `"chmod"`,
		}
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if !slices.ContainsFunc(harmful, func(name string) bool { return strings.HasPrefix(line, "attempt("+name) }) {
			b.WriteString(line)
		}
	}
	out := t.TempDir() + "/native.js"
	if err := os.WriteFile(out, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNothingInherited shows that a worker's environment holds nothing of ours.
func TestNothingInherited(t *testing.T) {
	t.Setenv("PML_TEST_SECRET", "inherited")
	listing := t.TempDir() + "/list.js"
	text := `console.log("environment " + Object.keys(Deno.env.toObject()).sort().join(","));
console.log("secret " + ("PML_TEST_SECRET" in Deno.env.toObject()));`
	if err := os.WriteFile(listing, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	results := script(t, listing, jail.Layers{Rlimits: true}, "--allow-all")
	if got, want := results["environment"], "DENO_DIR,DENO_NO_UPDATE_CHECK,HOME,NO_COLOR,TZ"; got != want {
		t.Errorf("environment %s, want %s", got, want)
	}
	if results["secret"] != "false" {
		t.Error("a variable of the gateway's reached the worker")
	}
}
