package shim

import (
	"runtime"
	"syscall"
	"unsafe"
)

// ExecFD is the descriptor of the worker's binary and, one above the highest that
// the worker may open, the reason why it can execute nothing else: the filter
// allows execveat of this number only, exec closes it, and RLIMIT_NOFILE keeps it
// from ever coming back. It must stay below 64: growing the descriptor table of a
// process with threads waits for the kernel's RCU, 5 to 18 ms per start.
const ExecFD = 60

// Package syscall is frozen and lacks these; the numbers of Landlock are the same on
// every CPU. A test compares all of them with x/sys/unix.
const (
	sysLandlockCreateRuleset = 444
	sysLandlockAddRule       = 445
	sysLandlockRestrictSelf  = 446
	landlockPathBeneath      = 1
	prSetNoNewPrivs          = 38
	seccompSetModeFilter     = 1
	oPath                    = 0x200000
	atEmptyPath              = 0x1000
)

//nolint:gochecknoinits // see the package's comment
func init() {
	if args := commandLine(); len(args) > 1 && args[1] == Arg {
		Run(args[1:])
	}
}

// commandLine reads the process's arguments, which package os does not have yet. A
// system without /proc has none here: jail.MaybeExec calls Run from main then.
func commandLine() []string {
	fd, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = syscall.Close(fd) }()
	var text []byte
	var page [4096]byte
	for {
		n, err := syscall.Read(fd, page[:])
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			break
		}
		text = append(text, page[:n]...)
	}
	var args []string
	for len(text) > 0 {
		end := 0
		for end < len(text) && text[end] != 0 {
			end++
		}
		args = append(args, string(text[:end]))
		text = text[min(end+1, len(text)):]
	}
	return args
}

// Run does the job that the arguments, Arg first, describe. It never returns.
func Run(args []string) {
	j, ok := parse(args)
	problem := "this is no command line for the sandbox"
	if ok {
		runtime.LockOSThread()
		what, e := j.exec()
		problem = what + ": " + e.Error()
	}
	text := []byte(Arg + ": " + problem + "\n")
	_, _ = syscall.Write(2, text)
	syscall.Exit(Failed)
}

// exec replaces this process by the worker. It returns only on failure, with what
// failed.
func (j Job) exec() (string, error) {
	fd, err := syscall.Open(j.Binary, oPath|syscall.O_CLOEXEC, 0)
	if err != nil {
		return "open " + j.Binary, err
	}
	if err := syscall.Dup3(fd, ExecFD, syscall.O_CLOEXEC); err != nil {
		return "move descriptor", err
	}
	_ = syscall.Close(fd)
	if _, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); e != 0 {
		return "no_new_privs", e
	}
	if j.Files.Size > 0 {
		if what, e := j.restrictFiles(); e != 0 {
			return "landlock: " + what, e
		}
	}
	for _, l := range j.Limits {
		if err := syscall.Setrlimit(l.Resource, &syscall.Rlimit{Cur: l.Value, Max: l.Value}); err != nil {
			return "resource limit", err
		}
	}
	// Everything that allocates comes before the filter: Go's runtime could need
	// a call that is no longer allowed.
	empty := []byte{0}
	argv, err := syscall.SlicePtrFromStrings(append([]string{j.Binary}, j.Args...))
	if err != nil {
		return "arguments", err
	}
	env, err := syscall.SlicePtrFromStrings(syscall.Environ())
	if err != nil {
		return "environment", err
	}
	if len(j.Filter) > 0 {
		if e := j.installFilter(); e != 0 {
			return "seccomp", e
		}
	}
	_, _, e := syscall.RawSyscall6(sysExecveat, ExecFD, uintptr(unsafe.Pointer(&empty[0])), //nolint:gosec // raw execve
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])), atEmptyPath, 0) //nolint:gosec // raw execve
	return "execveat", e
}

// restrictFiles forbids the calling thread everything but the rules. No other thread
// matters: the worker is executed right after.
func (j Job) restrictFiles() (string, syscall.Errno) {
	attr := [3]uint64{j.Files.FS, j.Files.Net, j.Files.Scoped}
	ruleset, _, e := syscall.RawSyscall(sysLandlockCreateRuleset, uintptr(unsafe.Pointer(&attr)), uintptr(j.Files.Size), 0) //nolint:gosec // raw syscall
	if e != 0 {
		return "create ruleset", e
	}
	for _, r := range j.Rules {
		if e := addRule(ruleset, r); e != 0 {
			return "allow " + r.Path, e
		}
	}
	if _, _, e := syscall.RawSyscall(sysLandlockRestrictSelf, ruleset, 0, 0); e != 0 {
		return "restrict", e
	}
	_ = syscall.Close(int(ruleset))
	return "", 0
}

func addRule(ruleset uintptr, r Rule) syscall.Errno {
	fd, err := syscall.Open(r.Path, oPath|syscall.O_CLOEXEC, 0)
	if err == syscall.ENOENT {
		return 0
	}
	if err != nil {
		e, _ := err.(syscall.Errno) //nolint:errorlint // package syscall returns nothing else
		return e
	}
	// The kernel's struct is packed: a u64 and an s32, twelve bytes.
	var attr [12]byte
	*(*uint64)(unsafe.Pointer(&attr[0])) = r.Access //nolint:gosec // the kernel's layout
	*(*int32)(unsafe.Pointer(&attr[8])) = int32(fd) //nolint:gosec // the kernel's layout
	_, _, e := syscall.RawSyscall6(sysLandlockAddRule, ruleset, landlockPathBeneath,
		uintptr(unsafe.Pointer(&attr[0])), 0, 0, 0) //nolint:gosec // raw syscall
	_ = syscall.Close(fd)
	return e
}

// installFilter puts the filter on the calling thread; no_new_privs must be set.
func (j Job) installFilter() syscall.Errno {
	pid := uint32(syscall.Getpid())
	for i := range j.Filter {
		if j.Filter[i].K == SelfPID {
			j.Filter[i].K = pid
		}
	}
	prog := struct {
		size   uint16
		filter *Instr
	}{uint16(len(j.Filter)), &j.Filter[0]}
	_, _, e := syscall.RawSyscall(sysSeccomp, seccompSetModeFilter, 0, uintptr(unsafe.Pointer(&prog))) //nolint:gosec // raw syscall
	return e
}
