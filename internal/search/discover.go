package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
)

const (
	// encodeFor bounds the time that a model has for an intent; after that the words
	// must do.
	encodeFor = 2 * time.Second
	// namedBoost lifts what the intent names over all that is like it.
	namedBoost = 3
)

// view is what one request sees: the catalog and the facts do not change under it.
type view struct {
	*Finder
	catalog *tool.Catalog
	facts   *Facts
	notes   []string
}

func (f *Finder) view() *view { return &view{Finder: f, catalog: f.follow(), facts: f.facts.Load()} }

func (v *view) note(format string, args ...any) {
	v.notes = append(v.notes, fmt.Sprintf(format, args...))
}

// Discover answers a request of pml_discover: the tools and capabilities for an
// intent, best first, or without one those that the filter lets pass, by name. An
// error is a *fault.Error that says what is wrong with the request, or that of ctx.
func (f *Finder) Discover(ctx context.Context, req Request) (*Answer, error) {
	if err := req.normalize(); err != nil {
		return nil, err
	}
	v := f.view()
	if err := v.checkServer(req.Filter.Server); err != nil {
		return nil, err
	}
	before := v.context(req.ContextTools)
	var found Found
	var err error
	if req.Intent == "" {
		found = v.list(req)
	} else if found, err = v.search(ctx, req, before); err != nil {
		return nil, err
	}
	a := &Answer{Total: found.Total, Mode: found.Mode, Servers: f.o.NotReady()}
	if a.Results, err = v.results(ctx, found.Hits, req.Detail); err != nil {
		return nil, err
	}
	if end := req.Offset + req.Limit; end < found.Total {
		a.NextOffset = end
	}
	if req.IncludeSuggestions == nil || *req.IncludeSuggestions {
		a.Suggestions = v.suggest(before)
	}
	a.Notes = v.notes
	if req.Filter.kind() != Tools {
		f.metrics.searched.Inc()
		for _, h := range found.Hits {
			if h.Kind == Capabilities {
				f.metrics.matched.Inc()
			}
		}
	}
	return a, nil
}

// search ranks what the filter lets pass.
func (v *view) search(ctx context.Context, req Request, before []tool.ID) (Found, error) {
	q, err := v.query(ctx, req.Intent)
	if err != nil {
		return Found{}, err
	}
	o := v.options()
	o.Limit, o.Offset, o.Kind, o.MinRank = req.Limit, req.Offset, req.Filter.kind(), req.Filter.MinScore
	o.Keep = v.keep(req.Filter)
	o.Boost = v.boost(req.Intent, before)
	found, err := v.ask(ctx, q, o)
	if found.Mode == Partial {
		v.note("%d of %d tools and capabilities are found by words only, until their descriptions have been embedded", found.Missing, v.index.Len())
	}
	return found, err
}

// options are those that all searches have.
func (v *view) options() Options {
	o := Options{Neighbours: v.o.Neighbours, ExactRows: v.o.ExactRows}
	if e := v.meaning.Load().encoder; e != nil {
		o.Fusion = FusionFor(e.Model())
	}
	return o
}

// ask searches; where the vectors cannot be compared, by words.
func (v *view) ask(ctx context.Context, q Query, o Options) (Found, error) {
	began := time.Now()
	found, err := v.index.Search(ctx, q, o)
	if err != nil && ctx.Err() == nil && len(q.Vectors) > 0 {
		v.note("search goes by words only: %v", err)
		found, err = v.index.Search(ctx, Query{Text: q.Text}, o)
	}
	v.metrics.searching.Observe(time.Since(began).Seconds())
	return found, err
}

// query makes vectors of an intent. Where that cannot be, it notes why, and the
// search goes by words.
func (v *view) query(ctx context.Context, intent string) (Query, error) {
	text := intent
	if !strings.ContainsAny(text, " \t\n") {
		text = spell(text) // a name
	}
	m := v.meaning.Load()
	if m.encoder == nil {
		v.note("search goes by words only: %s", m.why)
		return Query{Text: text}, nil
	}
	key := queryKey(m.encoder, text)
	if q, ok := v.queries.get(key); ok {
		return q, nil
	}
	bounded, cancel := context.WithTimeout(ctx, encodeFor)
	defer cancel()
	began := time.Now()
	q, err := Ask(bounded, m.encoder, text)
	v.metrics.encoding.Observe(time.Since(began).Seconds())
	switch {
	case err == nil:
		v.queries.put(key, q)
	case ctx.Err() != nil:
		return q, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		v.note("search goes by words only: the embedding model %s has not answered within %s", m.encoder.Model(), encodeFor)
	default:
		v.note("search goes by words only: %v", err)
	}
	return q, nil
}

