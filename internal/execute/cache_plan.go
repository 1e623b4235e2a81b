package execute

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/analysis"
	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
)

// cachePlan is what must be known to answer a run from the cache, and to keep its
// result there.
type cachePlan struct {
	key     capability.CacheKey
	tools   []tool.ID // all that the program, and every capability inside it, can be seen to use
	servers []string
	inner   []uuid.UUID
	// plain: every tool is read-only and nothing in the text asks for time or chance.
	// What is not plain needs a person's word.
	plain bool

	// What follows is known after the cache was asked.
	keep   bool // the result may be kept
	config capability.CacheConfig
	since  time.Time // the database's, before anything was read
	marks  []uint64  // of each server: how often it was written to
	drops  uint64
}

// trusted reports whether tools of the run that claim nothing are taken for reading.
func (p *cachePlan) trusted() bool { return p != nil && p.keep && p.config.Trusted() }

// uncertain finds what makes two runs of one program differ. That it also finds the
// words in texts only costs a place in the cache.
var uncertain = regexp.MustCompile(`\b(Date|Temporal|performance|random|crypto|Intl|toLocale\w*)\b`)

// planCache says how a run could be answered from a cache; nil where it never can: a
// tool claims to write, or it is not known which tools the program calls.
func planCache(catalog *tool.Catalog, req Request, ready *prepared) *cachePlan {
	p := &cachePlan{key: capability.CacheKey{Capability: ready.capability.ID, Version: ready.capability.Version}, plain: true}
	schemas := map[tool.ID]string{}
	if !p.see(catalog, ready.program, schemas) {
		return nil
	}
	inner := map[string]any{}
	for name, in := range ready.inner {
		if !p.see(catalog, in.program, schemas) {
			return nil
		}
		p.inner = append(p.inner, in.capability.ID)
		inner[name] = []any{in.capability.ID, in.capability.Version, in.program.HashExact}
	}
	if len(schemas) == 0 {
		return nil // it costs as little to run as to look for
	}
	p.tools = slices.Sorted(maps.Keys(schemas))
	for _, id := range p.tools {
		p.servers = append(p.servers, id.Server())
	}
	p.servers = slices.Compact(p.servers)
	// A program that is run by name reads the values of its literals from args too.
	lifted := req.Implementation.Type == CapabilityType
	p.key.Hash = hashOf(ready.program.HashExact, lifted, canonicalJSON(ready.args), schemas, inner)
	return p
}

// see takes in the tools of a program; false where it cannot be cached.
func (p *cachePlan) see(catalog *tool.Catalog, program *analysis.Program, schemas map[tool.ID]string) bool {
	if !program.Exact || program.Flags != (structure.Flags{}) {
		return false
	}
	p.plain = p.plain && !uncertain.MatchString(program.Source)
	for _, n := range program.Structure.Nodes {
		if n.Type != structure.Task {
			continue
		}
		t, known := catalog.Get(tool.ID(n.Tool))
		if !known || strings.Contains(n.Tool, "*") || claimsToWrite(t) {
			return false
		}
		p.plain = p.plain && t.ReadOnly()
		schemas[t.ID] = t.SchemaHash
	}
	return true
}

// claimsToWrite reports whether a server says of its tool that it changes something. A
// tool of which nothing is said may be vouched for by a person, this one not.
func claimsToWrite(t tool.Tool) bool {
	a := t.Annotations
	return !t.ReadOnly() && (a.ReadOnly != nil || a.Destructive != nil && *a.Destructive)
}

// canonicalJSON is the same for values that are the same, however they are written.
// What cannot be read stands for itself.
func canonicalJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // keeps long numbers apart
	var v any
	if d.Decode(&v) != nil {
		return mustJSON(string(raw))
	}
	return mustJSON(v)
}

// hashOf is the hash of values whose JSON is the same for the same values.
func hashOf(parts ...any) string {
	sum := sha256.Sum256(mustJSON(parts))
	return hex.EncodeToString(sum[:])
}
