package jail

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter is an allow list. A call that is not on it fails with ENOSYS, for
// which libc and Rust's library have fall-backs; a few fail with an error that
// becomes a clear one in JavaScript; a foreign calling convention kills.

type instr = unix.SockFilter

// syscallRule is what happens to one system call: instructions that end in a return.
type syscallRule struct {
	number uint32
	body   []instr
}

// The requests that a runtime makes of its standard streams and that x/sys/unix
// does not name: do not block, close on exec.
const (
	fionbio = 0x5421
	fioclex = 0x5451
)

// namespaces are the clone flags that would make a new namespace.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWTIME

func load(offset uint32) instr {
	return instr{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}
func ret(k uint32) instr      { return instr{Code: unix.BPF_RET | unix.BPF_K, K: k} }
func fail(e unix.Errno) instr { return ret(unix.SECCOMP_RET_ERRNO | uint32(e)) }
func allow() instr            { return ret(unix.SECCOMP_RET_ALLOW) }

// low and high load the halves of an argument; both CPUs are little-endian.
func low(arg uint32) instr  { return load(16 + 8*arg) }
func high(arg uint32) instr { return load(16 + 8*arg + 4) }

// jump tests the loaded word and skips yes or no instructions.
func jump(test uint16, k uint32, yes, no uint8) instr {
	return instr{Code: unix.BPF_JMP | test | unix.BPF_K, K: k, Jt: yes, Jf: no}
}

// filter builds the program for a worker with this process id (exec keeps it).
func filter(pid int, binary uint32) []instr {
	rules := restricted(uint32(pid), binary) //nolint:gosec // process ids are positive
	for _, n := range allowed {
		rules = append(rules, syscallRule{uint32(n), []instr{allow()}}) //nolint:gosec // syscall numbers are small
	}
	slices.SortFunc(rules, func(a, b syscallRule) int { return cmp.Compare(a.number, b.number) })

	kill := ret(unix.SECCOMP_RET_KILL_PROCESS)
	prog := []instr{load(4), jump(unix.BPF_JEQ, arch, 1, 0), kill, load(0)}
	if hasX32 {
		prog = append(prog, jump(unix.BPF_JGE, 0x40000000, 0, 1), kill)
	}
	for _, r := range rules {
		prog = append(prog, jump(unix.BPF_JEQ, r.number, 0, uint8(len(r.body)))) //nolint:gosec // a handful
		prog = append(prog, r.body...)
	}
	return append(prog, fail(unix.ENOSYS))
}

// restricted lists the calls that are allowed with some arguments only.
func restricted(pid, binary uint32) []syscallRule {
	eq := func(k uint32, yes, no uint8) instr { return jump(unix.BPF_JEQ, k, yes, no) }
	has := func(k uint32, yes, no uint8) instr { return jump(unix.BPF_JSET, k, yes, no) }
	eperm := fail(unix.EPERM)
	return []syscallRule{
		// Threads, never processes or namespaces. clone3 has its flags in memory:
		// refusing it makes libc use clone.
		{unix.SYS_CLONE, []instr{low(0), has(namespaces, 2, 0), has(unix.CLONE_THREAD, 0, 1), allow(), eperm}},
		{unix.SYS_CLONE3, []instr{fail(unix.ENOSYS)}},
		{unix.SYS_EXECVEAT, []instr{low(0), eq(binary, 0, 3), low(4), eq(unix.AT_EMPTY_PATH, 0, 1), allow(), eperm}},
		{unix.SYS_EXECVE, []instr{eperm}},
		{unix.SYS_SOCKETPAIR, []instr{low(0), eq(unix.AF_UNIX, 0, 1), allow(), eperm}},
		{unix.SYS_SOCKET, []instr{fail(unix.EACCES)}},
		{unix.SYS_PRCTL, []instr{low(0), eq(unix.PR_SET_NAME, 2, 0), eq(unix.PR_GET_NAME, 1, 0), fail(unix.EINVAL), allow()}},
		// Limits may be read, not set: the new limit is a null pointer.
		{unix.SYS_PRLIMIT64, []instr{low(2), eq(0, 0, 3), high(2), eq(0, 0, 1), allow(), eperm}},
		// abort() sends its signal to the process itself.
		{unix.SYS_TGKILL, []instr{low(0), eq(pid, 0, 1), allow(), eperm}},
		// What a runtime asks of its standard streams, and whether they are a terminal.
		{unix.SYS_IOCTL, []instr{
			low(1), eq(unix.TCGETS, 4, 0), eq(fionbio, 3, 0), eq(fioclex, 2, 0),
			eq(unix.TIOCGWINSZ, 1, 0), fail(unix.ENOTTY), allow(),
		}},
	}
}

// installFilter puts the filter on the calling thread; no_new_privs must be set.
func installFilter(prog []instr) error {
	f := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}                                              //nolint:gosec // a few hundred
	_, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&f))) //nolint:gosec // raw syscall
	if e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	return nil
}
