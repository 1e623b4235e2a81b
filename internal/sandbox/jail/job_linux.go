package jail

import (
	"golang.org/x/sys/unix"

	"github.com/pml-run/pml/internal/sandbox/jail/shim"
)

// job is what the shim does for s.
func (s Spec) job() shim.Job {
	j := shim.Job{Binary: s.Binary, Args: s.Args}
	if s.Layers.Landlock {
		j.Files, j.Rules = ruleset(landlockABI()), s.rules()
	}
	if s.Layers.Rlimits {
		j.Limits = s.limits()
	}
	if s.Layers.Seccomp {
		j.Filter = filter(shim.ExecFD)
	}
	return j
}

// limits are the resource limits. RLIMIT_DATA counts private writable mappings,
// which is what a program can fill; RLIMIT_AS is of no use, V8 reserves 50 GB.
func (s Spec) limits() []shim.Limit {
	limits := []shim.Limit{
		{Resource: unix.RLIMIT_CORE, Value: 0},
		{Resource: unix.RLIMIT_FSIZE, Value: 0},
		{Resource: unix.RLIMIT_NOFILE, Value: shim.ExecFD},
	}
	if s.Data > 0 {
		limits = append(limits, shim.Limit{Resource: unix.RLIMIT_DATA, Value: s.Data})
	}
	if s.CPU > 0 {
		limits = append(limits, shim.Limit{Resource: unix.RLIMIT_CPU, Value: s.CPU})
	}
	return limits
}

func (s Spec) rules() []shim.Rule {
	rules := []shim.Rule{{Path: s.Binary, Access: accessRead | accessExecute}}
	if s.Reads.Loader != "" {
		rules = append(rules, shim.Rule{Path: s.Reads.Loader, Access: accessRead | accessExecute})
	}
	for _, f := range s.Reads.Files {
		rules = append(rules, shim.Rule{Path: f, Access: accessRead})
	}
	for _, d := range s.Reads.Dirs {
		rules = append(rules, shim.Rule{Path: d, Access: accessRead | accessReadDir})
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
