package store_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/store/storetest"
)

// TestCallersDoNotSeeACrash kills the embedded database between calls: connections
// that died with it are replaced before a caller meets them.
func TestCallersDoNotSeeACrash(t *testing.T) {
	t.Parallel()
	opts, err := storetest.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	opts.DataDir = filepath.Join(t.TempDir(), "data")
	s, err := store.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	withTools(t, s, "read")
	tr := finished(begun(t, s), newCall("n1", 1, 1, "fs:read"))
	if err := syscall.Kill(store.ServerPID(s), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.FinishRun(t.Context(), tr, nil); err != nil {
			t.Fatal(err)
		}
	}
	if stats, err := s.ToolStatistics(t.Context()); err != nil || len(stats) != 1 || stats[0].Calls != 1 {
		t.Errorf("statistics %v, %v", stats, err)
	}
}
