package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/fault"
)

// Catalog is an immutable snapshot of every server's tools. Names in programs and
// requests are resolved against one snapshot from start to end. A nil Catalog is
// an empty one.
type Catalog struct {
	version string
	servers []string // sorted
	tools   []Tool   // sorted by server, then name
	byID    map[ID]int
	shelves map[string]*shelf
	// aliases maps the canonical form of a server's name to the exact names that have it.
	aliases map[string][]string
}

// shelf is one server's part of a catalog.
type shelf struct {
	names   []string // sorted
	aliases map[string][]string
}

// NewCatalog makes a snapshot of the given servers' tools. A server without tools
// is known by name. Of tools with the same id the first counts.
func NewCatalog(servers map[string][]Tool) *Catalog {
	c := &Catalog{
		servers: slices.Sorted(maps.Keys(servers)),
		byID:    map[ID]int{},
		shelves: map[string]*shelf{},
		aliases: map[string][]string{},
	}
	for _, server := range c.servers {
		tools := slices.Clone(servers[server])
		slices.SortStableFunc(tools, func(a, b Tool) int { return strings.Compare(string(a.ID), string(b.ID)) })
		s := &shelf{aliases: map[string][]string{}}
		for _, t := range tools {
			if _, dup := c.byID[t.ID]; dup {
				continue
			}
			c.byID[t.ID] = len(c.tools)
			c.tools = append(c.tools, t)
			s.names = append(s.names, t.ID.Name())
			addAlias(s.aliases, t.ID.Name())
		}
		c.shelves[server] = s
		addAlias(c.aliases, server)
	}
	c.version = fingerprint(c.servers, c.tools)
	return c
}

func addAlias(aliases map[string][]string, name string) {
	if key := Snake(name); key != "" {
		aliases[key] = append(aliases[key], name)
	}
}

// fingerprint is equal for equal catalogs, in every replica.
func fingerprint(servers []string, tools []Tool) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	_ = enc.Encode(servers)
	for _, t := range tools {
		_ = enc.Encode([]any{t.ID, t.Description, t.SchemaHash, t.Annotations})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Version is equal for two snapshots exactly when they hold the same tools.
func (c *Catalog) Version() string {
	if c == nil {
		return ""
	}
	return c.version
}

// Servers are the exact names of the known servers, in order.
func (c *Catalog) Servers() []string {
	if c == nil {
		return nil
	}
	return slices.Clone(c.servers)
}

// Tools are all tools, in order of their ids within the order of the servers.
func (c *Catalog) Tools() []Tool {
	if c == nil {
		return nil
	}
	return slices.Clone(c.tools)
}

// ServerTools are the tools of one server by its exact name, in order.
func (c *Catalog) ServerTools(server string) []Tool {
	if c == nil || c.shelves[server] == nil {
		return nil
	}
	var out []Tool
	for _, name := range c.shelves[server].names {
		out = append(out, c.tools[c.byID[MakeID(server, name)]])
	}
	return out
}

// Get finds a tool by its exact id.
func (c *Catalog) Get(id ID) (Tool, bool) {
	if c == nil {
		return Tool{}, false
	}
	i, ok := c.byID[id]
	if !ok {
		return Tool{}, false
	}
	return c.tools[i], true
}

// Resolve finds the tool that a program means by mcp.server.name. The exact name
// always wins; otherwise both parts may be written in snake_case or camelCase.
// What is unknown or ambiguous is a *fault.Error with the code unknown_tool and
// up to three names that come near.
func (c *Catalog) Resolve(server, name string) (Tool, error) {
	if c == nil {
		return Tool{}, fault.New(fault.UnknownTool, "unknown server %q: no servers are configured", server)
	}
	s, ok := c.shelves[server]
	if !ok {
		exact, err := pick(c.aliases, "server", server)
		if err != nil {
			return Tool{}, err
		}
		if exact == "" {
			return Tool{}, c.unknownServer(server, name)
		}
		server, s = exact, c.shelves[exact]
	}
	if i, ok := c.byID[MakeID(server, name)]; ok {
		return c.tools[i], nil
	}
	exact, err := pick(s.aliases, "tool", name)
	if err != nil {
		return Tool{}, err
	}
	if exact == "" {
		return Tool{}, unknownTool(server, name, s.names)
	}
	return c.tools[c.byID[MakeID(server, exact)]], nil
}

// pick returns the one exact name with the same canonical form, or nothing.
func pick(aliases map[string][]string, kind, name string) (string, error) {
	found := aliases[Snake(name)]
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", fault.New(fault.UnknownTool, "%s name %q is ambiguous", kind, name).
		WithHint("write one of the exact names in brackets: %s", quoted(found))
}

func (c *Catalog) unknownServer(server, name string) error {
	err := fault.New(fault.UnknownTool, "unknown server %q", server)
	var elsewhere []string // the right tool at another server is the likeliest mistake
	for _, other := range c.servers {
		if _, ok := c.byID[MakeID(other, name)]; ok && len(elsewhere) < 3 {
			elsewhere = append(elsewhere, string(MakeID(other, name)))
		}
	}
	switch {
	case len(elsewhere) > 0:
		return err.WithHint("a tool of that name is at: %s", quoted(elsewhere))
	case len(c.servers) == 0:
		return err.WithHint("no servers are configured")
	}
	return err.WithHint("the nearest servers are: %s", quoted(nearest(server, c.servers, 3)))
}

func unknownTool(server, name string, names []string) error {
	err := fault.New(fault.UnknownTool, "server %q has no tool %q", server, name)
	err.Tool = string(MakeID(server, name))
	if len(names) == 0 {
		return err.WithHint("the server has no tools at all; look at its state")
	}
	return err.WithHint("the nearest tools are: %s", quoted(nearest(name, names, 3)))
}

func quoted(names []string) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteByte('"')
		b.WriteString(n)
		b.WriteByte('"')
	}
	return b.String()
}
