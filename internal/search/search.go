// Package search finds tools for an intent and ranks them. It reads immutable
// snapshots and keeps no truth of its own.
package search

import (
	"cmp"
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
)

// Limits of one page.
const (
	defaultLimit = 8
	maxLimit     = 50
)

// Request is what a client asks of pml_discover.
type Request struct {
	Intent string `json:"intent,omitempty"` // empty lists everything
	Filter Filter `json:"filter,omitzero"`
	Limit  int    `json:"limit,omitempty"` // 1 to 50, default 8
	Offset int    `json:"offset,omitempty"`
}

// Filter narrows a search.
type Filter struct {
	Server string `json:"server,omitempty"`
	Name   string `json:"name,omitempty"` // glob over the tool's name
}

// Answer is a page of what was found.
type Answer struct {
	Results    []Result      `json:"results"`
	Total      int           `json:"total"`
	NextOffset int           `json:"next_offset,omitempty"`
	Servers    []ServerState `json:"servers,omitempty"` // only those that are not ready
}

// Result is one tool.
type Result struct {
	Type        string           `json:"type"` // "tool"
	ID          tool.ID          `json:"id"`
	Call        string           `json:"call"` // the expression to use in a program
	Description string           `json:"description,omitempty"`
	InputSchema json.RawMessage  `json:"inputSchema,omitempty"`
	Annotations tool.Annotations `json:"annotations"`
	score       float64
}

// ServerState names a server whose tools may be missing or out of date.
type ServerState struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Error string `json:"error,omitempty"`
}

// Source is where the tools come from.
type Source interface {
	Catalog() *tool.Catalog
}

// Finder answers searches over a source's current catalog.
type Finder struct {
	source   Source
	notReady func() []ServerState
}

// NewFinder makes a Finder; notReady lists the servers that are not ready.
func NewFinder(source Source, notReady func() []ServerState) *Finder {
	return &Finder{source: source, notReady: notReady}
}

// Discover lists the tools, or those whose names have words of the intent, best first.
func (f *Finder) Discover(_ context.Context, req Request) (*Answer, error) {
	if err := req.normalize(); err != nil {
		return nil, err
	}
	words := strings.FieldsFunc(tool.Snake(req.Intent), func(r rune) bool { return r == '_' })
	found := []Result{}
	for _, t := range f.source.Catalog().Tools() {
		if !req.Filter.match(t) {
			continue
		}
		score := nameScore(t, words)
		if len(words) > 0 && score == 0 {
			continue
		}
		found = append(found, Result{
			Type: "tool", ID: t.ID, Call: t.ID.Expression(), Description: t.Description,
			InputSchema: t.InputSchema, Annotations: t.Annotations, score: score,
		})
	}
	slices.SortStableFunc(found, func(a, b Result) int { return cmp.Compare(b.score, a.score) })
	a := &Answer{Total: len(found), Servers: f.notReady()}
	a.Results = found[min(req.Offset, len(found)):min(req.Offset+req.Limit, len(found))]
	if end := req.Offset + req.Limit; end < len(found) {
		a.NextOffset = end
	}
	return a, nil
}

func (r *Request) normalize() error {
	if r.Limit == 0 {
		r.Limit = defaultLimit
	}
	if r.Limit < 1 || r.Limit > maxLimit {
		return fault.New(fault.InvalidInput, "limit is %d", r.Limit).WithHint("use 1 to %d", maxLimit)
	}
	if r.Offset < 0 {
		return fault.New(fault.InvalidInput, "offset is %d", r.Offset).WithHint("use 0 or the last answer's next_offset")
	}
	if _, err := path.Match(r.Filter.Name, ""); err != nil {
		return fault.New(fault.InvalidInput, "filter.name %q is no glob: %v", r.Filter.Name, err).WithHint("for instance read_*")
	}
	return nil
}

func (f Filter) match(t tool.Tool) bool {
	if f.Server != "" && f.Server != t.ID.Server() && tool.Snake(f.Server) != tool.Snake(t.ID.Server()) {
		return false
	}
	if f.Name == "" {
		return true
	}
	ok, _ := path.Match(f.Name, t.ID.Name()) // the pattern was checked before
	return ok
}

// nameScore is the share of the words that the tool's id has.
func nameScore(t tool.Tool, words []string) float64 {
	if len(words) == 0 {
		return 0
	}
	name := "_" + tool.Snake(t.ID.Server()) + "_" + tool.Snake(t.ID.Name()) + "_"
	hits := 0
	for _, w := range words {
		if strings.Contains(name, "_"+w+"_") {
			hits++
		}
	}
	return float64(hits) / float64(len(words))
}
