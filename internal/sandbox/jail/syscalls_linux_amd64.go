package jail

import (
	"slices"

	"golang.org/x/sys/unix"
)

const (
	arch   = unix.AUDIT_ARCH_X86_64
	hasX32 = true
)

// allowed adds the older forms of calls that x86 kept.
var allowed = slices.Concat(allowedEverywhere, []uintptr{
	unix.SYS_NEWFSTATAT, unix.SYS_OPEN, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS, unix.SYS_READLINK, unix.SYS_MKDIR, unix.SYS_UNLINK,
	unix.SYS_ARCH_PRCTL, unix.SYS_EPOLL_WAIT, unix.SYS_POLL, unix.SYS_TIME, unix.SYS_GETRLIMIT,
})
