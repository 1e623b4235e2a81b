package tool

import (
	"maps"
	"slices"
)

// Coverage says how much of a tool's input another tool's output can give.
type Coverage string

// The coverages. Strict: every required property; partial: some of them; optional:
// only properties that are not required.
const (
	NoCoverage Coverage = ""
	Strict     Coverage = "strict"
	Partial    Coverage = "partial"
	Optional   Coverage = "optional"
)

// FieldMapping joins a property of an output to one of an input.
type FieldMapping struct {
	From           string `json:"fromField"`
	To             string `json:"toField"`
	TypeCompatible bool   `json:"typeCompatible"`
}

// Cover finds out from the shapes of two schemas what a tool that answers with one
// can give to a tool that takes the other. Names match when they are the same identifier in another
// style and the types are compatible. It is a guess: an id may be another thing's id.
func Cover(from, to Shape) (Coverage, []FieldMapping) {
	if len(from.Properties) == 0 || len(to.Properties) == 0 {
		return NoCoverage, nil
	}
	byName := map[string]string{} // the first in order wins
	for _, name := range slices.Sorted(maps.Keys(from.Properties)) {
		if key := Snake(name); byName[key] == "" {
			byName[key] = name
		}
	}
	var mapping []FieldMapping
	required, others := 0, 0
	for _, name := range slices.Sorted(maps.Keys(to.Properties)) {
		source, ok := byName[Snake(name)]
		if !ok || !Compatible(from.Properties[source], to.Properties[name]) {
			continue
		}
		mapping = append(mapping, FieldMapping{From: source, To: name, TypeCompatible: true})
		if slices.Contains(to.Required, name) {
			required++
		} else {
			others++
		}
	}
	return coverageOf(required, len(to.Required), others), mapping
}

// coverageOf: a tool that requires nothing cannot be covered strictly.
func coverageOf(given, required, others int) Coverage {
	switch {
	case given > 0 && given >= required:
		return Strict
	case given > 0:
		return Partial
	case others > 0:
		return Optional
	}
	return NoCoverage
}

// Compatible reports whether a value of one shape may be given where the other is
// wanted. A shape without types takes and gives anything.
func Compatible(from, to Shape) bool {
	if len(from.Types) == 0 || len(to.Types) == 0 {
		return true
	}
	return slices.ContainsFunc(from.Types, func(t string) bool {
		return t != "null" && (slices.Contains(to.Types, t) || t == "integer" && slices.Contains(to.Types, "number"))
	})
}
