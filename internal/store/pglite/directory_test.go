package pglite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pml-run/pml/internal/fault"
)

func TestCheckDirectory(t *testing.T) {
	t.Parallel()
	write := func(dir, name, content string) error {
		return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)
	}
	for name, c := range map[string]struct {
		prepare func(dir string) error
		want    bool
		refused bool
	}{
		"missing":       {prepare: func(dir string) error { return os.Remove(dir) }},
		"empty":         {prepare: func(string) error { return nil }},
		"database":      {prepare: func(dir string) error { return write(dir, "PG_VERSION", "18\n") }, want: true},
		"other version": {prepare: func(dir string) error { return write(dir, "PG_VERSION", "17\n") }, refused: true},
		"other files":   {prepare: func(dir string) error { return write(dir, "notes.txt", "") }, refused: true},
		"open to others": {prepare: func(dir string) error {
			return errors.Join(write(dir, "PG_VERSION", "18\n"), os.Chmod(dir, 0o755))
		}, refused: true},
		"a file": {prepare: func(dir string) error {
			return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600))
		}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			if err := errors.Join(os.Mkdir(dir, 0o700), c.prepare(dir)); err != nil {
				t.Fatal(err)
			}
			got, err := checkDirectory(dir)
			if got != c.want || (err != nil) != c.refused || c.refused && fault.CodeOf(err) != fault.StorageUnavailable {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestFailedInitialisationLeavesNothing(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	broken := errors.New("broken")
	err := initialise(filepath.Join(parent, "data"), func(dir string) error {
		return errors.Join(os.WriteFile(filepath.Join(dir, "half"), nil, 0o600), broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
