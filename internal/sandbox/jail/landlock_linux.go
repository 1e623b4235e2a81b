package jail

import (
	"golang.org/x/sys/unix"

	"github.com/pml-run/pml/internal/sandbox/jail/shim"
)

const (
	accessExecute uint64 = unix.LANDLOCK_ACCESS_FS_EXECUTE
	accessRead    uint64 = unix.LANDLOCK_ACCESS_FS_READ_FILE
	accessReadDir uint64 = unix.LANDLOCK_ACCESS_FS_READ_DIR
)

func landlockABI() int {
	v, _, e := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0
	}
	return int(v)
}

// ruleset is everything that this version of Landlock can forbid.
func ruleset(abi int) shim.Ruleset {
	r := shim.Ruleset{FS: 1<<13 - 1, Size: 8}
	if abi >= 2 {
		r.FS |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		r.FS |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 4 {
		r.Net, r.Size = unix.LANDLOCK_ACCESS_NET_BIND_TCP|unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, 16
	}
	if abi >= 5 {
		r.FS |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= 6 {
		r.Scoped, r.Size = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET|unix.LANDLOCK_SCOPE_SIGNAL, 24
	}
	return r
}
