package analysis

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/structure"
)

// FromDAG writes a DAG as a program and analyses that. It goes the way of any other
// program from there on, with these rules:
//
// The tasks run by layers, those of a layer in parallel. A task is skipped when its
// condition is false, or when it has none and a task that it needs directly was
// skipped. The result of a skipped task is undefined to conditions, code and
// references into it (an argument that is undefined is left out), and null in the
// program's result and at checkpoints. The program's result is an object of the
// results of the tasks that no other needs, by id. A failure that a task does not
// allow for (OnError) ends the program once its layer has ended; of several the first
// one does.
//
// A condition reads a result by the task's id, or as results["t-1"] where the id is no
// name of its own in JavaScript; code reads results.t1 or results["t-1"]. Both may read
// the tasks only that come before theirs. args is the program's own to a condition and
// the task's arguments to code.
//
// The node of a task that calls a tool or a capability has the task's id; what else a
// task holds has ids below it, such as t1.n1 and t1.d1. Forks and joins are those of
// the layers: f1, j1.
//
// With checkpoints the text that runs, Code, and not Source, says after each layer but
// the last what its tasks gave, by await mcp.$pml.layer({index, results}); index counts
// from zero. Analysis, hashes and positions are the same with and without. To any
// other program $pml is a server like any that does not exist.
//
// The hashes depend on the ids and on what the tasks do, not on the order of the list.
// An error is a *fault.Error that names the task: for what Validate refuses, for
// syntax errors, for results that are not there yet, and for what is over a limit of
// the analysis, which programs that are code may be.
func FromDAG(d structure.DAG, o Options, checkpoints bool) (*Program, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	steps, err := newSteps(d)
	if err != nil {
		return nil, err
	}
	w := &dagWriter{steps: steps}
	w.write()
	text := w.out.String()
	if err := checkSyntax(text, nil); err != nil {
		return nil, w.locate(err)
	}
	o.tasks = w.spans
	p, err := Analyse(text, o)
	if err != nil {
		return nil, w.locate(err)
	}
	if err := checkDAG(p, d); err != nil {
		return nil, err
	}
	p.HashExact, p.HashShape = steps.hash(p.HashExact), steps.hash(p.HashShape)
	if checkpoints {
		p.source.result = append(p.source.result, w.checkpoints...)
		p.plain = p.source.code(CodeOptions{}, p.Exact)
	}
	return p, nil
}

// checkDAG makes sure that each call has the node that it is known by.
func checkDAG(p *Program, d structure.DAG) error {
	if !p.Exact {
		why := "the analysis did not come to an end"
		for _, g := range p.Diagnostics {
			if g.Severity == Warning {
				why = strings.TrimSuffix(g.Message, ": it runs without marks")
			}
		}
		return fault.New(fault.UnsupportedCode, "the dag is too large: %s", why).
			WithHint("pass large values as args or take them from results, split the dag, or send it as code")
	}
	for _, t := range d.Tasks {
		n, ok := p.Structure.Node(t.ID)
		if t.Code == "" && (!ok || n.Type != structure.Task && n.Type != structure.Capability) {
			return fault.New(fault.UnsupportedCode, "task %q cannot be told apart in the program that the dag becomes", t.ID).
				WithHint("write the conditions and the code of the dag in a simpler way, or send it as code")
		}
	}
	return nil
}

// hash is the hash of a DAG whose text has the hash of. Node ids mean something only
// together with the exact hash, and those of a DAG are its own.
func (s *steps) hash(of string) string {
	var ids []string
	for _, layer := range s.layers {
		for _, t := range layer {
			ids = append(ids, t.ID)
		}
	}
	return hashText(fmt.Sprintf("dag\x00%s\x00%s", strings.Join(ids, " "), of))
}

// taskSpan says where a task of a DAG stands in the program's text.
type taskSpan struct {
	id         string
	start, end int // all of it
	// callStart and callEnd are the call of its tool, its capability or its code.
	callStart, callEnd int
	code               bool
}

// taskAt is the task that a syntax node lies in, nil outside of all, and whether the
// node is the task's own call.
func (o Options) taskAt(s syntax) (t *taskSpan, own bool) {
	for i := range o.tasks {
		t := &o.tasks[i]
		if int(s.start) >= t.start && int(s.end) <= t.end {
			return t, int(s.start) == t.callStart && int(s.end) == t.callEnd
		}
	}
	return nil, false
}

// isTask reports whether a task has this id.
func (o Options) isTask(id string) bool {
	return slices.ContainsFunc(o.tasks, func(t taskSpan) bool { return t.id == id })
}

// locate says which task an error in the text is about.
func (w *dagWriter) locate(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Line == 0 {
		return err
	}
	lines := newLines(w.out.String())
	for _, s := range w.spans {
		first, _ := lines.place(s.start)
		last, _ := lines.place(s.end)
		if f.Line >= first && f.Line <= last {
			return inTask(s.id, f)
		}
	}
	return err
}

// inTask is an error with the task that it is about.
func inTask(id string, f *fault.Error) *fault.Error {
	g := *f
	g.Message, g.NodeID = fmt.Sprintf("task %q: %s", id, f.Message), id
	return &g
}
