// Command setup-runtime fetches the embedded database's packages for the tests:
//
//	go run ./scripts/setup-runtime DENO DIR
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/pml-run/pml/internal/store/pglite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) //nolint:forbidigo // a command's root
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "setup-runtime:", err)
		os.Exit(1) //nolint:forbidigo // a command's end
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: setup-runtime DENO DIR")
	}
	return pglite.Install(ctx, args[0], args[1])
}
