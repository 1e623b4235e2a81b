package jail

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// execFD is the descriptor of the worker's binary and, one above the highest that
// the worker may open, the reason why it can execute nothing else: the filter
// allows execveat of this number only, exec closes it, and RLIMIT_NOFILE keeps it
// from ever coming back. It must stay below 64: growing the descriptor table of a
// process with threads waits for the kernel's RCU, 5 to 18 ms per start.
const execFD = 60

// exec replaces this process by s.Binary. It returns only on failure.
func (s Spec) exec() error {
	runtime.LockOSThread()
	fd, err := unix.Open(s.Binary, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", s.Binary, err)
	}
	if err := unix.Dup3(fd, execFD, unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("move descriptor: %w", err)
	}
	_ = unix.Close(fd)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if s.Layers.Landlock {
		if err := restrictFiles(s.rules()); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	if s.Layers.Rlimits {
		if err := s.limit(); err != nil {
			return err
		}
	}
	// Everything that allocates comes before the filter: Go's runtime could need
	// a call that is no longer allowed.
	empty := []byte{0}
	argv, err := syscall.SlicePtrFromStrings(append([]string{s.Binary}, s.Args...))
	if err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	env, err := syscall.SlicePtrFromStrings(os.Environ())
	if err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	if s.Layers.Seccomp {
		if err := installFilter(filter(os.Getpid(), execFD)); err != nil {
			return err
		}
	}
	_, _, e := unix.RawSyscall6(unix.SYS_EXECVEAT, execFD, uintptr(unsafe.Pointer(&empty[0])), //nolint:gosec // raw execve
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])), unix.AT_EMPTY_PATH, 0) //nolint:gosec // raw execve
	return fmt.Errorf("execveat: %w", e)
}

// limit sets the resource limits. RLIMIT_DATA counts private writable mappings,
// which is what a program can fill; RLIMIT_AS is of no use, V8 reserves 50 GB.
func (s Spec) limit() error {
	limits := []struct {
		name     string
		resource int
		value    uint64
		set      bool
	}{
		{"core", unix.RLIMIT_CORE, 0, true},
		{"fsize", unix.RLIMIT_FSIZE, 0, true},
		{"nofile", unix.RLIMIT_NOFILE, execFD, true},
		{"data", unix.RLIMIT_DATA, s.Data, s.Data > 0},
		{"cpu", unix.RLIMIT_CPU, s.CPU, s.CPU > 0},
	}
	for _, l := range limits {
		if !l.set {
			continue
		}
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.value, Max: l.value}); err != nil {
			return fmt.Errorf("rlimit %s: %w", l.name, err)
		}
	}
	return nil
}

func (s Spec) rules() []rule {
	rules := []rule{{path: s.Binary, access: accessRead | accessExecute}}
	if s.Reads.Loader != "" {
		rules = append(rules, rule{path: s.Reads.Loader, access: accessRead | accessExecute})
	}
	for _, f := range s.Reads.Files {
		rules = append(rules, rule{path: f, access: accessRead})
	}
	for _, d := range s.Reads.Dirs {
		rules = append(rules, rule{path: d, access: accessRead | accessReadDir})
	}
	return rules
}

// Detect asks the kernel which layers it has.
func Detect() Support {
	s := Support{Layers: Layers{Rlimits: true}, LandlockABI: landlockABI()}
	if s.LandlockABI > 0 {
		s.Layers.Landlock = true
	} else {
		s.Missing = append(s.Missing, "Landlock: the kernel has none (Linux 5.13 or later with lsm=landlock)")
	}
	// An unknown flag makes a kernel with seccomp filters answer EINVAL.
	_, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, ^uintptr(0), 0)
	if e == unix.EINVAL && arch != 0 {
		s.Layers.Seccomp = true
	} else {
		s.Missing = append(s.Missing, "seccomp: the kernel or the container refuses filters")
	}
	return s
}
