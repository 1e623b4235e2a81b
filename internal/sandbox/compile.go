package sandbox

import (
	"container/list"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"

	sandboxruntime "github.com/pml-run/pml/sandbox-runtime"
)

// unit is one compiled body: the program or a capability.
type unit struct {
	js      string
	text    string // what was compiled: the body in its wrapper
	mapping sourceMap
	// prefix is how many UTF-16 units of the wrapper are before the body on its first line.
	prefix int
}

// source maps a one-based place in the JavaScript to the body.
func (u unit) source(line, column int) (int, int, bool) {
	at, ok := u.mapping.find(line, column)
	if !ok {
		return 0, 0, false
	}
	// The map has a segment for each statement and call, not for each name. Where
	// the text since the segment is the same on both sides, so is the distance.
	here := after(sourceLine(u.js, line), at.column+1)
	indent := len(here) - len(strings.TrimLeft(here, " "))
	here = here[indent:]
	distance := max(0, column-1-at.column-indent)
	there := after(sourceLine(u.text, at.sourceLine+1), at.sourceColumn+1)
	if rest := after(here, distance+1); strings.HasPrefix(there, strings.TrimSuffix(here, rest)) {
		at.sourceColumn += distance
	}
	if at.sourceLine == 0 {
		at.sourceColumn -= u.prefix
	}
	return at.sourceLine + 1, max(1, at.sourceColumn+1), true
}

// compiler strips types. What it compiled last is kept, by hash.
type compiler struct {
	limit int

	mu    sync.Mutex
	byKey map[[sha256.Size]byte]*list.Element
	order *list.List // of *compiled, the most recently used first
}

type compiled struct {
	key  [sha256.Size]byte
	unit unit
}

func newCompiler(limit int) *compiler {
	return &compiler{limit: limit, byKey: map[[sha256.Size]byte]*list.Element{}, order: list.New()}
}

// unitURL is what stack frames call a unit; the program's own has no name.
func unitURL(capability string) string {
	if capability == "" {
		return "pml:program"
	}
	return "pml:capability/" + url.PathEscape(capability)
}

// wrap makes a body into a function without moving any of its lines.
func wrap(body, recorder, frame string) (text string, prefix int) {
	head := `"use strict";async function program(mcp,capabilities,args,progress,console,` + recorder + "," + frame + "){"
	return head + body + "\n}", len(head)
}

// compile returns the body as JavaScript, or esbuild's first complaint about it.
func (c *compiler) compile(body, capability, recorder, frame string) (unit, *api.Message) {
	key := sha256.Sum256([]byte(capability + "\x00" + recorder + "\x00" + frame + "\x00" + body))
	if u, ok := c.cached(key); ok {
		return u, nil
	}
	text, prefix := wrap(body, recorder, frame)
	r := api.Transform(text, api.TransformOptions{
		Loader: api.LoaderTS, Target: api.ESNext, Sourcemap: api.SourceMapExternal,
		SourcesContent: api.SourcesContentExclude, LogLevel: api.LogLevelSilent, Charset: api.CharsetUTF8,
		TsconfigRaw: `{"compilerOptions":{"experimentalDecorators":true,"verbatimModuleSyntax":true}}`,
	})
	if len(r.Errors) > 0 {
		m := r.Errors[0]
		if m.Location != nil {
			l := *m.Location
			if l.Line == 1 {
				l.Column -= prefix
			}
			m.Location = &l
		}
		return unit{}, &m
	}
	mapping, err := parseSourceMap(r.Map)
	if err != nil {
		return unit{}, &api.Message{Text: "internal: " + err.Error()}
	}
	u := unit{js: string(r.Code) + "program\n//# sourceURL=" + unitURL(capability), text: text, mapping: mapping, prefix: prefix}
	c.keep(key, u)
	return u, nil
}

func (c *compiler) cached(key [sha256.Size]byte) (unit, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[key]
	if !ok {
		return unit{}, false
	}
	c.order.MoveToFront(e)
	entry, ok := e.Value.(*compiled)
	return entry.unit, ok
}

func (c *compiler) keep(key [sha256.Size]byte, u unit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byKey[key]; ok {
		return // compiled twice at the same time
	}
	c.byKey[key] = c.order.PushFront(&compiled{key, u})
	if c.order.Len() <= c.limit {
		return
	}
	if last, ok := c.order.Remove(c.order.Back()).(*compiled); ok {
		delete(c.byKey, last.key)
	}
}

// bundleRuntime makes one script of the worker's runtime.
func bundleRuntime() (string, error) {
	text, err := bundle("main.ts")
	return text + "//# sourceURL=pml:runtime", err
}

// bundleBoot makes the URL of the module that a worker starts with.
func bundleBoot() (string, error) {
	text, err := bundle("boot.ts")
	return "data:application/javascript;base64," + base64.StdEncoding.EncodeToString([]byte(text)), err
}

func bundle(entry string) (string, error) {
	load := api.Plugin{Name: "embedded", Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: path.Base(a.Path), Namespace: "embedded"}, nil
		})
		b.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: "embedded"}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
			text, err := fs.ReadFile(sandboxruntime.Files, a.Path)
			contents := string(text)
			return api.OnLoadResult{Contents: &contents, Loader: api.LoaderTS}, err
		})
	}}
	r := api.Build(api.BuildOptions{
		EntryPoints: []string{entry}, Bundle: true, Format: api.FormatIIFE, Target: api.ESNext,
		Banner:           map[string]string{"js": `"use strict";`},
		MinifyWhitespace: true, MinifySyntax: true, MinifyIdentifiers: true, Charset: api.CharsetUTF8,
		LogLevel: api.LogLevelSilent, Plugins: []api.Plugin{load},
	})
	if len(r.Errors) > 0 {
		return "", fmt.Errorf("bundle the sandbox runtime: %s", strings.Join(api.FormatMessages(r.Errors, api.FormatMessagesOptions{}), "; "))
	}
	return string(r.OutputFiles[0].Contents), nil
}
