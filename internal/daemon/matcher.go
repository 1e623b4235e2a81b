package daemon

import (
	"context"
	"encoding/json"

	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/search"
)

// matcher is the finder as the engine sees it.
type matcher struct{ finder *search.Finder }

// Match finds what an intent alone asks for.
func (m matcher) Match(ctx context.Context, intent string, args []string) (execute.Match, error) {
	p, err := m.finder.Match(ctx, intent, args)
	if err != nil {
		return execute.Match{}, err
	}
	out := execute.Match{Notes: p.Notes}
	if b := p.Best; b != nil {
		out.Best = &execute.Candidate{Name: b.Name, Version: b.Version, Confidence: b.Confidence, WhenComplete: b.WhenComplete}
		for _, missing := range b.Missing {
			out.Best.Missing = append(out.Best.Missing, execute.MissingArgument{Name: missing.Name, Schema: missing.Schema})
		}
	}
	if len(p.RunnersUp) > 0 {
		if out.Suggestions, err = json.Marshal(p.RunnersUp); err != nil {
			return out, err
		}
	}
	if p.Plan != nil {
		out.Plan, err = json.Marshal(p.Plan)
	}
	return out, err
}

// Vector is the vector of an intent; false while there is no model.
func (m matcher) Vector(ctx context.Context, intent string) ([]float32, bool) {
	return m.finder.Vector(ctx, intent)
}
