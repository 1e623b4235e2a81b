package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
)

// dagWriter writes the text of a DAG and notes where what is.
type dagWriter struct {
	*steps
	out         strings.Builder
	spans       []taskSpan
	checkpoints []edit
}

// write writes the program.
func (w *dagWriter) write() {
	w.functions()
	for i, layer := range w.layers {
		w.layer(layer)
		if i < len(w.layers)-1 {
			w.checkpoint(i, layer)
		}
		w.print("\n")
	}
	w.print("return %s;\n", w.object(w.leaves))
}

func (w *dagWriter) print(format string, args ...any) { fmt.Fprintf(&w.out, format, args...) }

// functions writes what the tasks use to go on from a failure.
func (w *dagWriter) functions() {
	var fails, skips, proceeds bool
	for _, layer := range w.layers {
		for _, t := range layer {
			fails = fails || t.fails() && len(layer) > 1
			skips = skips || t.OnError == structure.OnErrorSkip
			proceeds = proceeds || t.OnError == structure.OnErrorContinue
		}
	}
	if fails {
		w.print("const %s = [];\n", w.failures)
		w.print("const %s = (error) => { %s.push(error); };\n", w.fail, w.failures)
		w.print("const %s = () => { if (%s.length > 0) throw %s[0]; };\n", w.settled, w.failures, w.failures)
	}
	if skips {
		w.print("const %s = () => undefined;\n", w.skip)
	}
	if proceeds {
		w.print("const %s = (error) => ({ error: { message: String(error?.message ?? error), code: error?.code ?? \"runtime_error\" } });\n", w.proceed)
	}
}

// layer writes the tasks of a layer. A failure waits for the other tasks.
func (w *dagWriter) layer(layer []*step) {
	if len(layer) == 1 {
		w.print("const %s = ", layer[0].variable)
		start := w.out.Len()
		w.single(layer[0])
		w.spanned(start)
		w.print(";")
		return
	}
	names := make([]string, len(layer))
	for i, t := range layer {
		names[i] = t.variable
	}
	w.print("const [%s] = await Promise.all([\n", strings.Join(names, ", "))
	for _, t := range layer {
		w.print("  ")
		start := w.out.Len()
		w.branch(t, "  ")
		w.spanned(start)
		w.print(",\n")
	}
	w.print("]);")
	if slices.ContainsFunc(layer, (*step).fails) {
		w.print("\n%s();", w.settled)
	}
}

// checkpoint puts an edit behind a layer.
func (w *dagWriter) checkpoint(index int, layer []*step) {
	ids := make([]string, len(layer))
	for i, t := range layer {
		ids[i] = t.ID
	}
	at := uint32(w.out.Len())
	text := fmt.Sprintf(" await mcp.$pml.layer({ index: %d, results: %s });", index, w.object(ids))
	w.checkpoints = append(w.checkpoints, edit{start: at, end: at, text: text, opens: true, first: true})
}

// object is an object of the results of tasks by id.
func (w *dagWriter) object(ids []string) string {
	members := make([]string, len(ids))
	for i, id := range ids {
		t := w.byID[id]
		value := t.variable
		if t.mayBeSkipped || t.Code != "" { // code may give undefined, too
			value += " ?? null"
		}
		members[i] = pairOf(id, value)
	}
	return objectOf(members)
}

// single writes the only task of a layer. Its failure may be that of the program.
func (w *dagWriter) single(t *step) {
	if !t.fails() {
		w.print("await ")
		w.branch(t, "")
		return
	}
	w.guarded(t, "", "await ")
}

// branch writes a task as a promise that does not fail. What may throw before there is
// a promise goes into a function.
func (w *dagWriter) branch(t *step, indent string) {
	wraps := w.guard(t) != "" || mayThrow(t.argument)
	if wraps {
		w.print("(async () => ")
	}
	w.guarded(t, indent, "")
	if wraps {
		w.print(")()")
	}
	w.print(".catch(%s)", w.handler(t))
}

// spanned notes all of the task that was written last.
func (w *dagWriter) spanned(start int) {
	last := &w.spans[len(w.spans)-1]
	last.start, last.end = start, w.out.Len()
}

// guarded writes a task's call, if it has a guard behind that.
func (w *dagWriter) guarded(t *step, indent, await string) {
	guard := w.guard(t)
	if guard != "" {
		indent += "  "
		w.print("%s\n%s? ", guard, indent)
	}
	w.print("%s", await)
	s := taskSpan{id: t.ID, code: t.Code != "", callStart: w.out.Len()}
	w.call(t, indent)
	s.callEnd = w.out.Len()
	w.spans = append(w.spans, s)
	if s.code && t.mayBeSkipped {
		w.print(".then((value) => value ?? null)") // undefined is for what was skipped
	}
	if guard != "" {
		w.print("\n%s: undefined", indent)
	}
}

// handler is the function that takes the failure of a task.
func (w *dagWriter) handler(t *step) string {
	switch t.OnError {
	case structure.OnErrorSkip:
		return w.skip
	case structure.OnErrorContinue:
		return w.proceed
	case structure.OnErrorFail:
	}
	return w.fail
}

// guard is what must hold for a task to run, empty where nothing must.
func (w *dagWriter) guard(t *step) string {
	if t.Condition != "" {
		return t.condition.substitute(t.conditionUses, w.variables, "("+w.results(t, t.before)+")")
	}
	var terms []string
	for _, id := range t.needs {
		if w.byID[id].mayBeSkipped {
			terms = append(terms, w.variables[id]+" !== undefined")
		}
	}
	return strings.Join(terms, " && ")
}

// results is an object of those of the results that a task may read.
func (w *dagWriter) results(t *step, ids map[string]bool) string {
	var members []string
	for _, id := range slices.SortedFunc(maps.Keys(ids), compareIDs) {
		if t.before[id] {
			members = append(members, pairOf(id, w.variables[id]))
		}
	}
	return objectOf(members)
}

// call writes the call of a task's tool, capability or code.
func (w *dagWriter) call(t *step, indent string) {
	switch {
	case t.Tool != "":
		id := tool.ID(t.Tool)
		w.print("mcp%s%s(", access(id.Server()), access(id.Name()))
	case t.Capability != "":
		w.print("capabilities%s(", access(t.Capability))
	default:
		w.code(t, indent)
		return
	}
	used := w.out.Len() - strings.LastIndexByte(w.out.String(), '\n')
	w.print("%s)", w.values(t).value(t.argument, indent, used))
}

func (w *dagWriter) values(t *step) valueWriter {
	return valueWriter{w.steps, t.Condition != ""} // without a condition, none of these was skipped
}

// code writes the code of a task as a function, and its call. Code that declares args
// or results itself gets none.
func (w *dagWriter) code(t *step, indent string) {
	var parameters, values []string
	if t.code.reads(argsName) {
		parameters, values = append(parameters, argsName), append(values, w.values(t).value(t.argument, indent, len(indent)))
	}
	if t.code.reads(resultsName) {
		parameters, values = append(parameters, resultsName), append(values, w.results(t, t.readsInCode()))
	}
	w.print("(async (%s) => {\n%s\n%s})(%s)", strings.Join(parameters, ", "), strings.TrimSuffix(t.body, "\n"), indent, strings.Join(values, ", "))
}
