package execute

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pml-run/pml/internal/fault"
)

// DefaultConfidence is how sure a match must be for an intent alone to run it.
const DefaultConfidence = 0.85

// Matcher finds what there is to do for an intent that comes without a program.
type Matcher interface {
	Match(ctx context.Context, intent string, args []string) (Match, error)
}

// Match is what was found for an intent.
type Match struct {
	// Best is the capability that fits best; nil where there is none that may run by
	// an intent alone.
	Best *Candidate
	// Suggestions are other tools and capabilities, Plan a DAG that could be sent back.
	Suggestions json.RawMessage
	Plan        json.RawMessage
	Notes       []string
}

// Candidate is a capability that may be what an intent asks for.
type Candidate struct {
	Name    string
	Version int
	// Confidence is how likely it does what was asked, from 0 to 1, with the arguments
	// that were given; WhenComplete is that with every argument.
	Confidence, WhenComplete float64
	Missing                  []MissingArgument
}

// MissingArgument is a parameter that has neither a value nor a default.
type MissingArgument struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

// Matched says in an answer what an intent was taken for, and why.
type Matched struct {
	Name       string  `json:"name"`
	Version    int     `json:"version"`
	Confidence float64 `json:"confidence"`
	Threshold  float64 `json:"threshold"`
	Reason     string  `json:"reason"`
}

// byIntent carries out a request that has only an intent: the capability that does
// it runs, if that is sure enough and nothing is missing; else the answer says what
// is missing, or what there is to choose from.
func (e *Engine) byIntent(ctx context.Context, req Request) *Answer {
	if e.config.Matcher == nil {
		return e.refused(fault.New(fault.InvalidInput, "implementation is missing").WithHint(`pass implementation: {"type": "code", "code": "…"}`))
	}
	if a := e.fromIntent(ctx, req); a != nil {
		return a
	}
	m, err := e.config.Matcher.Match(ctx, req.Intent, keys(req.Args))
	if err != nil {
		return e.refused(err)
	}
	used := e.judgeMatch(m.Best)
	switch {
	case m.Best != nil && m.Best.WhenComplete >= DefaultConfidence && len(m.Best.Missing) > 0:
		names := make([]string, len(m.Best.Missing))
		for i, p := range m.Best.Missing {
			names[i] = p.Name
		}
		return &Answer{
			Status: StatusNeedsInput, Matched: used, Missing: m.Best.Missing, Notes: m.Notes,
			Next: fmt.Sprintf("call pml_execute again with args: {%s}", strings.Join(names, ", ")),
		}
	case m.Best == nil || m.Best.Confidence < DefaultConfidence:
		return &Answer{
			Status: StatusSuggestions, Matched: used, Suggestions: m.Suggestions, Plan: m.Plan, Notes: m.Notes,
			Next: "nothing was run: choose one of the suggestions, send code, or send the plan as implementation {type: \"dag\", dagStructure: plan} after a look at it",
		}
	}
	req.Implementation = &Implementation{Type: CapabilityType, Name: m.Best.Name, Version: m.Best.Version}
	a := e.Execute(ctx, req)
	a.Matched, a.Notes = used, m.Notes
	return a
}

// judgeMatch says how sure a match is.
func (*Engine) judgeMatch(best *Candidate) *Matched {
	if best == nil {
		return nil
	}
	used := &Matched{Name: best.Name, Version: best.Version, Confidence: best.Confidence, Threshold: DefaultConfidence}
	switch {
	case best.Confidence >= DefaultConfidence:
		used.Reason = "its intents are the same as this one"
	case best.WhenComplete >= DefaultConfidence:
		used.Reason = "it is what was asked for, but arguments are missing"
	default:
		used.Reason = "it is the nearest, but not sure enough to run by itself"
	}
	return used
}
