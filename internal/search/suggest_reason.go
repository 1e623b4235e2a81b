package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/tool"
)

// fittingReason says why a capability is suggested.
func fittingReason(c KnownCapability, context []tool.ID) string {
	works := fmt.Sprintf("%.0f %% of its runs succeeded", 100*c.SuccessRate)
	shared := sharedTools(c, context)
	if len(shared) == 0 {
		return "its tools are used together with those of the context, and " + works
	}
	return "it uses " + listed(shared) + ", and " + works
}

// listed writes names as a person does, three of them at most.
func listed(names []string) string {
	if len(names) > 3 {
		names = append(slices.Clone(names[:2]), fmt.Sprintf("%d more", len(names)-2))
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// nextReason tells of the edge that says most.
func nextReason(edges []capability.Edge, last string) string {
	best := capability.Edge{}
	for _, e := range edges {
		if e.Weight > best.Weight || e.Weight == best.Weight && e.Type < best.Type {
			best = e
		}
	}
	switch {
	case best.Type == capability.Sequence && best.Count == 1:
		return "it came after " + last + " in a run"
	case best.Type == capability.Sequence && best.Count > 1:
		return fmt.Sprintf("it came after %s %d times", last, best.Count)
	case best.Type == capability.Provides && len(best.FieldMapping) > 0 && best.Source == capability.ObservedEdge:
		return "it was given the " + mappedFields(best.FieldMapping) + " of " + last
	case best.Type == capability.Provides && len(best.FieldMapping) > 0:
		return "it can take the " + mappedFields(best.FieldMapping) + " of " + last
	case best.Type == capability.Dependency:
		return "it builds on " + last
	}
	return "it goes with " + last
}

func mappedFields(mapping []tool.FieldMapping) string {
	var names []string
	for _, m := range mapping {
		name := m.From
		if name == "" {
			name = "result"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return listed(names)
}
