package execute

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// DryReport is what a dry run has found.
type DryReport struct {
	Calls   []DryCall `json:"calls"`
	Omitted int       `json:"calls_omitted,omitempty"`
	// Path and Decisions are the way through the structure, NotVisited the outcomes of
	// decisions ("d1:false") that were not taken.
	Path       []string         `json:"executed_path"`
	Decisions  []trace.Decision `json:"decisions,omitempty"`
	NotVisited []string         `json:"branches_not_visited,omitempty"`
	// Approvals are what a person would be asked before the run.
	Approvals []policy.Question `json:"approvals,omitempty"`
	// EstimatedCalls counts the calls by tool, loops included.
	EstimatedCalls map[tool.ID]int `json:"estimated_calls"`
	Warnings       []string        `json:"warnings,omitempty"`
}

// DryCall is one call of a dry run.
type DryCall struct {
	TaskID     string          `json:"task_id"`
	Tool       tool.ID         `json:"tool"`
	Args       json.RawMessage `json:"args"`
	Capability string          `json:"capability,omitempty"`
	Origin     Origin          `json:"answered_by"`
	Connector  string          `json:"connector,omitempty"` // whose generator, where Origin is one
	Effect     policy.Effect   `json:"policy,omitempty"`
	Problem    string          `json:"problem,omitempty"` // of the arguments, or why it is refused
	Preview    string          `json:"answer,omitempty"`
}

// report gathers what the run has shown.
func (g *dryGate) report(ready *prepared, outcome sandbox.Outcome, asks []policy.Question) *DryReport {
	g.mu.Lock()
	defer g.mu.Unlock()
	own, _ := trace.Split(records(outcome.Records))
	path := trace.Fold(ready.program.Structure, own)
	order := make([]int, len(g.calls))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return g.order[a] - g.order[b] })
	r := &DryReport{Calls: []DryCall{}, Path: path.IDs, Decisions: path.Decisions, Approvals: asks, EstimatedCalls: g.counts}
	for i, at := range order {
		if i == mostDryCalls {
			r.Omitted = len(order) - i
			break
		}
		r.Calls = append(r.Calls, g.calls[at])
	}
	r.NotVisited = notVisited(ready.program.Structure, path)
	r.Warnings = g.warnings(ready.program.Structure, path)
	return r
}

// notVisited lists the outcomes of decisions that a run did not take.
func notVisited(s structure.Structure, path trace.Path) []string {
	taken := map[string]bool{}
	for _, d := range path.Decisions {
		taken[d.NodeID+":"+d.Outcome] = true
	}
	var out []string
	for _, e := range s.Edges {
		n, _ := s.Node(e.From)
		name := e.From + ":" + e.Outcome
		if e.Type == structure.Conditional && n.Type == structure.Decision && !taken[name] && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// warnings say what of the report rests on data that was made up.
func (g *dryGate) warnings(s structure.Structure, path trace.Path) []string {
	origin := map[string]Origin{}
	var out []string
	add := func(text string) {
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	for _, c := range g.calls {
		node, _, err := parseTaskID(c.TaskID)
		if err == nil && c.Capability == "" {
			origin[node] = c.Origin
		}
		if c.Origin == FromNothing {
			add(fmt.Sprintf("%s at %s was answered with null: nothing is known of its results", c.Tool, c.TaskID))
		}
	}
	for _, d := range path.Decisions {
		for _, e := range s.Edges {
			// What a branch's first call is given is also what the branch is taken by.
			decides := e.Type == structure.Provides && leadsTo(s, d.NodeID, e.To)
			if made := origin[e.From]; decides && made != "" && made != FromTool && made != FromJournal {
				add(fmt.Sprintf("branch %s depends on mocked data of %s", d.NodeID, e.From))
			}
		}
	}
	return out
}

// leadsTo reports whether a decision has an outcome that goes to a node at once.
func leadsTo(s structure.Structure, decision, node string) bool {
	return slices.ContainsFunc(s.Edges, func(e structure.Edge) bool {
		return e.Type == structure.Conditional && e.From == decision && e.To == node
	})
}
