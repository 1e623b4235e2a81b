package analysis

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/structure"
)

// step is a task of a DAG on its way to a text.
type step struct {
	structure.DAGTask
	argument structure.Argument
	needs    []string
	before   map[string]bool // all that comes before it, directly or not

	condition fragment
	code      fragment
	body      string // the code as it runs
	// What the condition and the code read.
	conditionUses, codeUses uses

	mayBeSkipped bool
	variable     string // its result's name in the text
}

// fails reports whether the program fails where t does.
func (t *step) fails() bool { return t.OnError == structure.OnErrorFail || t.OnError == "" }

// steps are the tasks of a DAG by layers, in an order that does not depend on that of
// the list, with the names that the text uses.
type steps struct {
	layers [][]*step
	byID   map[string]*step
	leaves []string

	variables map[string]string // by task
	// Names of the text's own functions and of its list of failures.
	fail, skip, proceed, settled, failures string
}

// newSteps reads the conditions and the code of a DAG that is valid.
func newSteps(d structure.DAG) (*steps, error) {
	s := &steps{byID: map[string]*step{}, leaves: d.Leaves(), variables: map[string]string{}}
	ids := map[string]bool{}
	for _, t := range d.Tasks {
		ids[t.ID] = true
	}
	for _, layer := range d.Layers() {
		slices.SortFunc(layer, compareIDs)
		var list []*step
		for _, id := range layer {
			t, _ := d.Task(id)
			one := &step{DAGTask: t}
			if err := s.read(one, ids); err != nil {
				if f, ok := errors.AsType[*fault.Error](err); ok {
					return nil, inTask(id, f)
				}
				return nil, err
			}
			s.byID[id] = one
			list = append(list, one)
		}
		s.layers = append(s.layers, list)
	}
	slices.SortFunc(s.leaves, compareIDs)
	s.choose()
	return s, nil
}

// compareIDs orders ids so that t2 comes before t10.
func compareIDs(x, y string) int { return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) }

// read fills a step whose needs are read already.
func (s *steps) read(t *step, ids map[string]bool) error {
	var err error
	if t.argument, err = t.Argument(); err != nil {
		return err
	}
	t.needs, t.before = t.Needs(), map[string]bool{}
	slices.SortFunc(t.needs, compareIDs)
	t.mayBeSkipped = t.Condition != "" || t.OnError == structure.OnErrorSkip
	for _, id := range t.needs {
		t.before[id] = true
		for earlier := range s.byID[id].before {
			t.before[earlier] = true
		}
		t.mayBeSkipped = t.mayBeSkipped || s.byID[id].mayBeSkipped
	}
	if t.Condition != "" {
		if t.Condition, err = clean(t.Condition); err != nil {
			return err
		}
		if t.condition, err = newCondition(t.Condition); err != nil {
			return err
		}
		t.conditionUses = t.condition.uses(ids)
		if err := t.conditionUses.check(t.before, ids); err != nil {
			return err
		}
	}
	if t.Code == "" {
		return nil
	}
	return t.readCode(ids)
}

func (t *step) readCode(ids map[string]bool) error {
	var err error
	if t.Code, err = clean(t.Code); err != nil {
		return err
	}
	if t.code, t.body, err = newCode(t.Code); err != nil {
		return err
	}
	t.codeUses = t.code.uses(ids)
	for _, id := range slices.Sorted(maps.Keys(t.codeUses.direct)) {
		return fault.New(fault.InvalidInput, "its code reads %s, which is the name of a task", id).
			WithHint("write results.%s in code, or give the task an argument {\"x\": {\"$ref\": %q}} and read args.x", id, id)
	}
	return t.codeUses.check(t.before, ids)
}

// readsInCode are the tasks whose results the code is given: those that it names, or
// all where it does anything else with them.
func (t *step) readsInCode() map[string]bool {
	if len(t.codeUses.whole) > 0 {
		return t.before
	}
	out := map[string]bool{}
	for id := range t.codeUses.members {
		out[id] = true
	}
	return out
}

// choose gives each result a variable, and the text's functions names that nothing in
// the DAG has.
func (s *steps) choose() {
	var texts strings.Builder
	taken := map[string]bool{}
	for _, layer := range s.layers {
		for _, t := range layer {
			texts.WriteString(t.Condition + "\x00" + t.Code + "\x00")
			if isVariable(t.ID) {
				t.variable, taken[t.ID] = t.ID, true
			}
		}
	}
	free := func(name string) string {
		for taken[name] || strings.Contains(texts.String(), name) {
			name += "_"
		}
		taken[name] = true
		return name
	}
	for _, layer := range s.layers {
		for _, t := range layer {
			if t.variable == "" {
				t.variable = free(strings.ReplaceAll(t.ID, "-", "_") + "_")
			}
			s.variables[t.ID] = t.variable
		}
	}
	s.fail, s.skip, s.proceed = free("fail"), free("skip"), free("proceed")
	s.settled, s.failures = free("settled"), free("failures")
}

// isVariable reports whether an id can be a variable of the text, which hides nothing
// that a condition or code may mean by the name.
func isVariable(id string) bool {
	return isName(id) && !globals[id] && !keywords[id] && id != argsName && id != resultsName
}

// keywords are the names that are no variables everywhere in TypeScript.
var keywords = set(
	"abstract", "accessor", "any", "as", "asserts", "async", "await", "bigint", "boolean", "break", "case", "catch",
	"class", "const", "constructor", "continue", "debugger", "declare", "default", "delete", "do", "else", "enum",
	"export", "extends", "false", "finally", "for", "from", "function", "get", "if", "implements", "import", "in",
	"infer", "instanceof", "interface", "intrinsic", "is", "keyof", "let", "module", "namespace", "never", "new", "null",
	"number", "object", "of", "out", "override", "package", "private", "protected", "public", "readonly", "require",
	"return", "satisfies", "set", "static", "string", "super", "switch", "symbol", "this", "throw", "true", "try", "type",
	"typeof", "unique", "unknown", "using", "var", "void", "while", "with", "yield",
)
