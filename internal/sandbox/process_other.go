//go:build !linux

package sandbox

import (
	"errors"
	"syscall"
	"time"
)

// workerAttr gives a worker a process group of its own. It ends at the end of its
// stdin when the gateway dies.
func workerAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func dataSize(int) (uint64, error) { return 0, errors.ErrUnsupported }

func limitProcess(int, uint64, uint64) error { return errors.ErrUnsupported }

func cpuTime(int) (time.Duration, bool) { return 0, false }
