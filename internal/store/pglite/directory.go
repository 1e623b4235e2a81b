package pglite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pml-run/pml/internal/disk"
	"github.com/pml-run/pml/internal/fault"
)

// postgresMajor is the version of PostgreSQL that the pinned PGlite is.
const postgresMajor = "18"

// lockPoll is how often a lock that is held is tried again; flock cannot wait
// and be interrupted at once.
const lockPoll = 50 * time.Millisecond

// lockDirectory takes the lock beside dir, which the child inherits: it is free
// only when both the gateway and its child are gone. PGlite itself would start a
// second time on the same files without a word and destroy them.
func lockDirectory(ctx context.Context, dir string, wait time.Duration) (*os.File, error) {
	path := dir + ".lock"
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // beside our own data directory
	if err != nil {
		return nil, fmt.Errorf("open the lock of the data directory: %w", err)
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			busy := fault.New(fault.StorageUnavailable, "the data directory %s is in use by another gateway", dir)
			return nil, errors.Join(busy.WithHint("stop the other gateway, use another data directory, or set DATABASE_URL to a PostgreSQL that several can share"), f.Close())
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		}
	}
}

// checkDirectory reports whether dir holds a database. PGlite writes its files
// readable for all, so the directory itself must not be.
func checkDirectory(dir string) (initialised bool, err error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !info.IsDir() {
		return false, fault.New(fault.StorageUnavailable, "%s is not a directory", dir)
	}
	version, err := os.ReadFile(filepath.Join(dir, "PG_VERSION")) //nolint:gosec // in our own data directory
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(dir)
		if err == nil && len(entries) > 0 {
			err = fault.New(fault.StorageUnavailable, "%s holds files, but no database", dir).
				WithHint("move them away, or choose another data directory")
		}
		return false, err
	}
	if err != nil {
		return false, err
	}
	if info.Mode().Perm() != 0o700 {
		return false, fault.New(fault.StorageUnavailable, "the data directory %s has mode %04o: others could read the database", dir, info.Mode().Perm()).
			WithHint("run 'chmod 700 %s'", dir)
	}
	if v := strings.TrimSpace(string(version)); v != postgresMajor {
		return false, fault.New(fault.StorageUnavailable, "%s was written by PostgreSQL %s, this binary has %s", dir, v, postgresMajor).
			WithHint("export it with the release that wrote it ('pml db export'), then import the file with this one")
	}
	return true, nil
}

// initialise makes the database: in a directory of its own that gets its name only
// when it is whole and on the disk. initDB must fill the directory that it is given.
func initialise(dir string, initDB func(dir string) error) error {
	if err := removeTorn(dir); err != nil {
		return err
	}
	fresh := dir + ".new-" + strconv.Itoa(os.Getpid())
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return err
	}
	err := initDB(fresh)
	if err == nil {
		err = disk.SyncTree(fresh)
	}
	if err == nil {
		err = replaceEmpty(fresh, dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(fresh))
	}
	return disk.Sync(filepath.Dir(dir))
}

// removeTorn removes what interrupted attempts left; the caller holds the lock.
func removeTorn(dir string) error {
	torn, err := filepath.Glob(dir + ".new-*")
	for _, t := range torn {
		err = errors.Join(err, os.RemoveAll(t))
	}
	return err
}

// replaceEmpty renames; the target may be there, but only as an empty directory.
func replaceEmpty(from, to string) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(from, to)
}
