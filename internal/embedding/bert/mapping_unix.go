//go:build unix

package bert

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// mapping is a file in memory.
type mapping struct {
	data  []byte
	close func() error
}

// mapFile maps a whole file for reading.
func mapFile(path string) (mapping, error) {
	f, err := os.Open(path) //nolint:gosec // the model's folder is configuration
	if err != nil {
		return mapping{}, err
	}
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return mapping{close: func() error { return nil }}, errors.Join(err, f.Close()) // an empty file cannot be mapped
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err := errors.Join(err, f.Close()); err != nil {
		return mapping{}, err
	}
	return mapping{data, func() error { return unix.Munmap(data) }}, nil
}
