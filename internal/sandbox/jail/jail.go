// Package jail owns what the operating system is told to forbid a sandbox worker:
// resource limits, a seccomp filter and a Landlock ruleset, put in place by package
// shim (in a process of this same binary) which then executes the worker exactly
// once. It knows nothing of pools or protocols; package sandbox and main call it.
//
// Both filters are needed: Landlock alone leaves UDP and netlink sockets open,
// seccomp alone leaves files open.
package jail

import (
	"os"

	"github.com/pml-run/pml/internal/sandbox/jail/shim"
)

// Layers says which protections the shim puts in place.
type Layers struct {
	Rlimits  bool
	Seccomp  bool
	Landlock bool
}

// Full is every layer.
func Full() Layers { return Layers{Rlimits: true, Seccomp: true, Landlock: true} }

// Any reports whether the shim has anything to do.
func (l Layers) Any() bool { return l.Rlimits || l.Seccomp || l.Landlock }

// Without returns the layers of l that are not in off.
func (l Layers) Without(off Layers) Layers {
	return Layers{
		Rlimits:  l.Rlimits && !off.Rlimits,
		Seccomp:  l.Seccomp && !off.Seccomp,
		Landlock: l.Landlock && !off.Landlock,
	}
}

// Spec is one command to run in the jail.
type Spec struct {
	Binary string
	Args   []string
	Layers Layers
	Reads  Reads
	Data   uint64 // RLIMIT_DATA in bytes; 0 = unlimited
	CPU    uint64 // RLIMIT_CPU in seconds; 0 = unlimited
}

// Reads is what a worker may read besides its own binary.
type Reads struct {
	Loader string // the dynamic loader; the kernel executes it
	Files  []string
	Dirs   []string // with all that is below them
}

// Command returns the command line that runs s through the shim self.
func (s Spec) Command(self string) (string, []string) {
	if !s.Layers.Any() {
		return s.Binary, s.Args
	}
	return self, s.job().Command()
}

// MaybeExec turns this process into the shim if it was started as one, and then
// never returns. Call it before anything else in main and in TestMain. Where the
// system has a /proc, the shim has taken over long before main.
func MaybeExec() {
	if len(os.Args) > 1 && os.Args[1] == shim.Arg {
		shim.Run(os.Args[1:])
	}
}

// Support says which layers this system offers, and why not the others.
type Support struct {
	Layers      Layers
	LandlockABI int
	Missing     []string // one sentence for each layer that is not there
}
