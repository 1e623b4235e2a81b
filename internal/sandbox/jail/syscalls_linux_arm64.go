package jail

import (
	"slices"

	"golang.org/x/sys/unix"
)

const (
	arch   = unix.AUDIT_ARCH_AARCH64
	hasX32 = false
)

// allowed adds the forms that only newer CPUs have.
var allowed = slices.Concat(allowedEverywhere, []uintptr{
	unix.SYS_FSTATAT, unix.SYS_MKDIRAT, unix.SYS_UNLINKAT,
})
