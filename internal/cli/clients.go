package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/config"
)

type importCommand struct {
	Client string `arg:"" optional:"" help:"claude-desktop, claude-code, cursor, vscode, windsurf or gemini; none means all that are found."`
	From   string `help:"The client's file, where it is not at its usual place." placeholder:"FILE"`
	To     string `help:"Our file to add the servers to." default:"pml.json" placeholder:"FILE"`
	DryRun bool   `help:"Only show what would be taken."`
}

// imported says what was taken from one client.
type imported struct {
	Client   string           `json:"client"`
	From     string           `json:"from"`
	Servers  []string         `json:"servers"`
	Problems []config.Problem `json:"problems,omitempty"`
}

// Run adds the servers of other clients to our file. Ourselves are left out, or
// PML would stand in front of itself.
func (c *importCommand) Run(a *app) error {
	found, servers, err := c.collect()
	if err != nil {
		return err
	}
	change := config.Change{Path: c.To}
	if !c.DryRun && len(servers) > 0 {
		if change, err = config.AddServers(c.To, servers); err != nil {
			return err
		}
	}
	answer := map[string]any{"found": found, "change": change}
	return a.print(answer, func(w io.Writer) {
		for _, f := range found {
			fmt.Fprintf(w, "%s (%s): %s\n", f.Client, f.From, strings.Join(f.Servers, ", "))
			for _, p := range f.Problems {
				fmt.Fprintf(w, "  left out: %s\n", p)
			}
		}
		writeChange(w, change, c.DryRun)
	})
}

func writeChange(w io.Writer, change config.Change, dry bool) {
	switch {
	case dry:
		fmt.Fprintln(w, "nothing written (dry run)")
	case !change.Changed:
		fmt.Fprintf(w, "%s: nothing to change\n", change.Path)
	default:
		fmt.Fprintf(w, "%s: wrote %s\n", change.Path, strings.Join(change.Names, ", "))
		if change.Backup != "" {
			fmt.Fprintf(w, "the file as it was: %s\n", change.Backup)
		}
	}
}

func (c *importCommand) collect() ([]imported, map[string]config.Server, error) {
	clients := config.Clients()
	if c.Client != "" {
		one, err := config.ParseClient(c.Client)
		if err != nil {
			return nil, nil, usageError{err}
		}
		clients = []config.Client{one}
	}
	if c.From != "" && len(clients) != 1 {
		return nil, nil, usageError{errors.New("--from needs the client's name: its format")}
	}
	var found []imported
	servers := map[string]config.Server{}
	for _, client := range clients {
		paths, err := c.paths(client)
		if err != nil {
			return nil, nil, err
		}
		for _, path := range paths {
			theirs, problems, err := config.ReadClient(client, path)
			if errors.Is(err, fs.ErrNotExist) && c.From == "" {
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			maps.DeleteFunc(theirs, func(_ string, s config.Server) bool { return isPML(s) })
			found = append(found, imported{string(client), path, slices.Sorted(maps.Keys(theirs)), problems})
			for name, s := range theirs {
				if _, taken := servers[name]; !taken {
					servers[name] = s
				}
			}
		}
	}
	if len(found) == 0 {
		return nil, nil, errors.New("no configuration of an MCP client was found; name the client and its file with --from")
	}
	return found, servers, nil
}

func (c *importCommand) paths(client config.Client) ([]string, error) {
	if c.From != "" {
		return []string{c.From}, nil
	}
	return clientPaths(client)
}

func clientPaths(client config.Client) ([]string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fmt.Errorf("find the home folder: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working folder: %w", err)
	}
	return config.ClientPaths(client, runtime.GOOS, home, dir), nil
}

// isPML recognises an entry that install has written.
func isPML(s config.Server) bool {
	return strings.TrimSuffix(filepath.Base(s.Command), ".exe") == "pml" && slices.Contains(s.Args, "serve")
}

type installCommand struct {
	Client  string `arg:"" help:"claude (Claude Code), claude-desktop, cursor, vscode, windsurf or gemini."`
	Project bool   `help:"Into this folder's configuration instead of the user's."`
	File    string `help:"Into this file instead." placeholder:"FILE"`
	Name    string `help:"Under this name." default:"pml"`
	Config  string `help:"Configuration file that the client's PML is to use." placeholder:"FILE"`
}

// Run writes PML into a client's configuration and keeps a backup.
func (c *installCommand) Run(a *app) error {
	client, err := config.ParseClient(c.Client)
	if err != nil {
		return usageError{err}
	}
	path, err := c.path(client)
	if err != nil {
		return err
	}
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find our own binary: %w", err)
	}
	args := []string{"serve"}
	if c.Config != "" {
		file, err := filepath.Abs(c.Config)
		if err != nil {
			return fmt.Errorf("configuration: %w", err)
		}
		args = append(args, "--config", file)
	}
	change, err := config.InstallInto(client, path, c.Name, binary, args)
	if err != nil {
		return err
	}
	return a.print(change, func(w io.Writer) {
		writeChange(w, change, false)
		if change.Changed {
			fmt.Fprintln(w, "start the client again to use it")
		}
	})
}

func (c *installCommand) path(client config.Client) (string, error) {
	if c.File != "" {
		return c.File, nil
	}
	paths, err := clientPaths(client)
	if err != nil {
		return "", err
	}
	if len(paths) == 0 {
		return "", fmt.Errorf("where %s keeps its configuration on %s is not known; name the file with --file", client, runtime.GOOS)
	}
	if c.Project {
		return paths[0], nil
	}
	return paths[len(paths)-1], nil
}
