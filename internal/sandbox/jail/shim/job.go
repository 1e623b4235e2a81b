// Package shim turns a process of this program into a jailed worker: it limits itself
// as its command line says and then executes the worker, exactly once. Package jail
// decides what the command line says; nothing else uses this package.
//
// It runs from an init function and imports next to nothing, and that is its point.
// Go initialises a package as soon as what it imports is ready, so the shim is gone
// before most of the program's other packages, whose tables and metrics cost more
// than everything it does itself. Do not import os, fmt or encoding/json here.
package shim

import "strconv"

// Arg is the first argument with which the program runs as the shim.
const Arg = "__sandbox-exec"

// Failed is the shim's exit status when it could not execute the worker.
const Failed = 125

// SelfPID stands in a filter for the worker's process id, which exec keeps.
const SelfPID uint32 = 0xfffffffe

// Job is what the shim does.
type Job struct {
	Binary string
	Args   []string
	Limits []Limit
	Files  Ruleset // none when its Size is zero
	Rules  []Rule
	Filter []Instr // none when empty
}

// Limit is a resource limit, both soft and hard.
type Limit struct {
	Resource int
	Value    uint64
}

// Ruleset is what Landlock forbids, as the kernel's struct landlock_ruleset_attr of
// which it reads Size bytes.
type Ruleset struct {
	FS, Net, Scoped uint64
	Size            int
}

// Rule grants access below one path. A path that does not exist grants nothing.
type Rule struct {
	Access uint64
	Path   string
}

// Instr is one instruction of a filter, as the kernel's struct sock_filter.
type Instr struct {
	Code   uint16
	Jt, Jf uint8
	K      uint32
}

// Command is the command line, after the program's name, that has the shim do j.
func (j Job) Command() []string {
	out := []string{Arg, strconv.Itoa(len(j.Limits))}
	for _, l := range j.Limits {
		out = append(out, strconv.Itoa(l.Resource), hex(l.Value))
	}
	out = append(out, hex(j.Files.FS), hex(j.Files.Net), hex(j.Files.Scoped), strconv.Itoa(j.Files.Size), strconv.Itoa(len(j.Rules)))
	for _, r := range j.Rules {
		out = append(out, hex(r.Access), r.Path)
	}
	filter := make([]byte, 0, 16*len(j.Filter))
	for _, i := range j.Filter {
		v := uint64(i.Code)<<48 | uint64(i.Jt)<<40 | uint64(i.Jf)<<32 | uint64(i.K)
		text := hex(v)
		filter = append(append(filter, "0000000000000000"[len(text):]...), text...)
	}
	return append(append(out, string(filter), j.Binary), j.Args...)
}

func hex(v uint64) string { return strconv.FormatUint(v, 16) }

// parse reads what Command wrote; false if it did not write this.
func parse(args []string) (j Job, ok bool) {
	p := parser{rest: args}
	if p.text() != Arg {
		return j, false
	}
	for range p.count() {
		j.Limits = append(j.Limits, Limit{Resource: p.count(), Value: p.number()})
	}
	j.Files = Ruleset{FS: p.number(), Net: p.number(), Scoped: p.number(), Size: p.count()}
	for range p.count() {
		j.Rules = append(j.Rules, Rule{Access: p.number(), Path: p.text()})
	}
	filter := p.text()
	for ; len(filter) >= 16; filter = filter[16:] {
		v, err := strconv.ParseUint(filter[:16], 16, 64)
		p.bad = p.bad || err != nil
		j.Filter = append(j.Filter, Instr{Code: uint16(v >> 48), Jt: uint8(v >> 40), Jf: uint8(v >> 32), K: uint32(v)})
	}
	j.Binary = p.text()
	j.Args = p.rest
	return j, !p.bad && filter == "" && j.Binary != ""
}

// parser takes one argument after the other.
type parser struct {
	rest []string
	bad  bool
}

func (p *parser) text() string {
	if len(p.rest) == 0 {
		p.bad = true
		return ""
	}
	s := p.rest[0]
	p.rest = p.rest[1:]
	return s
}

func (p *parser) number() uint64 {
	v, err := strconv.ParseUint(p.text(), 16, 64)
	p.bad = p.bad || err != nil
	return v
}

func (p *parser) count() int {
	n, err := strconv.Atoi(p.text())
	p.bad = p.bad || err != nil || n < 0
	return n
}
