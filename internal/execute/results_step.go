package execute

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/pml-run/pml/internal/fault"
)

// parts are the values that a step leads to from a value: exactly one, unless it is a
// step to several. before is the way to the value, for the error.
func (s step) parts(value string, before []step) ([]string, error) {
	switch kind := kindOf(value); {
	case s.kind == keyStep && kind == "object":
		return s.member(value, before)
	case s.kind == indexStep && kind == "list":
		return s.item(value, before)
	case s.many() && kind == "list":
		return s.items(value), nil
	case s.kind == everyStep && kind == "object":
		var all []string
		for _, part := range members(value) {
			all = append(all, part)
		}
		return all, nil
	}
	return nil, s.unfit(value, before)
}

// member is the value of a key. Of several the last counts, as for the program.
func (s step) member(object string, before []step) ([]string, error) {
	var found []string
	for key, part := range members(object) {
		if key == s.name {
			found = []string{part}
		}
	}
	if found == nil {
		return nil, ends(before, "has no key %q%s", Preview(s.name, maxPathHint), keysOf(object))
	}
	return found, nil
}

// item is the item of a list that an index means.
func (s step) item(list string, before []step) ([]string, error) {
	at, n := s.from, 0
	if at < 0 {
		at += count(list)
	}
	for i, part := range items(list) {
		if i == at {
			return []string{part}, nil
		}
		n = i + 1
	}
	return nil, ends(before, "has %s, there is no %s", entries(n), s)
}

// items are those of a list that a slice or a star means.
func (s step) items(list string) []string {
	var out []string
	from, to := s.bounds(list)
	for i, part := range items(list) {
		if i >= to {
			break
		}
		if i >= from {
			out = append(out, part)
		}
	}
	return out
}

// bounds are the indexes between which the step's items are.
func (s step) bounds(list string) (from, to int) {
	const all = math.MaxInt
	if s.kind == everyStep {
		return 0, all
	}
	from, to = s.from, s.to
	if s.open {
		to = all
	}
	if from < 0 || to < 0 {
		n := count(list)
		if from < 0 {
			from += n
		}
		if to < 0 {
			to += n
		}
	}
	return from, to
}

// unfit is the error of a step that a value of this kind does not have.
func (s step) unfit(value string, before []step) error {
	switch kind := kindOf(value); kind {
	case "list":
		return ends(before, "is a list with %s; use an index like [0], or [*]", entries(count(value)))
	case "object":
		return ends(before, "is an object, there is no %s%s", s, keysOf(value))
	case "string":
		return ends(before, "is a string of %d characters, the path ends there", utf8.RuneCountInString(unquote(value)))
	case "null":
		return ends(before, "is null, the path ends there")
	default:
		return ends(before, "is a %s, the path ends there", kind)
	}
}

// ends is the error for a path that ends behind the steps before.
func ends(before []step, format string, args ...any) error {
	var place strings.Builder
	place.WriteByte('$')
	for _, s := range before {
		place.WriteString(s.String())
	}
	return fault.New(fault.NotFound, "%s %s", Preview(place.String(), maxPathHint), fmt.Sprintf(format, args...)).
		WithHint(`see what there is with format "shape"`)
}

// keysOf names an object's keys for an error, as far as there is room.
func keysOf(object string) string {
	var names strings.Builder
	for key := range members(object) {
		if names.Len() > 0 {
			names.WriteString(", ")
		}
		names.WriteString(Preview(key, maxPathHint))
		if names.Len() > maxKeyHint {
			names.WriteString(", …")
			break
		}
	}
	if names.Len() == 0 {
		return "; it is empty"
	}
	return "; its keys are " + names.String()
}

func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}
