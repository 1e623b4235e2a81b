//go:build !linux

package shim

// ExecFD is of no use here.
const ExecFD = 60

// Run never returns.
func Run([]string) { panic("the jail needs Linux") }
