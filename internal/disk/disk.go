// Package disk sees to it that files outlive a power cut.
package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// SyncTree sees a folder and all that is below it to disk. Symbolic links are not
// followed.
func SyncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		return Sync(path)
	})
}

// Sync sees one file, or the names in one folder, to disk.
func Sync(path string) error {
	f, err := os.Open(path) //nolint:gosec // paths below our own data directory
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
