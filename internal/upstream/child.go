package upstream

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/supervise"
)

// childOptions says how to start a stdio server. The command is looked up here,
// in the PATH that the server itself will have.
func childOptions(o sessionOptions) (supervise.Options, error) {
	env := mergeEnv(o.environ, o.config)
	path, err := lookPath(o.config.Command, o.config.Cwd, env["PATH"])
	if err != nil {
		return supervise.Options{}, commandNotFound(o.name, o.config.Command, env["PATH"], err)
	}
	if dir := o.config.Cwd; dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return supervise.Options{}, fault.New(fault.UpstreamUnavailable, "server %q: its cwd %s is no folder", o.name, dir).
				WithHint("create the folder or change \"cwd\" of the server")
		}
	}
	list := make([]string, 0, len(env))
	for k, v := range env {
		list = append(list, k+"="+v)
	}
	return supervise.Options{
		Command:  path,
		Args:     o.config.Args,
		Env:      list,
		Dir:      o.config.Cwd,
		Watchdog: o.watchdog,
	}, nil
}

// lookPath finds an executable like a shell would, in the given PATH.
func lookPath(command, dir, path string) (string, error) {
	if strings.ContainsRune(command, filepath.Separator) {
		if !filepath.IsAbs(command) && dir != "" {
			command = filepath.Join(dir, command)
		}
		abs, err := filepath.Abs(command)
		if err != nil {
			return "", err
		}
		return abs, executable(abs)
	}
	last := os.ErrNotExist
	for _, folder := range filepath.SplitList(path) {
		if folder == "" || !filepath.IsAbs(folder) {
			continue // a server must not be found by where we happen to stand
		}
		candidate := filepath.Join(folder, command)
		err := executable(candidate)
		if err == nil {
			return candidate, nil
		}
		if !os.IsNotExist(err) {
			last = err
		}
	}
	return "", last
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return os.ErrPermission
	}
	return nil
}

// rootOf makes an MCP root of a folder or a URI.
func rootOf(r string) *mcp.Root {
	if strings.Contains(r, "://") {
		return &mcp.Root{URI: r}
	}
	if abs, err := filepath.Abs(r); err == nil {
		r = abs
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(r)}
	return &mcp.Root{URI: u.String(), Name: filepath.Base(r)}
}
