package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// workerAttr makes a worker die with the thread that started it, which lives as
// long as the pool, and gives it a process group of its own, which a Ctrl-C for the
// gateway does not reach.
func workerAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// dataSize is how much private writable memory a process has mapped, which is what
// RLIMIT_DATA counts: half a gigabyte of it is V8's room for machine code.
func dataSize(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(b, []byte("VmData:"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0, fmt.Errorf("process %d has no VmData", pid)
	}
	kb, err := strconv.ParseUint(string(fields[0]), 10, 64)
	return kb << 10, err
}

// limitProcess lowers the limits of a running process.
func limitProcess(pid int, data, cpuSeconds uint64) error {
	if data > 0 {
		if err := unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: data, Max: data}, nil); err != nil {
			return fmt.Errorf("limit memory: %w", err)
		}
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_CPU, &unix.Rlimit{Cur: cpuSeconds, Max: cpuSeconds}, nil); err != nil {
		return fmt.Errorf("limit CPU: %w", err)
	}
	return nil
}

// cpuTime is the CPU time that a process has used, by its CPU clock: no file is
// read or parsed. The clock's id is the kernel's MAKE_PROCESS_CPUCLOCK(pid, SCHED).
func cpuTime(pid int) (time.Duration, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}
