package embedding

import (
	"context"
	"time"

	"github.com/pml-run/pml/internal/embedding/kernel"
)

// OpenInt8 is OpenLocal with int8 weights on any processor.
func OpenInt8(opts LocalOptions) (*Local, error) {
	opts.Model, opts.Workers = "int8", 1
	return openWith(opts, kernel.Available()[0].WithInt8())
}

// WithWait returns the options with another way to wait.
func WithWait(opts RemoteOptions, wait func(context.Context, time.Duration) error) RemoteOptions {
	opts.wait = wait
	return opts
}
