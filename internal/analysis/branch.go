package analysis

import (
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/structure"
)

// collectExits lists the statements that leave where they stand.
func (a *analysis) collectExits() {
	for n, kind := range a.all() {
		switch kind {
		case "return_statement", "throw_statement":
			a.exits = append(a.exits, exit{at: n, target: none})
		case "break_statement", "continue_statement":
			a.exits = append(a.exits, exit{at: n, target: a.jumpTarget(n), jumps: true})
		}
	}
}

// exit is a return, throw, break or continue.
type exit struct {
	at     node
	jumps  bool // break or continue
	target node // the statement that it leaves or continues, none where there is none
}

// jumpTarget is the statement that a break or continue is about.
func (a *analysis) jumpTarget(n node) node {
	label := a.field(n, "label")
	for p := a.parent(n); p > 0; p = a.parent(p) {
		kind := a.kind(p)
		switch {
		case isFunction(kind):
			return none
		case label >= 0:
			if kind == "labeled_statement" && a.text(a.field(p, "label")) == a.text(label) {
				return a.field(p, "body")
			}
		case isLoop(kind) || kind == "switch_statement" && a.kind(n) == "break_statement":
			return p
		}
	}
	return none
}

// exitsIn are the exits in n's range that belong to the function that n is in.
func (a *analysis) exitsIn(n node) func(yield func(exit) bool) {
	return func(yield func(exit) bool) {
		i, _ := slices.BinarySearchFunc(a.exits, n, func(e exit, n node) int { return int(e.at - n) })
		for ; i < len(a.exits) && a.exits[i].at < a.last[n] && !a.limit.over(); i++ {
			if a.owner[a.exits[i].at] == a.owner[n] && !yield(a.exits[i]) {
				return
			}
		}
	}
}

// returns reports whether n contains a return or throw of its own function.
func (a *analysis) returns(n node) bool {
	for e := range a.exitsIn(n) {
		if !e.jumps {
			return true
		}
	}
	return false
}

// leaves reports whether part contains an exit out of the construct around it, to
// somewhere that matters.
func (a *analysis) leaves(part, construct node) bool {
	if part < 0 {
		return false
	}
	for e := range a.exitsIn(part) {
		if !e.jumps {
			return true
		}
		if e.target < 0 || e.target == construct || a.holds(part, e.target) {
			continue
		}
		if a.bears(e.target) || a.returns(e.target) {
			return true
		}
	}
	return false
}

// findDecisions makes vertices of the branches that lead to calls, or away from them.
func (a *analysis) findDecisions() {
	for n, kind := range a.all() {
		switch kind {
		case "if_statement":
			then, alt := a.field(n, "consequence"), a.field(n, "alternative")
			if a.owner[n].bears && (a.bears(then) || a.bears(alt) || a.leaves(then, n) || a.leaves(alt, n)) {
				a.newDecision(n, a.field(n, "condition"), truthy)
			}
		case "ternary_expression":
			if a.bears(a.field(n, "consequence")) || a.bears(a.field(n, "alternative")) {
				a.newDecision(n, a.field(n, "condition"), truthy)
			}
		case "binary_expression", "augmented_assignment_expression":
			if op := a.operator(n); isShort(op) && a.bears(a.field(n, "right")) {
				a.newShort(n, op)
			}
		case "switch_statement":
			if body := a.field(n, "body"); a.owner[n].bears && (a.bears(body) || a.leaves(body, n)) {
				a.newDecision(n, a.field(n, "value"), cases)
			}
		}
	}
}

// isShort reports whether an operator may leave its right side out.
func isShort(op string) bool {
	switch strings.TrimSuffix(op, "=") {
	case "&&", "||", "??":
		return true
	}
	return false
}

func (a *analysis) newDecision(n, condition node, t test) *vertex {
	v := a.newVertex(structure.Decision, n, a.at[condition].end, rankTest)
	v.Condition, v.test = a.normal(condition), t
	a.decisions[n] = v
	return v
}

func (a *analysis) newShort(n node, op string) {
	v := a.newDecision(n, a.field(n, "left"), truthy)
	if strings.HasPrefix(op, "??") {
		v.test = nullish
		v.Condition += " != null"
	}
	if strings.HasSuffix(op, "=") {
		v.test = assigns
	}
}

// tested is the expression that a decision tests.
func (a *analysis) tested(n node) node {
	switch a.kind(n) {
	case "binary_expression", "augmented_assignment_expression":
		return a.field(n, "left")
	case "switch_statement":
		return a.field(n, "value")
	}
	return a.field(n, "condition")
}

// caseOutcome is the outcome of a switch that leads to a clause.
func (a *analysis) caseOutcome(clause node) string {
	if a.kind(clause) == "switch_default" {
		return "default"
	}
	v := a.field(clause, "value")
	if u := a.unwrap(v); a.kind(u) == "string" {
		return "case:" + a.quoted(u)
	}
	return "case:" + a.normal(v)
}
