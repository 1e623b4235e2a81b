package capability

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/pml-run/pml/internal/structure"
)

const (
	// enumRuns is from how many runs on the few values of a parameter are taken to
	// be all that it has; each must have been seen enumSeen times.
	enumRuns, enumSeen = 10, 2
	// MostEnum is the largest number of values that is taken for an enumeration.
	MostEnum = 5
	// formatSeen is how many strings must agree on a format.
	formatSeen = 3
	// mostExamples is how many values are shown of a parameter that has many.
	mostExamples = 3
)

// ParameterStats are the values that a parameter had in runs that succeeded.
type ParameterStats struct {
	Name string `json:"name"`
	// Runs is the number of runs, Given in how many of them there was a value.
	Runs  int64 `json:"runs"`
	Given int64 `json:"given"`
	// Strings is how many values were strings, and Format what all of them have in
	// common: a format of JSON Schema, or nothing.
	Strings int64  `json:"strings,omitempty"`
	Format  string `json:"format,omitempty"`
	// Values are the distinct scalars seen, the first seen first; Many says that there
	// were others, too many or too long to be kept.
	Values []ValueCount `json:"values,omitempty"`
	Many   bool         `json:"many,omitempty"`
}

// ValueCount is one value with the number of runs that had it.
type ValueCount struct {
	Value json.RawMessage `json:"value"`
	Count int64           `json:"count"`
}

// Refine returns parameters with what runs have shown of their values: one that
// successful runs did without is not required, strings that all had one format have
// it, a few values that came again and again are an enumeration, and others are
// examples. What the program or a tool's schema says stays as it is. Nothing
// enforces the result: it tells a caller what to expect.
func Refine(parameters []structure.Parameter, stats []ParameterStats) []structure.Parameter {
	out := slices.Clone(parameters)
	for i := range out {
		at := slices.IndexFunc(stats, func(s ParameterStats) bool { return s.Name == out[i].Name })
		if at < 0 {
			continue
		}
		s := stats[at]
		out[i].Required = out[i].Required && s.Given == s.Runs
		out[i].Schema = s.refine(out[i].Schema)
	}
	return out
}

// Interface are the capability's parameters as its runs have refined them.
func (c Capability) Interface() []structure.Parameter {
	return Refine(c.Parameters, c.Learning.Parameters)
}

func (s ParameterStats) refine(schema json.RawMessage) json.RawMessage {
	fields := map[string]json.RawMessage{}
	if len(schema) > 0 && json.Unmarshal(schema, &fields) != nil {
		return schema // true, false, or nothing that we understand
	}
	if _, said := fields["format"]; !said && s.Format != "" && s.Strings >= formatSeen && s.Strings == s.Given {
		fields["format"] = mustJSON(s.Format)
	}
	_, closed := fields["enum"]
	_, fixed := fields["const"]
	_, shown := fields["examples"]
	switch {
	case closed || fixed:
	case s.enumerates():
		fields["enum"] = mustJSON(s.values(MostEnum))
	case !shown && len(s.Values) > 1:
		fields["examples"] = mustJSON(s.values(mostExamples))
	}
	return mustJSON(fields)
}

// enumerates reports whether the values seen look like all that there are.
func (s ParameterStats) enumerates() bool {
	if s.Many || s.Given < enumRuns || len(s.Values) < 2 || len(s.Values) > MostEnum {
		return false
	}
	return !slices.ContainsFunc(s.Values, func(v ValueCount) bool { return v.Count < enumSeen })
}

// values are the most frequent ones, those seen first first among equals.
func (s ParameterStats) values(most int) []json.RawMessage {
	sorted := slices.Clone(s.Values)
	slices.SortStableFunc(sorted, func(a, b ValueCount) int { return int(b.Count - a.Count) })
	out := []json.RawMessage{}
	for _, v := range sorted[:min(most, len(sorted))] {
		out = append(out, v.Value)
	}
	return out
}

func mustJSON(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // texts and values that were JSON before
	}
	return bytes.TrimSpace(b.Bytes())
}
