package search

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/tool"
)

// Source is where the tools come from.
type Source interface {
	Catalog() *tool.Catalog
}

// FinderOptions join a Finder with what it asks. The zero value finds tools and
// tells nothing besides.
type FinderOptions struct {
	// NotReady lists the servers that are not ready.
	NotReady func() []ServerState
	// Approval is the class of a call of a tool: allow, ask or deny.
	Approval func(tool.Tool) string
	// Examples gives the arguments of a successful call of each tool that has one.
	Examples func(ctx context.Context, ids []tool.ID) (map[tool.ID]json.RawMessage, error)
	// Neighbours finds the nearest where there are more than ExactRows documents, of
	// which this process keeps no vectors then. Default: it always keeps them.
	Neighbours Neighbours
	ExactRows  int // default 50,000
	Registerer prometheus.Registerer
}

// Facts are what is known of tools and capabilities besides the catalog. They are
// not changed after SetFacts was called with them.
type Facts struct {
	Capabilities map[string]capability.Capability // by uuid; those that may be found
	Tools        map[tool.ID]ToolFacts
	Knowledge    *Knowledge
}

// ToolFacts are what calls have shown about a tool.
type ToolFacts struct {
	Successes, Failures int64
	Observed            json.RawMessage // the schema of its results; empty for none
}

// Finder answers searches over a source's current catalog and the facts that it was
// given. It is safe for concurrent use. A search takes no lock, unless it is the
// first after a change of the catalog.
type Finder struct {
	source  Source
	o       FinderOptions
	index   *Index
	queries *queryCache
	metrics *metrics
	given   given

	facts   atomic.Pointer[Facts]
	meaning atomic.Pointer[meaning]
	names   atomic.Pointer[map[string][]string] // ids by canonical names
	indexed atomic.Pointer[string]              // version of the catalog that is indexed

	mu        sync.Mutex // held by the one that changes what is indexed
	documents map[string]document
}

// meaning is the model that understands intents, or why there is none.
type meaning struct {
	encoder Encoder
	why     string
}

// document is what was indexed of a tool or a capability.
type document struct {
	kind  Kind
	stamp string // equal for equal texts
	dense string
}

// NewFinder makes a Finder, which finds the source's tools by words at once.
func NewFinder(source Source, o FinderOptions) *Finder {
	if o.NotReady == nil {
		o.NotReady = func() []ServerState { return nil }
	}
	if o.Approval == nil {
		o.Approval = func(tool.Tool) string { return "" }
	}
	if o.ExactRows <= 0 {
		o.ExactRows = defaultExactRows
	}
	f := &Finder{
		source: source, o: o, index: NewIndex(), queries: newQueryCache(), metrics: newMetrics(o.Registerer),
		documents: map[string]document{},
	}
	f.facts.Store(&Facts{})
	f.meaning.Store(&meaning{why: "no embedding model is loaded yet"})
	f.names.Store(&map[string][]string{})
	none := ""
	f.indexed.Store(&none)
	return f
}

// SetEncoder sets the model of the index's vectors, or with a nil encoder says why
// there is none. Vectors of another model must have been cleared before.
func (f *Finder) SetEncoder(e Encoder, why string) { f.meaning.Store(&meaning{e, why}) }

// SetVectors sets the vectors that documents are found by, by their ids.
func (f *Finder) SetVectors(vectors map[string][]float32) error { return f.index.SetVectors(vectors) }

// ClearVectors forgets all vectors.
func (f *Finder) ClearVectors() error { return f.index.ClearVectors() }

// Exact reports whether there are so few documents that all their vectors are kept here.
func (f *Finder) Exact() bool { return f.o.Neighbours == nil || f.index.Len() <= f.o.ExactRows }

// DenseText is what a model is to read of a document.
type DenseText struct {
	Kind Kind
	Text string
}

// Texts are what is indexed now, by id.
func (f *Finder) Texts() map[string]DenseText {
	f.follow()
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[string]DenseText, len(f.documents))
	for id, d := range f.documents {
		out[id] = DenseText{d.kind, d.dense}
	}
	return out
}

