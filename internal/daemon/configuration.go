package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/pml-run/pml/internal/config"
	"github.com/pml-run/pml/internal/sandbox"
)

// configuration is the file in force. A change of the file is applied while the
// gateway runs; one that cannot be read leaves the old one in force.
type configuration struct {
	path   string
	logger *slog.Logger

	mu      sync.Mutex
	config  *config.Config
	problem error // why the file's present content is not in force
	applied func(context.Context)
}

// servers takes changes of the configured servers.
type servers interface {
	Apply(servers map[string]config.Server)
}

// readConfiguration finds and reads the file. Without one there are no servers,
// which doctor says. A first file that is wrong ends the start.
func readConfiguration(ctx context.Context, o Options) (*configuration, error) {
	home, _ := os.UserHomeDir() // without one, only the explicit file and the folder are looked at
	path, err := config.Find(o.Config, o.Dir, home)
	if err != nil {
		return nil, err
	}
	c := &configuration{path: path, logger: o.Logger.With("system", "config"), config: &config.Config{}}
	if path == "" {
		return c, nil
	}
	if c.path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	read, err := config.Read(c.path, c.lookup(o))
	if err != nil {
		return nil, err
	}
	c.config = anchored(read, c.path)
	for _, w := range read.Warnings {
		c.logger.WarnContext(ctx, "configuration", "file", c.path, "warning", w.String())
	}
	return c, nil
}

// lookup finds variables for the file; PML_HOME always has a value.
func (*configuration) lookup(o Options) config.Lookup {
	return func(name string) (string, bool) {
		if name == "PML_HOME" {
			return o.Home, true
		}
		return os.LookupEnv(name)
	}
}

// anchored makes relative folders of servers relative to the file's folder, which
// is also where a server runs that names none.
func anchored(c *config.Config, path string) *config.Config {
	dir := filepath.Dir(path)
	for name, s := range c.Servers {
		if !filepath.IsAbs(s.Cwd) {
			s.Cwd = filepath.Join(dir, s.Cwd)
			c.Servers[name] = s
		}
	}
	for i, root := range c.Roots {
		if !filepath.IsAbs(root) {
			c.Roots[i] = filepath.Join(dir, root)
		}
	}
	return c
}

// watch applies changes of the file to the servers until the returned function is called.
// applied, when set before, is called after each change.
func (c *configuration) watch(ctx context.Context, o Options, to servers) (stop func()) {
	if c.path == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		err := config.Watch(ctx, c.path, c.lookup(o), func(fresh *config.Config, err error) { c.apply(ctx, fresh, err, to) })
		if err != nil {
			c.logger.WarnContext(ctx, "changes of the configuration will not be noticed", "error", err)
		}
	})
	return func() { cancel(); wg.Wait() }
}

func (c *configuration) apply(ctx context.Context, fresh *config.Config, err error, to servers) {
	c.mu.Lock()
	c.problem = err
	if err == nil {
		c.config = anchored(fresh, c.path)
		fresh = c.config
	}
	c.mu.Unlock()
	if err != nil {
		c.logger.ErrorContext(ctx, "the changed configuration is not used", "error", err)
		return
	}
	c.logger.InfoContext(ctx, "configuration applied", "servers", len(fresh.Servers))
	to.Apply(fresh.Servers)
	if c.applied != nil {
		c.applied(ctx)
	}
}

// current is the configuration in force.
func (c *configuration) current() *config.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.config
}

// status lists what doctor should say of the file.
func (c *configuration) status() (path string, problems []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.config.Warnings {
		problems = append(problems, w.String())
	}
	if invalid, ok := errors.AsType[*config.Invalid](c.problem); ok {
		for _, p := range invalid.Problems {
			problems = append(problems, "not in force: "+p.String())
		}
	} else if c.problem != nil {
		problems = append(problems, "not in force: "+c.problem.Error())
	}
	return c.path, problems
}

// limits are the configured limits of a run; zero stays the sandbox's default.
func (c *configuration) limits() sandbox.Limits {
	l := c.current().Sandbox.Limits
	return sandbox.Limits{
		Wall: milliseconds(l.WallMS), CPU: milliseconds(l.CPUMS), MemoryMB: l.MemoryMB, Calls: l.Calls, InFlight: l.InFlight, Depth: l.Depth,
		Argument: int64(l.ArgumentBytes), ToolResult: int64(l.ToolResultBytes), Result: int64(l.ResultBytes),
	}
}
