package search

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pml-run/pml/internal/tool"
)

// write makes the tasks of the chosen steps.
func (d *planner) write() Plan {
	var p Plan
	names := map[string]bool{}
	for at, i := range d.order {
		s := d.steps[i]
		t := PlanTask{ID: taskID(at), Tool: s.ID, Arguments: map[string]PlanArgument{}}
		var before []int
		for _, name := range d.wanted(i) {
			if from, ref := d.source(i, name, link.given); ref != "" {
				t.Arguments[name] = PlanArgument{Ref: ref}
				before = append(before, from)
			} else {
				t.Arguments[name] = PlanArgument{Args: argumentName(names, s.ID, name)}
			}
		}
		t.DependsOn = d.before(i, before)
		p.Tasks = append(p.Tasks, t)
	}
	return p
}

func taskID(at int) string { return "t" + strconv.Itoa(at+1) }

// wanted are the arguments that a task gets: the required ones, and those others
// that a result was seen to give.
func (d *planner) wanted(i int) []string {
	input := d.steps[i].input
	names := slices.Clone(input.Required)
	for _, name := range slices.Sorted(maps.Keys(input.Properties)) {
		if slices.Contains(names, name) {
			continue
		}
		if _, ref := d.source(i, name, link.observed); ref != "" {
			names = append(names, name)
		}
	}
	return names
}

// source finds a field of an earlier task's result that an argument can be taken
// from, over the strongest link with one among its fields. No such is an empty text.
func (d *planner) source(i int, name string, fields func(link) []tool.FieldMapping) (from int, ref string) {
	for _, l := range d.links {
		if l.to != i {
			continue
		}
		for _, m := range fields(l) {
			if m.To == name && m.TypeCompatible && reference.MatchString(m.From) {
				return l.from, strings.TrimSuffix(taskID(slices.Index(d.order, l.from))+"."+m.From, ".")
			}
		}
	}
	return 0, ""
}

func (l link) observed() []tool.FieldMapping { return l.seen }

// given are all fields of a link; what was seen outranks what is guessed.
func (l link) given() []tool.FieldMapping { return slices.Concat(l.seen, l.guessed) }

// reference is a path in a result that can be written in a reference: names and
// positions, and no element at a place that is not known. An empty one is all of it.
var reference = regexp.MustCompile(`^([^.\[\]]+(\[\d+\])*(\.[^.\[\]]+(\[\d+\])*)*)?$`)

// argumentName makes a name that no other argument of the plan has: two tools that
// take a path seldom mean the same one.
func argumentName(names map[string]bool, id tool.ID, property string) string {
	name := property
	if names[name] {
		name = tool.Snake(id.Name()) + "_" + property
	}
	for base, n := name, 2; names[name]; n++ {
		name = base + "_" + strconv.Itoa(n)
	}
	names[name] = true
	return name
}

// before are the tasks that a task waits for: those that it takes results of, and
// those that lead to it in no other way.
func (d *planner) before(i int, givers []int) []string {
	var ids []string
	for at, j := range d.order {
		direct := slices.ContainsFunc(d.links, func(l link) bool { return l.from == j && l.to == i })
		if slices.Contains(givers, j) || direct && !d.reachesOver(j, i) {
			ids = append(ids, taskID(at))
		}
	}
	return ids
}

// reachesOver reports whether links lead from one step to another over a third.
func (d *planner) reachesOver(from, to int) bool {
	return slices.ContainsFunc(d.links, func(l link) bool {
		return l.from == from && l.to != to && reaches(d.links, l.to, to)
	})
}
