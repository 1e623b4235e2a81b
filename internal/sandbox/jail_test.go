package sandbox

import (
	"bytes"
	"encoding/base64"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/pml-run/pml/internal/deno/denotest"
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
	state, out := inJail(t, jail.Spec{Binary: denotest.Path(t), Layers: layers, Args: append(args, url)})
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
// the layers that are in place: "allowed" or an errno, "*" for whatever this kernel
// says by itself, "-" for a call that is not made because nothing would stop it.
var nativeCalls = map[string]struct{ seccomp, landlock, full string }{
	"open passwd":          {"allowed", "EACCES", "EACCES"},
	"open environ":         {"allowed", "EACCES", "EACCES"},
	"open proc mem":        {"allowed", "EACCES", "EACCES"},
	"open dev":             {"allowed", "EACCES", "EACCES"},
	"list root":            {"allowed", "EACCES", "EACCES"},
	"create file":          {"allowed", "EACCES", "EACCES"},
	"mkdir":                {"allowed", "EACCES", "EACCES"},
	"unlink":               {"ENOENT", "ENOENT", "ENOENT"},
	"rename":               {"ENOSYS", "ENOENT", "ENOSYS"},
	"link":                 {"ENOSYS", "EACCES", "ENOSYS"},
	"symlink":              {"ENOSYS", "EACCES", "ENOSYS"},
	"chmod":                {"ENOSYS", "-", "ENOSYS"},
	"chroot":               {"ENOSYS", "-", "ENOSYS"},
	"mount":                {"ENOSYS", "EPERM", "ENOSYS"},
	"socket inet":          {"EACCES", "allowed", "EACCES"},
	"socket udp":           {"EACCES", "allowed", "EACCES"},
	"socket inet6":         {"EACCES", "*", "EACCES"},
	"socket unix":          {"EACCES", "allowed", "EACCES"},
	"socket netlink":       {"EACCES", "allowed", "EACCES"},
	"socketpair inet":      {"EPERM", "EOPNOTSUPP", "EPERM"},
	"execve":               {"EPERM", "EACCES", "EPERM"},
	"execveat worker":      {"EBADF", "EBADF", "EBADF"},
	"execveat path":        {"EPERM", "EACCES", "EPERM"},
	"fcntl dup above":      {"EINVAL", "EINVAL", "EINVAL"},
	"dup2":                 {"ENOSYS", "EBADF", "ENOSYS"},
	"dup3":                 {"ENOSYS", "EBADF", "ENOSYS"},
	"fork":                 {"ENOSYS", "-", "ENOSYS"},
	"vfork":                {"ENOSYS", "-", "ENOSYS"},
	"clone process":        {"EPERM", "-", "EPERM"},
	"clone user namespace": {"EPERM", "-", "EPERM"},
	"clone3":               {"ENOSYS", "-", "ENOSYS"},
	"unshare":              {"ENOSYS", "-", "ENOSYS"},
	"setns":                {"ENOSYS", "EINVAL", "ENOSYS"},
	"ptrace":               {"ENOSYS", "EPERM", "ENOSYS"},
	"process_vm_readv":     {"ENOSYS", "*", "ENOSYS"},
	"kill parent":          {"ENOSYS", "EPERM", "ENOSYS"},
	"kill all":             {"ENOSYS", "-", "ENOSYS"},
	"tgkill parent":        {"EPERM", "EPERM", "EPERM"},
	"pidfd_open":           {"ENOSYS", "*", "ENOSYS"},
	"setrlimit":            {"ENOSYS", "-", "ENOSYS"},
	"prlimit set":          {"EPERM", "-", "EPERM"},
	"prlimit get":          {"allowed", "allowed", "allowed"},
	"io_uring_setup":       {"ENOSYS", "*", "ENOSYS"},
	"bpf":                  {"ENOSYS", "*", "ENOSYS"},
	"userfaultfd":          {"ENOSYS", "*", "ENOSYS"},
	"perf_event_open":      {"ENOSYS", "*", "ENOSYS"},
	"keyctl":               {"ENOSYS", "*", "ENOSYS"},
	"memfd_create":         {"ENOSYS", "allowed", "ENOSYS"},
	"personality":          {"ENOSYS", "-", "ENOSYS"},
	"modify_ldt":           {"ENOSYS", "*", "ENOSYS"},
	"setuid":               {"ENOSYS", "-", "ENOSYS"},
	"setpriority":          {"ENOSYS", "*", "ENOSYS"},
	"syslog":               {"ENOSYS", "*", "ENOSYS"},
	"prctl dumpable":       {"EINVAL", "allowed", "EINVAL"},
	"tiocsti":              {"ENOTTY", "ENOTTY", "ENOTTY"},
	"landlock again":       {"ENOSYS", "allowed", "ENOSYS"},
	"getpid":               {"allowed", "allowed", "allowed"},
}

// TestNativeEscapes gives native code every permission of Deno's and shows which
// layer of the jail stops which system call.
func TestNativeEscapes(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("the script names system calls by x86-64's numbers")
	}
	runs := map[string]struct {
		layers jail.Layers
		want   func(seccomp, landlock, full string) string
	}{
		"full":     {jail.Full(), func(_, _, full string) string { return full }},
		"seccomp":  {jail.Layers{Rlimits: true, Seccomp: true}, func(seccomp, _, _ string) string { return seccomp }},
		"landlock": {jail.Layers{Rlimits: true, Landlock: true}, func(_, landlock, _ string) string { return landlock }},
	}
	for name, run := range runs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			skip := map[string]bool{}
			for call, w := range nativeCalls {
				skip[call] = run.want(w.seccomp, w.landlock, w.full) == "-"
			}
			results := script(t, nativeScript(t, skip), run.layers, "--allow-all")
			for call, w := range nativeCalls {
				got, ran := results[call]
				switch want := run.want(w.seccomp, w.landlock, w.full); {
				case want == "-" && ran:
					t.Errorf("%s was to be left out", call)
				case want == "-" || want == "*" && ran:
				case !ran:
					t.Errorf("%s was not tried", call)
				case got != want:
					t.Errorf("%s: %s, want %s", call, got, want)
				}
			}
			for call := range results {
				if _, ok := nativeCalls[call]; !ok {
					t.Errorf("%s has no expectation", call)
				}
			}
		})
	}
}

