//go:build !unix

package bert

import "os"

// mapping is a file in memory.
type mapping struct {
	data  []byte
	close func() error
}

// mapFile reads a whole file.
func mapFile(path string) (mapping, error) {
	data, err := os.ReadFile(path)
	return mapping{data, func() error { return nil }}, err
}
