//go:build !linux

package jail

import (
	"context"

	"github.com/pml-run/pml/internal/sandbox/jail/shim"
)

func (s Spec) job() shim.Job { return shim.Job{Binary: s.Binary, Args: s.Args} }

// Detect asks the kernel which layers it has: none outside Linux.
func Detect() Support {
	return Support{Missing: []string{"resource limits, seccomp and Landlock: this system is not Linux"}}
}

// Libraries returns what a binary must be able to read: nothing restricts it here.
func Libraries(context.Context, string) Reads { return Reads{} }
