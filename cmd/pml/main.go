// Command pml is the procedural memory layer: one MCP server in front of all others.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/pml-run/pml/internal/cli"
	"github.com/pml-run/pml/internal/sandbox/jail"
	"github.com/pml-run/pml/internal/supervise"
)

// version is set by the linker.
var version = "dev"

func main() {
	jail.MaybeExec() // the binary is also the shim that locks a worker in; never returns then
	if len(os.Args) > 1 && os.Args[1] == supervise.WatchdogArg {
		supervise.RunWatchdog(os.Stdin)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	code := cli.Run(ctx, cli.Env{
		Version: version, Args: os.Args[1:], Getenv: os.Getenv,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	})
	stop()
	os.Exit(code)
}
