package config

import "os"

// Environ is this process's environment. It is read in this package only.
func Environ() []string { return os.Environ() }
