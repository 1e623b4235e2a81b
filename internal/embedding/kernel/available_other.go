//go:build !amd64

package kernel

// Available lists the sets that this processor has.
func Available() []Set { return []Set{Portable()} }
