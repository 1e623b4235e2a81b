package jail

import (
	"cmp"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/pml-run/pml/internal/sandbox/jail/shim"
)

// The filter is an allow list. A call that is not on it fails with ENOSYS, for
// which libc and Rust's library have fall-backs; a few fail with an error that
// becomes a clear one in JavaScript; a foreign calling convention kills.

type instr = shim.Instr

// syscallRule is what happens to one system call: instructions that end in a return.
type syscallRule struct {
	number uint32
	body   []instr
}

// stretch is what happens to the system calls from first up to the next stretch.
type stretch struct {
	first uint32
	body  []instr
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

// filter builds the program for a worker that is executed by the descriptor binary.
func filter(binary uint32) []instr {
	rules := restricted(shim.SelfPID, binary)
	for _, n := range allowed {
		rules = append(rules, syscallRule{uint32(n), []instr{allow()}})
	}
	slices.SortFunc(rules, func(a, b syscallRule) int { return cmp.Compare(a.number, b.number) })

	kill := ret(unix.SECCOMP_RET_KILL_PROCESS)
	prog := []instr{load(4), jump(unix.BPF_JEQ, arch, 1, 0), kill, load(0)}
	if hasX32 {
		prog = append(prog, jump(unix.BPF_JGE, 0x40000000, 0, 1), kill)
	}
	return append(prog, search(stretches(rules))...)
}

// stretches covers every number by the sorted rules and ENOSYS between them.
func stretches(rules []syscallRule) []stretch {
	refuse := []instr{fail(unix.ENOSYS)}
	out := []stretch{{0, refuse}}
	add := func(s stretch) {
		last := &out[len(out)-1]
		switch {
		case last.first == s.first:
			last.body = s.body
		case !slices.Equal(last.body, s.body):
			out = append(out, s)
		}
	}
	for i, r := range rules {
		add(stretch{r.number, r.body})
		if i+1 == len(rules) || rules[i+1].number != r.number+1 {
			add(stretch{r.number + 1, refuse})
		}
	}
	return out
}

// search finds the stretch of a number by halving, which is a tenth of the steps of a
// list. The kernel takes every one of its numbers through the filter when the filter
// is installed, once per worker.
func search(s []stretch) []instr {
	if len(s) == 1 {
		return s[0].body
	}
	half := len(s) / 2
	below, above := search(s[:half]), search(s[half:])
	var prog []instr
	if len(below) < 256 {
		prog = []instr{jump(unix.BPF_JGE, s[half].first, uint8(len(below)), 0)}
	} else { // too far for a conditional jump
		prog = []instr{jump(unix.BPF_JGE, s[half].first, 0, 1), {Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(below))}}
	}
	return slices.Concat(prog, below, above)
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
