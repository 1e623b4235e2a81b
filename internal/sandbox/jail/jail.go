// Package jail owns what the operating system is told to forbid a sandbox worker:
// resource limits, a seccomp filter and a Landlock ruleset, put in place by a shim
// (this same binary, started with Arg) that then executes the worker exactly once.
// It knows nothing of pools or protocols; package sandbox and main call it.
//
// Both filters are needed: Landlock alone leaves UDP and netlink sockets open,
// seccomp alone leaves files open.
package jail

import (
	"encoding/json"
	"fmt"
	"os"
)

// Arg is the first argument with which the binary runs as the shim.
const Arg = "__sandbox-exec"

// failed is the shim's exit status when it could not execute the worker.
const failed = 125

// Layers says which protections the shim puts in place.
type Layers struct {
	Rlimits  bool `json:"rlimits"`
	Seccomp  bool `json:"seccomp"`
	Landlock bool `json:"landlock"`
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
	Binary string   `json:"binary"`
	Args   []string `json:"args"`
	Layers Layers   `json:"layers"`
	Reads  Reads    `json:"reads"`
	Data   uint64   `json:"data,omitempty"` // RLIMIT_DATA in bytes; 0 = unlimited
	CPU    uint64   `json:"cpu,omitempty"`  // RLIMIT_CPU in seconds; 0 = unlimited
}

// Reads is what a worker may read besides its own binary.
type Reads struct {
	Loader string   `json:"loader,omitempty"` // the dynamic loader; the kernel executes it
	Files  []string `json:"files,omitempty"`
	Dirs   []string `json:"dirs,omitempty"` // with all that is below them
}

// Command returns the command line that runs s through the shim self.
func (s Spec) Command(self string) (string, []string, error) {
	if !s.Layers.Any() {
		return s.Binary, s.Args, nil
	}
	b, err := json.Marshal(s)
	if err != nil {
		return "", nil, fmt.Errorf("encode jail spec: %w", err)
	}
	return self, []string{Arg, string(b)}, nil
}

// MaybeExec turns this process into the shim if it was started as one, and then
// never returns. Call it before anything else in main and in TestMain.
func MaybeExec() {
	if len(os.Args) != 3 || os.Args[1] != Arg {
		return
	}
	var s Spec
	err := json.Unmarshal([]byte(os.Args[2]), &s)
	if err == nil {
		err = s.exec()
	}
	_, _ = os.Stderr.WriteString(Arg + ": " + err.Error() + "\n")
	os.Exit(failed) //nolint:forbidigo // the shim is a program of its own
}

// Support says which layers this system offers, and why not the others.
type Support struct {
	Layers      Layers
	LandlockABI int
	Missing     []string // one sentence for each layer that is not there
}
