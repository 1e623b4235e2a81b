package disk_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pml-run/pml/internal/disk"
)

func TestSyncTree(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700),
		os.WriteFile(filepath.Join(dir, "a", "b", "file"), []byte("x"), 0o600),
		os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "a", "link")),
		disk.SyncTree(dir),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if err := disk.SyncTree(filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Errorf("a folder that is none: %v", err)
	}
}
