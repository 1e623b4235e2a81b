//go:build !linux

package jail

import (
	"context"
	"errors"
)

func (s Spec) exec() error { return errors.New("the jail needs Linux") }

// Detect asks the kernel which layers it has: none outside Linux.
func Detect() Support {
	return Support{Missing: []string{"resource limits, seccomp and Landlock: this system is not Linux"}}
}

// Libraries returns what a binary must be able to read: nothing restricts it here.
func Libraries(context.Context, string) Reads { return Reads{} }
