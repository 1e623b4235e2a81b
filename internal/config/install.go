package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tailscale/hujson"
)

// Change says what an edit of a file has done.
type Change struct {
	Path    string   `json:"path"`
	Changed bool     `json:"changed"`          // false: everything was there already
	Backup  string   `json:"backup,omitempty"` // the file as it was; empty for a new file
	Names   []string `json:"names,omitempty"`  // what was added or changed
}

// InstallInto writes a server into a client's file. Formatting, comments and
// whatever else the file and the entry hold stay. A backup is left beside the
// file; doing it again changes nothing.
func InstallInto(c Client, path, name, command string, args []string) (Change, error) {
	if args == nil {
		args = []string{}
	}
	return edit(path, func(e *editor) error {
		at := []string{c.key(), name}
		if c == VSCode || c == ClaudeCode {
			e.set(append(slices.Clone(at), "type"), TypeStdio)
		}
		e.set(append(slices.Clone(at), "command"), command)
		e.set(append(slices.Clone(at), "args"), args)
		return e.err
	})
}

// AddServers writes entries into our own file, secrets and all, leaving those
// that are there. The names of the added ones are in the Change.
func AddServers(path string, servers map[string]Server) (Change, error) {
	return edit(path, func(e *editor) error {
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			if !e.has("mcpServers", name) {
				e.set([]string{"mcpServers", name}, revealed(servers[name]))
			}
		}
		return e.err
	})
}

// revealed is an entry in the words of the file, secrets in clear.
func revealed(s Server) map[string]any {
	out := map[string]any{}
	data, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil { // an entry always encodes
		return out
	}
	for key, secrets := range map[string]map[string]Secret{"env": s.Env, "headers": s.Headers} {
		if len(secrets) == 0 {
			continue
		}
		clear := map[string]string{}
		for k, v := range secrets {
			clear[k] = v.Reveal()
		}
		out[key] = clear
	}
	return out
}

// edit reads, changes and replaces a file.
func edit(path string, change func(*editor) error) (Change, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a link into somebody's dotfiles stays one
	}
	out := Change{Path: path}
	src, err := os.ReadFile(path) //nolint:gosec // editing the file that the user names is this package's purpose
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, fmt.Errorf("edit %s: %w", path, err)
	}
	text := bytes.TrimPrefix(src, []byte("\ufeff"))
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	root, bad := syntax(text)
	if bad != nil {
		return out, &Invalid{File: path, Problems: []Problem{*bad}}
	}
	e := &editor{root: &root, unit: indentOf(text)}
	if err := change(e); err != nil {
		return out, fmt.Errorf("edit %s: %w", path, err)
	}
	if len(e.changed) == 0 {
		return out, nil
	}
	out.Changed, out.Names = true, e.changed
	if exists {
		if out.Backup, err = backup(path, src); err != nil {
			return out, err
		}
	}
	return out, replace(path, root.Pack())
}

// backup keeps src beside the file under a name that was not there before.
func backup(path string, src []byte) (string, error) {
	stamp := time.Now().Format("20060102-150405")
	for n := range 100 {
		name := path + ".bak-" + stamp
		if n > 0 {
			name = fmt.Sprintf("%s-%d", name, n)
		}
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // beside the user's own file
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("keep a backup: %w", err)
		}
		_, err = f.Write(src)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", fmt.Errorf("keep a backup: %w", err)
		}
		return name, nil
	}
	return "", fmt.Errorf("keep a backup: too many of %s in one second", stamp)
}

// replace writes a file so that nobody sees half of it, and keeps its mode.
func replace(path string, data []byte) error {
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a folder for a client's configuration
		return fmt.Errorf("write %s: %w", path, err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".pml-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// editor sets members in JSON with comments.
type editor struct {
	root    *hujson.Value
	unit    string
	changed []string
	err     error
}

// indentOf is the first indentation in a text, else two spaces.
func indentOf(text []byte) string {
	for l := range strings.Lines(string(text)) {
		if trimmed := strings.TrimLeft(l, " \t"); len(trimmed) < len(l) && strings.HasPrefix(trimmed, `"`) {
			return l[:len(l)-len(trimmed)]
		}
	}
	return "  "
}

func (e *editor) has(path ...string) bool {
	v := e.root
	for _, key := range path {
		next, ok := member(v, key)
		if !ok {
			return false
		}
		v = next
	}
	return true
}

// set puts value at path, making the objects on the way.
func (e *editor) set(path []string, value any) {
	if e.err != nil {
		return
	}
	v := e.root
	for i, key := range path {
		o, ok := v.Value.(*hujson.Object)
		if !ok {
			e.err = fmt.Errorf("%s is no object", strings.Join(path[:i], "."))
			return
		}
		last := i == len(path)-1
		next, found := member(v, key)
		if !found {
			content := value
			for j := len(path) - 1; j > i; j-- {
				content = map[string]any{path[j]: content}
			}
			e.add(o, key, content, i)
			e.note(path[min(1, len(path)-1)])
			return
		}
		if last {
			if e.swap(next, value, i+1) {
				e.note(path[min(1, len(path)-1)])
			}
			return
		}
		v = next
	}
}

func (e *editor) note(name string) {
	if !slices.Contains(e.changed, name) {
		e.changed = append(e.changed, name)
	}
}

// swap replaces a value, unless it means the same already.
func (e *editor) swap(v *hujson.Value, value any, depth int) bool {
	want, err := json.Marshal(value)
	if err != nil {
		e.err = err
		return false
	}
	std := v.Clone()
	std.Minimize()
	var a, b any
	if json.Unmarshal(std.Pack(), &a) == nil && json.Unmarshal(want, &b) == nil {
		x, errX := json.Marshal(a)
		y, errY := json.Marshal(b)
		if errX == nil && errY == nil && bytes.Equal(x, y) {
			return false
		}
	}
	fresh, err := e.encode(value, strings.Repeat(e.unit, depth))
	if err != nil {
		e.err = err
		return false
	}
	v.Value = fresh
	return true
}

// add appends a member, laid out like its siblings.
func (e *editor) add(o *hujson.Object, key string, value any, depth int) {
	outer := strings.Repeat(e.unit, depth)
	inner := outer + e.unit
	oneLine := false
	m := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(key)}}
	if n := len(o.Members); n > 0 {
		sibling := string(o.Members[n-1].Name.BeforeExtra)
		if i := strings.LastIndexByte(sibling, '\n'); i >= 0 {
			inner = sibling[i+1:]
		} else {
			oneLine = true
		}
		if o.Members[n-1].Value.AfterExtra != nil { // the file ends its lists with a comma
			m.Value.AfterExtra = hujson.Extra{}
		}
	}
	content, err := e.encode(value, inner)
	if err != nil {
		e.err = err
		return
	}
	m.Value.Value = content
	m.Value.BeforeExtra = hujson.Extra(" ")
	if oneLine {
		m.Name.BeforeExtra = hujson.Extra(" ")
	} else {
		// A comment after the last member stays beside it.
		kept := strings.TrimRight(string(o.AfterExtra), " \t\r\n")
		m.Name.BeforeExtra = hujson.Extra(kept + "\n" + inner)
		o.AfterExtra = hujson.Extra("\n" + outer)
	}
	o.Members = append(o.Members, m)
}

// encode makes the indented form of a value that starts at an indentation.
func (e *editor) encode(value any, indent string) (hujson.ValueTrimmed, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent(indent, e.unit)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	v, err := hujson.Parse(bytes.TrimSpace(buf.Bytes()))
	if err != nil {
		return nil, err
	}
	return v.Value, nil
}
