package search

import (
	"context"
	"slices"

	"github.com/pml-run/pml/internal/tool"
)

// runnersUp is how many other results a proposal has.
const runnersUp = 5

// Proposal is what there is to do for an intent that came without a program.
type Proposal struct {
	// Best is the capability that fits best; nil when there is none.
	Best *Capable `json:"best,omitempty"`
	// RunnersUp are other tools and capabilities for the intent, best first.
	RunnersUp []Result `json:"runners_up,omitempty"`
	// Plan is a graph of the tools that fit; it was never run, and nothing runs it by
	// itself. nil when no tool fits.
	Plan  *Plan    `json:"plan,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// Capable is a capability that may be run for an intent.
type Capable struct {
	ID      string `json:"id"` // its uuid
	Name    string `json:"name"`
	Version int    `json:"version"`
	// Confidence is the probability, from 0 to 1, that running it does what was asked
	// for (see Confidence and DefaultThreshold).
	Confidence float64 `json:"confidence"`
	// WhenComplete is the Confidence if every parameter were given.
	WhenComplete float64 `json:"confidence_when_complete"`
	// Complete: no parameter that has no default is missing.
	Complete bool             `json:"complete"`
	Missing  []tool.Parameter `json:"missing,omitempty"`
}

// Match finds what could be done for an intent alone, with arguments of these names:
// the best of the capabilities that may run by intent, how sure that is, and what
// else there is. Search by words only gives no confidence that runs anything.
func (f *Finder) Match(ctx context.Context, intent string, args []string) (*Proposal, error) {
	req := Request{Intent: intent}
	if err := req.normalize(); err != nil {
		return nil, err
	}
	v := f.view()
	p := &Proposal{}
	if req.Intent == "" {
		return p, nil
	}
	q, err := v.query(ctx, req.Intent)
	if err != nil {
		return nil, err
	}
	f.metrics.searched.Inc()
	if p.Best, err = v.capable(ctx, q, args); err != nil {
		return nil, err
	}
	o := v.options()
	o.Limit, o.Boost = mostCandidates, v.boost(req.Intent, nil)
	tools := o
	tools.Kind = Tools
	candidates, err := v.ask(ctx, q, tools)
	if err != nil {
		return nil, err
	}
	p.Plan = v.plan(candidates.Hits)
	found, err := v.ask(ctx, q, o)
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(found.Hits, func(h Hit) bool { return p.Best != nil && h.ID == p.Best.ID })
	p.RunnersUp, err = v.results(ctx, others[:min(len(others), runnersUp)], DetailSignature)
	p.Notes = v.notes
	return p, err
}

// capable is the best of the capabilities that may run by intent.
func (v *view) capable(ctx context.Context, q Query, args []string) (*Capable, error) {
	o := v.options()
	o.Keep = func(id string) bool {
		c, ok := v.facts.Capabilities[id]
		return ok && RunsByIntent(c.State, c.SuccessCount, c.FailureCount)
	}
	hit, m, err := v.index.Best(ctx, q, o)
	if err != nil {
		return nil, err
	}
	c, ok := v.facts.Capabilities[hit.ID]
	if !ok {
		return nil, nil
	}
	best := &Capable{ID: hit.ID, Name: c.Name, Version: c.Version}
	for _, p := range Parameters(c) {
		if p.Required && !slices.Contains(args, p.Name) {
			best.Missing = append(best.Missing, p)
		}
	}
	best.Complete = len(best.Missing) == 0
	m.Complete, m.Swapped = true, swapped(q.Text, c.Intent)
	best.WhenComplete = Confidence(m)
	m.Complete = best.Complete
	best.Confidence = Confidence(m)
	if best.Confidence >= DefaultThreshold {
		v.metrics.matched.Inc()
	}
	return best, nil
}

// plan joins the tools that fit.
func (v *view) plan(hits []Hit) *Plan {
	var candidates []Candidate
	for _, h := range hits {
		t, ok := v.catalog.Get(tool.ID(h.ID))
		if !ok {
			continue
		}
		c := Candidate{ID: t.ID, Score: h.Rank, Input: t.InputSchema, Output: t.OutputSchema}
		if len(c.Output) == 0 {
			c.Output = v.facts.Tools[t.ID].Observed
		}
		candidates = append(candidates, c)
	}
	plan, ok := v.facts.Knowledge.Plan(candidates)
	if !ok {
		return nil
	}
	return &plan
}

// Suggestions says what may help somebody who has just used these tools, the last
// one last.
func (f *Finder) Suggestions(used []tool.ID) []Suggestion { return f.view().suggest(used) }

// Vector is the vector of an intent; false while there is no model that answers.
func (f *Finder) Vector(ctx context.Context, intent string) ([]float32, bool) {
	q, err := f.view().query(ctx, intent)
	if err != nil || len(q.Vectors) == 0 {
		return nil, false
	}
	return q.Vectors[0], true
}
