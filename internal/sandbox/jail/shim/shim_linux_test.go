package shim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestNumbers compares the constants that package syscall lacks with x/sys/unix.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for name, n := range map[string][2]uint64{
		"landlock_create_ruleset": {sysLandlockCreateRuleset, unix.SYS_LANDLOCK_CREATE_RULESET},
		"landlock_add_rule":       {sysLandlockAddRule, unix.SYS_LANDLOCK_ADD_RULE},
		"landlock_restrict_self":  {sysLandlockRestrictSelf, unix.SYS_LANDLOCK_RESTRICT_SELF},
		"path beneath":            {landlockPathBeneath, unix.LANDLOCK_RULE_PATH_BENEATH},
		"no_new_privs":            {prSetNoNewPrivs, unix.PR_SET_NO_NEW_PRIVS},
		"filter":                  {seccompSetModeFilter, unix.SECCOMP_SET_MODE_FILTER},
		"path":                    {oPath, unix.O_PATH},
		"empty path":              {atEmptyPath, unix.AT_EMPTY_PATH},
		"seccomp":                 {sysSeccomp, unix.SYS_SECCOMP},
		"execveat":                {sysExecveat, unix.SYS_EXECVEAT},
	} {
		if n[0] != n[1] {
			t.Errorf("%s is %d, want %d", name, n[0], n[1])
		}
	}
}

// TestCommand reads back what was written, and refuses every part of it.
func TestCommand(t *testing.T) {
	t.Parallel()
	want := Job{
		Binary: "/bin/x", Args: []string{"run", "", "a b"},
		Limits: []Limit{{7, 60}, {2, 1 << 40}},
		Files:  Ruleset{FS: 1<<16 - 1, Net: 3, Scoped: 3, Size: 24},
		Rules:  []Rule{{5, "/bin/x"}, {4, "/lib/a: b"}},
		Filter: []Instr{{Code: 0x20, K: 4}, {Code: 0x15, Jt: 1, Jf: 255, K: SelfPID}, {Code: 6, K: 0x7fff0000}},
	}
	args := want.Command()
	got, ok := parse(args)
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Error(ok, diff)
	}
	for n := range len(args) - len(want.Args) {
		if _, ok := parse(args[:n]); ok {
			t.Errorf("the first %d arguments are enough", n)
		}
	}
	for n := range len(args) - len(want.Args) - 1 {
		bad := append([]string{}, args...)
		bad[n] = "-x"
		if j, ok := parse(bad); ok && j.Rules[0].Path != "-x" && j.Rules[1].Path != "-x" {
			t.Errorf("argument %d may be anything", n)
		}
	}
}
