package jail

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pml-run/pml/internal/sandbox/jail/shim"
)

func TestMain(m *testing.M) {
	MaybeExec()
	os.Exit(m.Run())
}

func TestLayers(t *testing.T) {
	t.Parallel()
	if got, want := Full().Without(Layers{Seccomp: true}), (Layers{Rlimits: true, Landlock: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if Full().Without(Full()).Any() {
		t.Error("something is left without everything")
	}
}

// TestNoLayers runs without the shim.
func TestNoLayers(t *testing.T) {
	t.Parallel()
	name, args := Spec{Binary: "/bin/deno", Args: []string{"run"}}.Command("/bin/pml")
	if name != "/bin/deno" || !slices.Equal(args, []string{"run"}) {
		t.Errorf("%s %v", name, args)
	}
}

// TestShimFails says what is wrong on stderr and ends with a status of its own.
func TestShimFails(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, missing := Spec{Binary: "/no/such/file", Layers: Full()}.Command(self)
	for name, args := range map[string][]string{"no such binary": missing, "no job": {shim.Arg, "x"}, "cut short": missing[:5]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), self, args...)
			_, err := cmd.Output()
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || exit.ExitCode() != shim.Failed || !strings.HasPrefix(string(exit.Stderr), shim.Arg+": ") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestLibraries(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("nothing is restricted outside Linux")
	}
	if r := Libraries(t.Context(), "/etc/passwd"); r.Loader != "" || r.Files != nil || r.Dirs != nil {
		t.Errorf("a file that is no program needs %+v", r)
	}
	r := Libraries(t.Context(), "/bin/ls")
	if r.Loader == "" || !slices.ContainsFunc(r.Files, func(f string) bool { return strings.Contains(f, "libc.") }) {
		t.Errorf("ls reads %+v, want its loader and libc", r)
	}
}

func TestDetect(t *testing.T) {
	t.Parallel()
	s := Detect()
	if s.Layers != Full() && len(s.Missing) == 0 {
		t.Errorf("%+v does not say what is missing", s)
	}
}
