package search

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/tool"
)

const (
	// mostTasks is how many tasks a plan has at most, mostCandidates among how many
	// tools they are looked for, and nearTop the share of the best score that a tool of a
	// plan has at least.
	mostTasks      = 5
	mostCandidates = 12
	nearTop        = 0.5
	// farthestWay is what a way over other tools costs at most to tell an order: as
	// much as three sequences that were observed.
	farthestWay = 6.0
)

// Candidate is a tool that was found for an intent.
type Candidate struct {
	ID     tool.ID
	Score  float64
	Input  json.RawMessage // its input schema
	Output json.RawMessage // its output schema, declared or learnt; empty for none
}

// Plan is a graph of tasks in the form in which it can be executed.
type Plan struct {
	Tasks []PlanTask `json:"tasks"`
}

// PlanTask is one call of a tool.
type PlanTask struct {
	ID        string                  `json:"id"` // t1, t2, … in an order in which they can run
	Tool      tool.ID                 `json:"tool"`
	Arguments map[string]PlanArgument `json:"arguments"`
	DependsOn []string                `json:"depends_on,omitempty"`
}

// PlanArgument says where an argument comes from; one of its fields is set.
type PlanArgument struct {
	// Ref is a path into the result of a task: t1.items[0].id, or t1 for all of it.
	Ref string `json:"$ref,omitempty"`
	// Args is the name of an argument that the plan is executed with.
	Args string `json:"$args,omitempty"`
}

// Plan makes a plan of the best candidates that lead to each other: by edges that are
// known, by ways over other tools, or because one's output has what the other's input
// requires. A required argument is taken from an earlier result where its fields match,
// else it is an argument of the plan under a name of its own. The best candidate is
// always in it; without candidates there is no plan.
func (k *Knowledge) Plan(candidates []Candidate) (Plan, bool) {
	list := bestCandidates(candidates)
	if len(list) == 0 {
		return Plan{}, false
	}
	d := &planner{}
	for _, c := range list {
		d.steps = append(d.steps, newStep(c))
	}
	d.join(k)
	d.choose()
	return d.write(), true
}

// bestCandidates are those that are worth a look, the best first, each once.
func bestCandidates(candidates []Candidate) []Candidate {
	list := slices.Clone(candidates)
	slices.SortStableFunc(list, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	var out []Candidate
	for _, c := range list {
		known := slices.ContainsFunc(out, func(o Candidate) bool { return o.ID == c.ID })
		if !known && len(out) < mostCandidates && c.Score >= nearTop*list[0].Score {
			out = append(out, c)
		}
	}
	return out
}

// step is a candidate with the shapes of its schemas.
type step struct {
	Candidate
	input, output tool.Shape
}

func newStep(c Candidate) step {
	s := step{Candidate: c}
	for _, schema := range []struct {
		raw   json.RawMessage
		shape *tool.Shape
	}{{c.Input, &s.input}, {c.Output, &s.output}} {
		if len(schema.raw) > 0 && json.Unmarshal(schema.raw, schema.shape) != nil {
			*schema.shape = tool.Shape{} // a schema of no use has no shape
		}
	}
	return s
}

// link says that one step comes before another, and which fields it gives to it.
type link struct {
	from, to int // steps
	strength float64
	// seen are the fields that were observed to be given, guessed those that match.
	seen, guessed []tool.FieldMapping
}

// planner turns steps into a plan.
type planner struct {
	steps []step
	links []link // the strongest first; without circles once steps are chosen
	order []int  // the chosen steps, in the order of their tasks
}

// join finds how the steps lead to each other. Of two that lead to each other the
// stronger direction counts, of equals the one from the better candidate.
func (d *planner) join(k *Knowledge) {
	for a := range d.steps {
		for b := a + 1; b < len(d.steps); b++ {
			there, back := k.link(d.steps, a, b), k.link(d.steps, b, a)
			if back.strength > there.strength {
				there = back
			}
			if there.strength > 0 {
				d.links = append(d.links, there)
			}
		}
	}
	slices.SortStableFunc(d.links, func(a, b link) int {
		return cmp.Or(cmp.Compare(b.strength, a.strength), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
}

// link measures how a step leads to another: by the weights of the edges between
// them, by what the schemas say, or by 1/cost of a short way over other tools.
func (k *Knowledge) link(steps []step, from, to int) link {
	l := link{from: from, to: to}
	a, b := steps[from], steps[to]
	known := false
	if k != nil {
		for _, e := range k.edges[pair{string(a.ID), string(b.ID)}] {
			l.strength += e.Weight
			known = known || e.Type == capability.Provides
			if e.Source == capability.ObservedEdge {
				l.seen = append(l.seen, e.FieldMapping...)
			} else {
				l.guessed = append(l.guessed, e.FieldMapping...)
			}
		}
	}
	if coverage, mapping := tool.Cover(a.output, b.input); !known && (coverage == tool.Strict || coverage == tool.Partial) {
		l.strength += capability.Weight(capability.Provides, capability.InferredEdge)
		l.guessed = append(l.guessed, mapping...)
	}
	if l.strength > 0 || k == nil {
		return l
	}
	if way, ok := k.graph.ShortestPath(string(a.ID), string(b.ID), farthestWay); ok {
		l.strength = 1 / way.Cost
	}
	return l
}

// choose takes the best candidate and then, in their order, those that are joined to
// what was taken, and sorts them so that each comes after what leads to it.
func (d *planner) choose() {
	taken := []int{0}
	for len(taken) < mostTasks {
		next := -1
		for i := range d.steps {
			if !slices.Contains(taken, i) && d.joined(i, taken) {
				next = i
				break
			}
		}
		if next < 0 {
			break
		}
		taken = append(taken, next)
	}
	kept := d.links[:0]
	for _, l := range d.links {
		if slices.Contains(taken, l.from) && slices.Contains(taken, l.to) && !reaches(kept, l.to, l.from) {
			kept = append(kept, l)
		}
	}
	d.links = kept
	slices.Sort(taken)
	for len(d.order) < len(taken) {
		for _, i := range taken { // the best that waits for nothing
			if !slices.Contains(d.order, i) && d.ready(i) {
				d.order = append(d.order, i)
				break
			}
		}
	}
}

func (d *planner) joined(i int, taken []int) bool {
	return slices.ContainsFunc(d.links, func(l link) bool {
		return l.from == i && slices.Contains(taken, l.to) || l.to == i && slices.Contains(taken, l.from)
	})
}

// ready reports whether all that leads to a step is in order; there are no circles.
func (d *planner) ready(i int) bool {
	return !slices.ContainsFunc(d.links, func(l link) bool { return l.to == i && !slices.Contains(d.order, l.from) })
}

// reaches reports whether links lead from one step to another.
func reaches(links []link, from, to int) bool {
	return from == to || slices.ContainsFunc(links, func(l link) bool { return l.from == from && reaches(links, l.to, to) })
}
