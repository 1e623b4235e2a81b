// Package cli is the command line. Each command is a struct that kong fills; a
// command talks to the gateway of its data folder through the httpapi client, and
// starts a gateway for its own duration where none runs. Stdout carries the
// answer, stderr everything else.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/telemetry"
)

// Exit codes.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitApproval = 3 // waits for a person
)

// Env is everything that the process gives a command.
type Env struct {
	Version string
	Args    []string // without the program's name
	Getenv  func(string) string
	Stdin   io.ReadCloser
	Stdout  io.WriteCloser
	Stderr  io.Writer
}

// grammar is the command line: global flags and one field for each command.
type grammar struct {
	Home     string `help:"Data folder (PML_HOME)." placeholder:"DIR"`
	Database string `help:"URL of a Postgres with pgvector; without it PML embeds one (DATABASE_URL)." placeholder:"URL"`
	LogLevel string `help:"debug, info, warn or error." default:"warn" placeholder:"LEVEL"`
	JSON     bool   `help:"Print JSON." name:"json"`

	Serve      serveCommand      `cmd:"" help:"Serve MCP on stdio, or over HTTP with --http."`
	Run        runCommand        `cmd:"" help:"Run a TypeScript program over the configured servers."`
	Find       discoverCmd       `cmd:"" name:"discover" help:"Find tools."`
	Analyze    analyzeCommand    `cmd:"" help:"Show the structure of a TypeScript program without running it."`
	Servers    serversCommand    `cmd:"" help:"Show the MCP servers and their states."`
	Trace      traceCommand      `cmd:"" help:"Show what runs did."`
	Capability capabilityCommand `cmd:"" help:"Show and change what was learnt."`
	Bench      benchCommand      `cmd:"" name:"bench-search" help:"Measure how well search finds the tools of a data set."`
	Approvals  approvalsCommand  `cmd:"" help:"List what waits for a person."`
	Approve    approveCommand    `cmd:"" help:"Let a run that waits go on."`
	Reject     rejectCommand     `cmd:"" help:"End a run that waits."`
	Cancel     cancelCommand     `cmd:"" help:"End a run that is in progress."`
	Cache      cacheCommand      `cmd:"" help:"Show and empty what answers runs that only read."`
	Graph      graphCommand      `cmd:"" help:"Show which tools and capabilities go together, and what follows what."`
	Jobs       jobsCommand       `cmd:"" help:"Show and run what is done in the background."`
	Policy     policyCommand     `cmd:"" help:"Show and change which tools may be called."`
	Doctor     doctorCommand     `cmd:"" help:"Show what is in force: Deno, sandbox level, database, servers."`
	Setup      setupCommand      `cmd:"" help:"Fetch Deno and the packages that PML runs in it."`
	Import     importCommand     `cmd:"" help:"Take over the servers of another MCP client."`
	Install    installCommand    `cmd:"" help:"Put PML into an MCP client's configuration."`
	DB         dbCommand         `cmd:"" name:"db" help:"Export, import or move the database."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
}

// app is what a command works with.
type app struct {
	env      Env
	home     string
	database string
	json     bool
	logger   *slog.Logger
}

// usageError is a mistake on the command line.
type usageError struct{ error }

// exitError ends a command with a code after its answer was printed.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Run carries out one command line and returns the exit code.
func Run(ctx context.Context, env Env) int {
	err := run(ctx, env)
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	if _, ok := errors.AsType[usageError](err); ok {
		report(env.Stderr, err)
		return exitUsage
	}
	if err != nil {
		report(env.Stderr, err)
		return exitFailed
	}
	return exitDone
}

func run(ctx context.Context, env Env) error {
	var g grammar
	done := -1
	parser, err := kong.New(&g, kong.Name("pml"), kong.Writers(env.Stdout, env.Stderr),
		kong.Description("Procedural memory for AI agents: one MCP server in front of all others."),
		kong.Exit(func(code int) { done = code }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		return fmt.Errorf("build command line: %w", err)
	}
	if len(env.Args) == 0 {
		env.Args = []string{"--help"}
	}
	command, err := parser.Parse(env.Args)
	if done >= 0 {
		return exitError(done) // --help was printed
	}
	if err != nil {
		return usageError{err}
	}
	a, err := newApp(env, g)
	if err != nil {
		return err
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return command.Run(a)
}

func newApp(env Env, g grammar) (*app, error) {
	level, err := telemetry.ParseLevel(g.LogLevel)
	if err != nil {
		return nil, usageError{err}
	}
	home := g.Home
	if home == "" {
		home = env.Getenv("PML_HOME")
	}
	if home == "" {
		home, err = defaultHome(env.Getenv)
		if err != nil {
			return nil, err
		}
	}
	home, err = filepath.Abs(home)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	database := g.Database
	if database == "" {
		database = env.Getenv("DATABASE_URL")
	}
	return &app{env: env, home: home, database: database, json: g.JSON, logger: telemetry.NewLogger(env.Stderr, level)}, nil
}

// defaultHome is where an application keeps a user's data on this system.
func defaultHome(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "pml"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", usageError{fmt.Errorf("no data folder: %w; set PML_HOME", err)}
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "pml"), nil
	}
	return filepath.Join(home, ".local", "share", "pml"), nil
}

// toolDirs are the folders in which Deno may have been installed.
func (a *app) toolDirs() []string {
	dirs := []string{filepath.Join(a.home, "tools")}
	if dir := a.env.Getenv("PML_TOOLS"); dir != "" {
		dirs = append([]string{dir}, dirs...)
	}
	return dirs
}

// open opens a file that the user names; "-" is standard input.
func (a *app) open(file string) (io.ReadCloser, error) {
	if file == "-" {
		return a.env.Stdin, nil
	}
	f, err := os.Open(file) //nolint:gosec // the file that the user names
	if err != nil {
		return nil, usageError{err}
	}
	return f, nil
}

// print writes the answer: JSON with --json, else what text writes.
func (a *app) print(answer any, text func(w io.Writer)) error {
	if !a.json {
		text(a.env.Stdout)
		return nil
	}
	e := json.NewEncoder(a.env.Stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(answer); err != nil {
		return fmt.Errorf("print answer: %w", err)
	}
	return nil
}

// report prints an error for a person: what is wrong, where, and what to do.
func report(w io.Writer, err error) {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		fmt.Fprintf(w, "pml: %v\n", err)
		return
	}
	fmt.Fprintf(w, "pml: %s: %s\n", f.Code, f.Message)
	if f.Line > 0 {
		fmt.Fprintf(w, "  at line %d, column %d\n", f.Line, f.Column)
		if f.Source != "" {
			fmt.Fprintf(w, "  │ %s\n  │ %s^\n", f.Source, strings.Repeat(" ", max(f.Column-1, 0)))
		}
	}
	if f.Hint != "" {
		fmt.Fprintf(w, "  hint: %s\n", f.Hint)
	}
	if f.Stack != "" {
		fmt.Fprintf(w, "%s\n", f.Stack)
	}
}