// nativeScript is a copy of the script without some calls, which makes its files in
// a folder of the test's.
func nativeScript(t *testing.T, skip map[string]bool) string {
	t.Helper()
	text, err := os.ReadFile("testdata/native.js")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, `attempt("`), `"`); !ok || !strings.HasPrefix(line, "attempt(") || !skip[name] {
			b.WriteString(strings.ReplaceAll(line, `"/tmp/`, `"`+dir+"/"))
		}
	}
	out := dir + "/native.js"
	if err := os.WriteFile(out, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNothingInherited shows that a worker's environment holds nothing of ours, and
// that none of our files is open in it.
func TestNothingInherited(t *testing.T) {
	t.Setenv("PML_TEST_SECRET", "inherited")
	// A file of the gateway's.
	secret, err := os.Create(t.TempDir() + "/secret")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = secret.Close() }()
	listing := t.TempDir() + "/list.js"
	text := `console.log("environment " + Object.keys(Deno.env.toObject()).sort().join(","));
console.log("secret " + ("PML_TEST_SECRET" in Deno.env.toObject()));
const open = [];
for (const f of Deno.readDirSync("/proc/self/fd")) {
  let to = "gone";
  try { to = Deno.readLinkSync("/proc/self/fd/" + f.name).replace(/:.*/, ""); } catch { /* the listing's own */ }
  if (Number(f.name) <= 2 || /secret/.test(to)) open.push(f.name + "=" + to);
}
console.log("descriptors " + open.sort().join(","));`
	if err := os.WriteFile(listing, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	results := script(t, listing, jail.Layers{Rlimits: true}, "--allow-all")
	if got, want := results["environment"], "DENO_DIR,DENO_NO_UPDATE_CHECK,HOME,NO_COLOR,TZ"; got != want {
		t.Errorf("environment %s, want %s", got, want)
	}
	if got, want := results["descriptors"], "0=/dev/null,1=pipe,2=pipe"; got != want {
		t.Errorf("descriptors %s, want %s", got, want)
	}
	if results["secret"] != "false" {
		t.Error("a variable of the gateway's reached the worker")
	}
}
