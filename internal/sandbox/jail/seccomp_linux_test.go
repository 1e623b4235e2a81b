package jail

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pml-run/pml/internal/sandbox/jail/shim"
)

// decide runs a filter on one system call as the kernel does.
func decide(t *testing.T, prog []instr, number uint32, args ...uint64) uint32 {
	t.Helper()
	data := make([]byte, 64)
	binary.LittleEndian.PutUint32(data, number)
	binary.LittleEndian.PutUint32(data[4:], arch)
	for i, a := range args {
		binary.LittleEndian.PutUint64(data[16+8*i:], a)
	}
	var word uint32
	for at := 0; at < len(prog); at++ {
		i := prog[at]
		yes := false
		switch i.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			word = binary.LittleEndian.Uint32(data[i.K:])
			continue
		case unix.BPF_RET | unix.BPF_K:
			return i.K
		case unix.BPF_JMP | unix.BPF_JA:
			at += int(i.K)
			continue
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			yes = word == i.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			yes = word >= i.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			yes = word&i.K != 0
		default:
			t.Fatalf("instruction %d is %+v", at, i)
		}
		if yes {
			at += int(i.Jt)
		} else {
			at += int(i.Jf)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

// TestFilter compares the filter with the lists that it is made of, for each number
// that any kernel knows.
func TestFilter(t *testing.T) {
	t.Parallel()
	if arch == 0 {
		t.Skip("no filter is written for this CPU")
	}
	const pid, binaryFD = 4321, shim.ExecFD
	prog := filter(binaryFD)
	for i := range prog {
		if prog[i].K == shim.SelfPID {
			prog[i].K = pid
		}
	}
	restrictedNumbers := map[uint32]bool{}
	for _, r := range restricted(pid, binaryFD) {
		restrictedNumbers[r.number] = true
	}
	for n := range uint32(600) {
		want := unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
		if slices.Contains(allowed, uintptr(n)) {
			want = unix.SECCOMP_RET_ALLOW
		}
		if got := decide(t, prog, n); !restrictedNumbers[n] && got != want {
			t.Errorf("system call %d: %#x, want %#x", n, got, want)
		}
	}
	errno := func(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }
	tests := []struct {
		number uint32
		args   []uint64
		want   uint32
	}{
		{unix.SYS_CLONE, []uint64{unix.CLONE_THREAD | unix.CLONE_VM}, unix.SECCOMP_RET_ALLOW},
		{unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, errno(unix.EPERM)},
		{unix.SYS_CLONE, []uint64{unix.CLONE_THREAD | unix.CLONE_NEWUSER}, errno(unix.EPERM)},
		{unix.SYS_EXECVEAT, []uint64{binaryFD, 0, 0, 0, unix.AT_EMPTY_PATH}, unix.SECCOMP_RET_ALLOW},
		{unix.SYS_EXECVEAT, []uint64{binaryFD, 0, 0, 0, 0}, errno(unix.EPERM)},
		{unix.SYS_EXECVEAT, []uint64{3, 0, 0, 0, unix.AT_EMPTY_PATH}, errno(unix.EPERM)},
		{unix.SYS_SOCKET, []uint64{unix.AF_INET}, errno(unix.EACCES)},
		{unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX}, unix.SECCOMP_RET_ALLOW},
		{unix.SYS_SOCKETPAIR, []uint64{unix.AF_INET}, errno(unix.EPERM)},
		{unix.SYS_PRLIMIT64, []uint64{0, 0, 0}, unix.SECCOMP_RET_ALLOW},
		{unix.SYS_PRLIMIT64, []uint64{0, 0, 1 << 40}, errno(unix.EPERM)},
		{unix.SYS_TGKILL, []uint64{pid}, unix.SECCOMP_RET_ALLOW},
		{unix.SYS_TGKILL, []uint64{1}, errno(unix.EPERM)},
		{unix.SYS_PRCTL, []uint64{unix.PR_SET_NAME}, unix.SECCOMP_RET_ALLOW},
		{unix.SYS_PRCTL, []uint64{unix.PR_SET_DUMPABLE}, errno(unix.EINVAL)},
		{unix.SYS_IOCTL, []uint64{0, fionbio}, unix.SECCOMP_RET_ALLOW},
		{unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, errno(unix.ENOTTY)},
	}
	for _, tt := range tests {
		if got := decide(t, prog, tt.number, tt.args...); got != tt.want {
			t.Errorf("system call %d with %x: %#x, want %#x", tt.number, tt.args, got, tt.want)
		}
	}
	if hasX32 {
		if got := decide(t, prog, 0x40000000); got != unix.SECCOMP_RET_KILL_PROCESS {
			t.Errorf("x32: %#x, want a kill", got)
		}
	}
	if len(prog) > 400 {
		t.Errorf("the filter has %d instructions", len(prog))
	}
}
