// Package embedding turns texts into vectors, with the built-in model or with a
// remote one. It fetches the built-in model's weights. It neither stores nor caches
// vectors, and knows nothing of tools and capabilities: its callers choose the texts
// and keep the vectors beside the name of the model.
package embedding

import (
	"context"
)

// Encoder is a model that texts are sent to. Implementations may be used by many
// goroutines.
type Encoder interface {
	// Model is the id that vectors are stored under: those of one id can be compared.
	Model() string
	// Dimensions is the length of the vectors; 0 while it is not known, which is until
	// the first answer of a remote model that was configured without it.
	Dimensions() int
	// Encode returns a unit vector for each text, in the same order. It fails as a
	// whole, with a *fault.Error or the error of ctx.
	Encode(ctx context.Context, texts []string) ([][]float32, error)
	// QueryPrefix and DocumentPrefix stand in front of a text, depending on whether it
	// is searched for or searched in. Encode does not add them.
	QueryPrefix() string
	DocumentPrefix() string
}

// MiniLM is the id of the built-in model. It does not depend on the kernels: vectors
// from int8 and fp16 weights have a cosine above 0.99 and are compared freely.
const MiniLM = "all-MiniLM-L6-v2"

// miniLMQuery says what short queries leave out: that it is a tool that is searched
// for.
const miniLMQuery = "I need a tool to "

var (
	_ Encoder = (*Local)(nil)
	_ Encoder = (*Remote)(nil)
)
