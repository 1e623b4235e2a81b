package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/pml-run/pml/internal/daemon"
)

type setupCommand struct{}

// Run fetches what is missing, so that the first start need not.
func (setupCommand) Run(ctx context.Context, a *app) error {
	o, err := a.options("")
	if err != nil {
		return err
	}
	b, err := daemon.Setup(ctx, o)
	if err != nil {
		return err
	}
	weights, err := daemon.Weights(ctx, o, b.Path)
	if err != nil {
		return err
	}
	answer := map[string]string{"deno": b.Path, "deno_version": b.Version, "model": weights, "home": a.home}
	return a.print(answer, func(w io.Writer) {
		fmt.Fprintf(w, "deno %s at %s\nembedding model in %s\ndata folder %s\n", b.Version, b.Path, weights, a.home)
	})
}
