package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pml-run/pml/internal/sandbox/jail"
)

// Options configure a Pool. The zero value of every field but Deno is its default.
type Options struct {
	Deno string // path of Deno's executable, or of its npm wrapper; required
	Self string // our own binary, which runs as the jail's shim; default os.Executable()

	Size     int // idle workers kept; default max(4, 2 × cores)
	Starters int // workers started at once; default cores + 1
	// MaxBusy is how many programs run at once, however few of them use a CPU: the
	// others wait for answers or people. Default 8 × Size.
	MaxBusy int
	// IdleAfter is the time without a run after which all but two idle workers are
	// let go. Default 5 minutes; negative never.
	IdleAfter time.Duration

	QueueLimit int           // runs that may wait for a worker; default 256
	QueueWait  time.Duration // how long each may; default 30 s

	MemoryMB int    // the most that a program may have; default 256
	Require  string // "best" (default) or "full": refuse to start with less than every layer
	JIT      string // "auto" (default: on with every layer), "on", "off"

	Logger     *slog.Logger          // default: discard
	Registerer prometheus.Registerer // for the metrics pml_sandbox_*; nil registers nowhere

	// Without switches layers of the jail off, so that tests can show which layer
	// stops what.
	Without jail.Layers
}

func (o Options) withDefaults() (Options, error) {
	cores := runtime.NumCPU()
	o.Size = cmp.Or(o.Size, max(4, 2*cores))
	o.Starters = cmp.Or(o.Starters, cores+1)
	o.MaxBusy = cmp.Or(o.MaxBusy, 8*o.Size)
	o.IdleAfter = cmp.Or(o.IdleAfter, 5*time.Minute)
	o.QueueLimit = cmp.Or(o.QueueLimit, 256)
	o.QueueWait = cmp.Or(o.QueueWait, 30*time.Second)
	o.MemoryMB = cmp.Or(o.MemoryMB, 256)
	o.Require = cmp.Or(o.Require, "best")
	o.JIT = cmp.Or(o.JIT, "auto")
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	errs := []error{o.validate()}
	if o.Self == "" {
		self, err := os.Executable()
		o.Self = self
		errs = append(errs, err)
	}
	return o, errors.Join(errs...)
}

func (o Options) validate() error {
	var errs []error
	if o.Deno == "" {
		errs = append(errs, errors.New("deno: no path given"))
	}
	numbers := []struct {
		name  string
		value int
	}{
		{"size", o.Size},
		{"starters", o.Starters},
		{"max busy", o.MaxBusy},
		{"queue limit", o.QueueLimit},
		{"memory", o.MemoryMB},
	}
	for _, n := range numbers {
		if n.value < 1 {
			errs = append(errs, fmt.Errorf("%s: must be positive, is %d", n.name, n.value))
		}
	}
	if !slices.Contains([]string{"best", "full"}, o.Require) {
		errs = append(errs, fmt.Errorf(`require: must be "best" or "full", is %q`, o.Require))
	}
	if !slices.Contains([]string{"auto", "on", "off"}, o.JIT) {
		errs = append(errs, fmt.Errorf(`jit: must be "auto", "on" or "off", is %q`, o.JIT))
	}
	return errors.Join(errs...)
}
