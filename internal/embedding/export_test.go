package embedding

import "github.com/pml-run/pml/internal/embedding/kernel"

// OpenInt8 is OpenLocal with int8 weights on any processor.
func OpenInt8(opts LocalOptions) (*Local, error) {
	opts.Model, opts.Workers = "int8", 1
	return openWith(opts, kernel.Available()[0].WithInt8())
}