// checkServer refuses a server that nobody knows.
func (v *view) checkServer(server string) error {
	if server == "" {
		return nil
	}
	known := v.catalog.Servers()
	for _, s := range v.o.NotReady() {
		known = append(known, s.Name)
	}
	if slices.ContainsFunc(known, func(name string) bool { return sameServer(server, name) }) {
		return nil
	}
	slices.Sort(known)
	err := fault.New(fault.InvalidInput, "filter.server: there is no server %q", server)
	if len(known) == 0 {
		return err.WithHint("no servers are configured")
	}
	return err.WithHint("the servers are %s", strings.Join(slices.Compact(known), ", "))
}

func sameServer(asked, name string) bool {
	return asked == name || tool.Snake(asked) == tool.Snake(name)
}

// keep is the filter for documents; nil keeps all.
func (v *view) keep(f Filter) func(id string) bool {
	if f.Server == "" && f.Name == "" {
		return nil
	}
	return func(id string) bool {
		if c, ok := v.facts.Capabilities[id]; ok {
			return f.matchesName(c.Name) && (f.Server == "" ||
				slices.ContainsFunc(c.ToolsUsed, func(t tool.ID) bool { return sameServer(f.Server, t.Server()) }))
		}
		t := tool.ID(id)
		return f.matchesName(t.Name()) && (f.Server == "" || sameServer(f.Server, t.Server()))
	}
}

// matchesName compares a name as it is, and in snake_case.
func (f Filter) matchesName(name string) bool {
	if f.Name == "" {
		return true
	}
	exact, _ := path.Match(f.Name, name) // the pattern was checked before
	spelt, _ := path.Match(f.Name, tool.Snake(name))
	return exact || spelt
}

// boost lifts what the intent is the name of, and what goes with the tools that were
// used before.
func (v *view) boost(intent string, before []tool.ID) func(string) float64 {
	for _, prefix := range []string{"mcp.", "capabilities."} {
		intent = strings.TrimPrefix(intent, prefix)
	}
	named := (*v.names.Load())[tool.Snake(intent)]
	joined := v.facts.Knowledge.boost(before)
	if len(named) == 0 {
		return joined
	}
	return func(id string) float64 {
		factor := 1.0
		if joined != nil {
			factor = joined(id)
		}
		if slices.Contains(named, id) {
			factor *= namedBoost
		}
		return factor
	}
}

// context finds the tools that the caller has just used; a capability stands for
// its tools.
func (v *view) context(names []string) []tool.ID {
	var out []tool.ID
	for _, name := range names {
		name = strings.TrimPrefix(name, "mcp.")
		if c, ok := v.capability(strings.TrimPrefix(name, "capabilities.")); ok {
			out = append(out, c.ToolsUsed...)
			continue
		}
		server, of, ok := strings.Cut(name, ":")
		if !ok {
			server, of, _ = strings.Cut(name, ".")
		}
		if t, err := v.catalog.Resolve(server, of); err == nil {
			out = append(out, t.ID)
		} else {
			v.note("context_tools: %q is passed over: %v", name, err)
		}
	}
	return out
}

// capability finds one by its uuid or by one of its names.
func (v *view) capability(name string) (capability.Capability, bool) {
	if c, ok := v.facts.Capabilities[name]; ok {
		return c, true
	}
	for _, id := range (*v.names.Load())[name] {
		if c, ok := v.facts.Capabilities[id]; ok {
			return c, true
		}
	}
	return capability.Capability{}, false
}

// list is a page of what the filter lets pass: capabilities, then tools, by name.
func (v *view) list(req Request) Found {
	keep, kind := v.keep(req.Filter), req.Filter.kind()
	found := Found{Hits: []Hit{}}
	add := func(id string, of Kind) {
		if kind != "" && kind != of || keep != nil && !keep(id) {
			return
		}
		if found.Total >= req.Offset && found.Total < req.Offset+req.Limit {
			found.Hits = append(found.Hits, Hit{ID: id, Kind: of})
		}
		found.Total++
	}
	for _, c := range v.facts.capabilitiesByName() {
		add(c.ID.String(), Capabilities)
	}
	for _, t := range v.catalog.Tools() {
		add(string(t.ID), Tools)
	}
	return found
}

// suggest says what may help after the tools of a context.
func (v *view) suggest(before []tool.ID) []Suggestion {
	list := v.facts.Knowledge.Suggest(before, v.exists)
	list = slices.DeleteFunc(list, func(s Suggestion) bool {
		_, found := v.facts.Capabilities[s.ID]
		return s.Type == SuggestCapability && !found
	})
	for i := range list {
		list[i].Confidence = rounded(list[i].Confidence)
	}
	v.metrics.suggested.Add(float64(len(list)))
	v.given.note(list, time.Now())
	return list
}

func (v *view) exists(id tool.ID) bool {
	_, ok := v.catalog.Get(id)
	return ok
}

// rounded keeps three decimals: more says nothing, and costs tokens.
func rounded(x float64) float64 { return math.Round(x*1000) / 1000 }
