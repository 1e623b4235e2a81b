package jail

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock by its raw system calls, for the calling thread: the shim executes the
// worker right after, so no other thread matters.

const (
	accessExecute uint64 = unix.LANDLOCK_ACCESS_FS_EXECUTE
	accessRead    uint64 = unix.LANDLOCK_ACCESS_FS_READ_FILE
	accessReadDir uint64 = unix.LANDLOCK_ACCESS_FS_READ_DIR
)

// rule grants access below one path. A path that does not exist grants nothing.
type rule struct {
	path   string
	access uint64
}

type rulesetAttr struct{ fs, net, scoped uint64 }

func landlockABI() int {
	v, _, e := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0
	}
	return int(v) //nolint:gosec // a small version number
}

// ruleset is everything that this version of Landlock can forbid, and the size of
// the structure that this version reads.
func ruleset(abi int) (rulesetAttr, uintptr) {
	attr, size := rulesetAttr{fs: 1<<13 - 1}, uintptr(8)
	if abi >= 2 {
		attr.fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		attr.fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 4 {
		attr.net, size = unix.LANDLOCK_ACCESS_NET_BIND_TCP|unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, 16
	}
	if abi >= 5 {
		attr.fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= 6 {
		attr.scoped, size = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET|unix.LANDLOCK_SCOPE_SIGNAL, 24
	}
	return attr, size
}

// restrictFiles forbids the calling thread everything but the rules.
func restrictFiles(rules []rule) error {
	abi := landlockABI()
	if abi < 1 {
		return errors.New("the kernel has none")
	}
	attr, size := ruleset(abi)
	fd, _, e := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0) //nolint:gosec // raw syscall
	if e != 0 {
		return fmt.Errorf("create ruleset: %w", e)
	}
	for _, r := range rules {
		if err := addRule(fd, r); err != nil {
			return err
		}
	}
	if _, _, e := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); e != 0 {
		return fmt.Errorf("restrict: %w", e)
	}
	return unix.Close(int(fd)) //nolint:gosec // a descriptor
}

func addRule(ruleset uintptr, r rule) error {
	fd, err := unix.Open(r.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", r.path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	// The kernel's struct is packed: a u64 and an s32, twelve bytes.
	var attr [12]byte
	*(*uint64)(unsafe.Pointer(&attr[0])) = r.access //nolint:gosec // the kernel's layout
	*(*int32)(unsafe.Pointer(&attr[8])) = int32(fd) //nolint:gosec // the kernel's layout
	_, _, e := unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr[0])), 0, 0, 0) //nolint:gosec // raw syscall
	if e != 0 {
		return fmt.Errorf("allow %s: %w", r.path, e)
	}
	return nil
}
