package analysis

import "slices"

// handedRounds is how often functions that are passed on as parameters are followed.
const handedRounds = 4

// resolveCalls fills callees and handed, and then which functions bear.
func (a *analysis) resolveCalls() {
	var calls []node
	for n, kind := range a.all() {
		if (kind == "call_expression" || kind == "new_expression") && a.events[n] == nil {
			calls = append(calls, n)
		}
	}
	for range handedRounds {
		before := a.handings
		for _, c := range calls {
			if a.limit.over() {
				break
			}
			a.callees[c] = a.candidates(c)
			a.hand(c)
		}
		if a.handings == before {
			break
		}
	}
	a.bear(calls)
}

// candidates are the functions that a call can enter.
func (a *analysis) candidates(call node) []*function {
	if a.kind(call) == "new_expression" {
		return nil
	}
	callee := a.unwrap(a.field(call, "function"))
	if f := a.called(callee); f != nil {
		return []*function{f}
	}
	switch a.kind(callee) {
	case "identifier":
		return a.namedCandidates(a.scopes.refersTo(callee))
	case "member_expression":
		return unique(slices.Clone(a.methods[a.text(a.field(callee, "property"))]))
	case "subscript_expression":
		var all []*function
		for _, m := range a.methods {
			all = append(all, m...)
		}
		return unique(all)
	}
	return nil
}

// called is the function that a callee is, names, or calls with another this.
func (a *analysis) called(callee node) *function {
	if f := a.functionAt(callee); f != nil {
		return f
	}
	if method := a.rebinds(callee); method == "call" || method == "apply" {
		return a.functionAt(a.field(callee, "object"))
	}
	return nil
}

// rebinds is the method of a callee that calls what it is a member of.
func (a *analysis) rebinds(callee node) string {
	if a.kind(callee) != "member_expression" || a.functionAt(a.field(callee, "object")) == nil {
		return ""
	}
	return a.text(a.field(callee, "property"))
}

// passes are the arguments of a call as its callee sees them.
func (a *analysis) passes(call node) []node {
	args := a.arguments(call)
	switch a.rebinds(a.unwrap(a.field(call, "function"))) {
	case "call":
		return args[min(1, len(args)):]
	case "apply":
		return nil
	}
	return args
}

// namedCandidates are the functions that a variable or parameter can hold.
func (a *analysis) namedCandidates(b *binding) []*function {
	if b == nil {
		return nil
	}
	out := slices.Clone(a.heldBy[b])
	if len(out) == 0 && len(b.definitions) > 0 && (b.definitions[0].element || b.definitions[0].kind == fromParameter) {
		out = append(out, a.pool...)
	}
	for _, d := range b.definitions {
		if d.kind != fromValue || d.value < 0 || len(d.path) > 0 {
			continue
		}
		v := a.unwrap(d.value)
		if f := a.functionAt(v); f != nil {
			out = append(out, f)
		}
		if a.kind(v) == "call_expression" { // const save = debounce(async () => …)
			for _, arg := range a.arguments(v) {
				if f := a.functionAt(arg); f != nil {
					out = append(out, f)
				}
			}
		}
	}
	return unique(out)
}

// hand follows the functions that a call passes: into the parameters of its
// callees, or into handed when nothing is known of the callee.
func (a *analysis) hand(call node) {
	var unknown []*function
	for i, arg := range a.passes(call) {
		passed := a.functionsIn(arg)
		if len(passed) == 0 {
			continue
		}
		if len(a.callees[call]) == 0 {
			unknown = append(unknown, passed...)
			continue
		}
		for _, f := range a.callees[call] {
			if b := a.parameterBinding(f, i); b != nil {
				a.receive(b, passed)
			}
		}
	}
	a.handed[call] = unique(unknown)
}

func (a *analysis) functionsIn(arg node) []*function {
	if f := a.functionAt(arg); f != nil {
		return []*function{f}
	}
	if a.kind(arg) == "identifier" {
		if b := a.scopes.refersTo(arg); b != nil {
			return slices.Clone(a.heldBy[b])
		}
	}
	return nil
}

// receive notes that a parameter can hold functions.
func (a *analysis) receive(b *binding, fs []*function) {
	for _, f := range fs {
		if !slices.Contains(a.heldBy[b], f) {
			a.heldBy[b] = append(a.heldBy[b], f)
			a.handings++
		}
	}
}

// bear finds the functions and calls that a tool's call can happen in.
func (a *analysis) bear(calls []node) {
	marked := make([]bool, len(a.at))
	for n := range a.events {
		marked[n] = true
	}
	a.bearing = make([]int32, len(a.at)+1)
	for changed := true; changed && !a.limit.over(); {
		changed = false
		for i, m := range marked {
			a.bearing[i+1] = a.bearing[i]
			if m {
				a.bearing[i+1]++
			}
		}
		for _, f := range a.functionList {
			if !f.bears && a.bears(f.syntax) {
				f.bears, changed = true, true
			}
		}
		for _, c := range calls {
			if !marked[c] && (slices.ContainsFunc(a.callees[c], bears) || slices.ContainsFunc(a.handed[c], bears)) {
				marked[c], changed = true, true
			}
		}
	}
	a.program.bears = a.bears(0)
}

func bears(f *function) bool { return f.bears }

// bears reports whether a call of a tool or capability can happen in n's range.
func (a *analysis) bears(n node) bool { return n >= 0 && a.bearing[a.last[n]] > a.bearing[n] }
