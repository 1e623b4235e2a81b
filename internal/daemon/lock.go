package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// OwnedError says that another gateway owns the data folder; it serves on Socket.
type OwnedError struct {
	PID    int
	Socket string
}

// Error implements error.
func (e *OwnedError) Error() string {
	return fmt.Sprintf("the data folder belongs to a running gateway (pid %d)", e.PID)
}

// lock is the ownership of a data folder. The kernel gives it up with the process.
type lock struct{ file *os.File }

// acquire takes the folder's lock and writes our pid into it, or says who has it.
func acquire(home string) (*lock, error) {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(home, "gateway.lock"), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // our own folder
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		owner, _ := io.ReadAll(io.LimitReader(f, 20))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(owner))) // 0 while the owner writes it
		return nil, errors.Join(&OwnedError{PID: pid, Socket: socketPath(home)}, f.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock data folder: %w", err), f.Close())
	}
	if err := writePID(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &lock{f}, nil
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	return nil
}

func (l *lock) release() { _ = l.file.Close() }

// maxSocketPath is what every system's sockaddr_un holds, with a zero byte.
const maxSocketPath = 100

// socketPath is where the gateway of a data folder listens. A folder with a long
// path has its socket in a private folder under the system's temporary one.
func socketPath(home string) string {
	path := filepath.Join(home, "gateway.sock")
	if len(path) <= maxSocketPath {
		return path
	}
	sum := sha256.Sum256([]byte(home))
	return filepath.Join(os.TempDir(), fmt.Sprintf("pml-%d", os.Getuid()), hex.EncodeToString(sum[:8])+".sock")
}