// SetFacts replaces what is known. Capabilities that are not among the facts are no
// longer found.
func (f *Finder) SetFacts(facts Facts) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var put []Document
	for id, c := range facts.Capabilities {
		text := CapabilityText(c)
		if old, known := f.documents[id]; known && old.stamp == text.Lexical {
			continue
		}
		f.documents[id] = document{Capabilities, text.Lexical, text.Dense}
		put = append(put, Document{ID: id, Kind: Capabilities, Lexical: text.Lexical})
	}
	err := f.replace(put, func(id string, d document) bool {
		_, known := facts.Capabilities[id]
		return d.kind == Capabilities && !known
	})
	if err != nil {
		return err
	}
	if err := f.index.SetReliability(facts.reliability()); err != nil {
		return err
	}
	f.facts.Store(&facts)
	f.rename(f.source.Catalog())
	return nil
}

// reliability says by how much the scores of what has a past are multiplied.
func (f *Facts) reliability() map[string]float64 {
	out := make(map[string]float64, len(f.Tools)+len(f.Capabilities))
	for id, t := range f.Tools {
		out[string(id)] = ToolReliability(t.Successes, t.Failures)
	}
	for id, c := range f.Capabilities {
		out[id] = CapabilityReliability(c.State, c.SuccessCount, c.FailureCount)
	}
	return out
}

// follow indexes the catalog if it has changed, and returns it.
func (f *Finder) follow() *tool.Catalog {
	catalog := f.source.Catalog()
	if *f.indexed.Load() == catalog.Version() {
		return catalog
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	catalog = f.source.Catalog()
	version := catalog.Version()
	if *f.indexed.Load() == version {
		return catalog
	}
	var put []Document
	for _, t := range catalog.Tools() {
		id, stamp := string(t.ID), t.SchemaHash+"\x00"+t.Description
		if old, known := f.documents[id]; known && old.stamp == stamp {
			continue
		}
		text := ToolText(t)
		f.documents[id] = document{Tools, stamp, text.Dense}
		put = append(put, Document{ID: id, Kind: Tools, Lexical: text.Lexical})
	}
	err := f.replace(put, func(id string, d document) bool {
		_, known := catalog.Get(tool.ID(id))
		return d.kind == Tools && !known
	})
	if err == nil {
		err = f.index.SetReliability(f.facts.Load().reliability())
	}
	if err != nil {
		panic(err) // documents and factors of our own making
	}
	f.rename(catalog)
	f.indexed.Store(&version)
	return catalog
}

// replace puts documents into the index and takes out those that are gone.
func (f *Finder) replace(put []Document, gone func(string, document) bool) error {
	var out []string
	for id, d := range f.documents {
		if gone(id, d) {
			out = append(out, id)
			delete(f.documents, id)
		}
	}
	if len(out) > 0 {
		if err := f.index.Remove(out...); err != nil {
			return err
		}
	}
	if len(put) == 0 {
		return nil
	}
	slices.SortFunc(put, func(a, b Document) int { return strings.Compare(a.ID, b.ID) })
	return f.index.Put(put...)
}

// rename notes by which names, however they are spelt, tools and capabilities are
// meant.
func (f *Finder) rename(catalog *tool.Catalog) {
	names := map[string][]string{}
	for _, t := range catalog.Tools() {
		name := tool.Snake(t.ID.Name())
		for _, key := range []string{name, tool.Snake(t.ID.Server()) + "_" + name} {
			names[key] = append(names[key], string(t.ID))
		}
	}
	for id, c := range f.facts.Load().Capabilities {
		for _, name := range append(slices.Clone(c.Aliases), c.Name) {
			names[name] = append(names[name], id)
		}
	}
	f.names.Store(&names)
}

// capabilitiesByName are the capabilities of the facts, in order of name.
func (f *Facts) capabilitiesByName() []capability.Capability {
	return slices.SortedFunc(maps.Values(f.Capabilities), func(a, b capability.Capability) int { return strings.Compare(a.Name, b.Name) })
}
