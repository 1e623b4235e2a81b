package analysis

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pml-run/pml/internal/structure"
)

// Layers order what is put around the same expression, the outermost first.
const (
	layerBody = iota
	layerTest
	layerJoin
	layerValue
)

// marker puts the recorder's calls into the program. It only inserts, and never a
// line break.
type marker struct {
	*analysis
	recorder, frame string // names that the program does not use
	frames          map[node]string
	edits           []edit
}

// mark makes the insertions for every vertex and every function that bears.
func (a *analysis) mark() *marker {
	m := &marker{analysis: a, recorder: "__t", frame: "__s", frames: map[node]string{}}
	for strings.Contains(a.src, m.recorder) || strings.Contains(a.src, m.frame) {
		m.recorder += "_"
		m.frame += "_"
	}
	if len(a.vertices) == 0 {
		return m
	}
	m.openFrames()
	for _, v := range a.vertices {
		switch v.Type {
		case structure.Task, structure.Capability:
			m.event(v)
		case structure.Decision:
			m.decision(v)
		case structure.Loop:
			m.loop(v)
		case structure.Fork:
			m.fork(v)
		case structure.Join:
			m.join(v)
		}
	}
	m.entries()
	return m
}

// rootFrame is the frame variable of the program itself.
func (m *marker) rootFrame() string { return m.frame + "0" }

// quote writes a text as a JavaScript string without line breaks.
func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		return `""` // a string always encodes
	}
	return string(text)
}

// call is the beginning of a call of the recorder's method, up to where a value
// follows.
func (m *marker) call(method string, n node, id string) string {
	return m.recorder + "." + method + "(" + m.frameAt(n) + "," + quote(id) + ","
}

// wrap puts text around n.
func (m *marker) wrap(n node, layer int, before, after string) {
	start, end := m.at[n].start, m.realEnd(n)
	if start > 0 && isNameByte(m.src[start-1]) {
		before = " " + before
	}
	m.edits = append(m.edits,
		edit{start: start, end: start, text: before, opens: true, reach: end, layer: layer, node: n},
		edit{start: end, end: end, text: after, reach: start, layer: layer, node: n})
}

// insert puts text at a place, before everything that begins there.
func (m *marker) insert(at uint32, text string) {
	m.edits = append(m.edits, edit{start: at, end: at, text: text, opens: true, first: true})
}

func isNameByte(c byte) bool {
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

// frameAt is the frame variable at n: that of the loop body or function that it is
// in, or that it is the body of.
func (m *marker) frameAt(n node) string {
	for c := n; c > 0; c = m.parent(c) {
		if v, ok := m.frames[c]; ok {
			return v
		}
	}
	return m.rootFrame()
}

// openFrames opens a frame in each loop body and each function that bears.
func (m *marker) openFrames() {
	type body struct {
		of, at node
		open   string
	}
	var bodies []body
	for n := range m.all() {
		if l := m.loops[n]; l != nil {
			bodies = append(bodies, body{n, m.field(n, "body"), "i(%s," + quote(l.ID) + ")"})
		}
		f := m.functions[n]
		switch {
		case f == nil || !f.bears:
			continue
		case f.pass != nil:
			bodies = append(bodies, body{n, f.body, "i(%s," + quote(f.pass.ID) + ")"})
		default:
			bodies = append(bodies, body{n, f.body, "h(%s," + strings.ReplaceAll(quote(f.name), "%", "%%") + m.branchAt(n) + ")"})
		}
	}
	for i, b := range bodies {
		name := fmt.Sprintf("%s%d", m.frame, i+1)
		outer := m.frameAt(b.of)
		m.frames[b.at] = name
		m.openFrame(b.of, b.at, fmt.Sprintf("const %s=%s."+b.open+";", name, m.recorder, outer))
	}
}

// openFrame puts the declaration of a frame at the beginning of a body.
func (m *marker) openFrame(of, body node, declaration string) {
	switch {
	case m.kind(body) == "statement_block":
		at := m.behindDirectives(body)
		if at != m.at[body].start+1 {
			declaration = ";" + declaration
		}
		m.insert(at, declaration)
	case m.functions[of] != nil:
		m.wrap(body, layerBody, "{"+declaration+"return(", ")}")
	default:
		m.wrap(body, layerBody, "{"+declaration, "}")
	}
}

// behindDirectives is where a block's first statement that is no directive may begin.
func (m *marker) behindDirectives(block node) uint32 {
	at := m.at[block].start + 1
	for _, s := range m.children(block) {
		c := m.children(s)
		if m.kind(s) != "expression_statement" || len(c) != 1 || m.kind(c[0]) != "string" {
			break
		}
		at = m.realEnd(s)
	}
	return at
}

// branchAt names the fork and branch that n lies in directly, for a frame opened there.
func (m *marker) branchAt(n node) string {
	r, branch := m.regionOf(n, nil)
	if r.is(structure.Fork) && branch >= 0 {
		return fmt.Sprintf(",%s,%d", quote(r.ID), branch)
	}
	return ""
}

// event wraps the identifier that a call's reference starts with.
func (m *marker) event(v *vertex) {
	before := m.call("m", v.syntax, v.ID)
	if m.kind(v.base) == "shorthand_property_identifier" {
		before = m.text(v.base) + ":" + before
	}
	m.wrap(v.base, layerValue, before, ")")
}

func (m *marker) decision(v *vertex) {
	n := v.syntax
	tested := m.tested(n)
	switch v.test {
	case truthy:
		if m.kind(n) == "if_statement" {
			m.wrap(tested, layerTest, "("+m.call("d", n, v.ID), "))")
			return
		}
		m.wrap(tested, layerTest, m.call("d", n, v.ID), ")")
	case nullish:
		m.wrap(tested, layerTest, m.call("n", n, v.ID), ")")
	case assigns:
		skipped, evaluated := "true", "false"
		if m.operator(n) == "&&=" {
			skipped, evaluated = evaluated, skipped
		}
		m.wrap(n, layerTest, m.call("a", n, v.ID)+quote(skipped)+",", ")")
		m.wrap(m.field(n, "right"), layerTest, "("+m.call("k", n, v.ID)+quote(evaluated)+"),", ")")
	case cases:
		m.cases(v, tested)
	}
}

func (m *marker) cases(v *vertex, tested node) {
	n := v.syntax
	m.wrap(tested, layerTest, "("+m.call("w", n, v.ID), "))")
	body := m.field(n, "body")
	clauses, hasDefault := m.children(body), false
	for _, clause := range clauses {
		hasDefault = hasDefault || m.kind(clause) == "switch_default"
		m.insert(m.at[m.token(clause, ":")].end, m.call("o", n, v.ID)+quote(m.caseOutcome(clause))+");")
	}
	if hasDefault {
		return
	}
	text := "default:" + m.call("o", n, v.ID) + quote("default") + ");"
	if len(clauses) > 0 {
		text = ";" + text
	}
	m.insert(m.at[body].end-1, text)
}

func (m *marker) loop(v *vertex) {
	n := v.syntax
	begin := m.call("l", n, v.ID)
	switch m.kind(n) {
	case "for_in_statement":
		right := m.field(n, "right")
		source := quote(m.normal(m.unwrap(right)))
		switch {
		case v.Mode == "in":
			m.wrap(right, layerTest, begin+"(", "))")
		case m.token(n, "await") >= 0:
			m.wrap(right, layerTest, begin, ",2,"+source+")")
		default:
			m.wrap(right, layerTest, begin, ",1,"+source+")")
		}
	case "while_statement":
		m.wrap(m.field(n, "condition"), layerTest, "("+begin, "))")
	case "do_statement":
	case "for_statement":
		if c := m.forCondition(n); c >= 0 {
			m.wrap(c, layerTest, begin+"(", "))")
		}
	default:
		it, _ := m.iterationAt(n)
		m.wrap(it.receiver, layerTest, begin, ")")
		m.byName(it.callback, n, v)
	}
}

func (m *marker) fork(v *vertex) {
	n := v.syntax
	if it, ok := m.iterationAt(v.source); ok {
		m.wrap(it.receiver, layerTest, m.call("f", v.source, v.ID), ")")
		m.byName(it.callback, v.source, v)
	} else {
		m.wrap(m.field(m.unwrap(m.field(n, "function")), "object"), layerValue, m.call("f", n, v.ID), ")")
	}
	_, arg := m.combinator(n)
	arg = m.unwrap(arg)
	if it, ok := m.iterationAt(arg); ok {
		m.byName(it.callback, arg, v)
	}
}

// join wraps the await of a combinator, or the combinator where nothing awaits it.
func (m *marker) join(v *vertex) {
	n := v.syntax
	around := n
	if p := m.parent(m.wrapped(n)); m.kind(p) == "await_expression" {
		around = p
	}
	m.wrap(around, layerJoin, m.call("j", n, v.ID), ")")
}

// byName wraps a function that is passed by its name to an iteration.
func (m *marker) byName(callback, at node, region *vertex) {
	if m.kind(callback) != "identifier" || m.events[callback] != nil {
		return
	}
	if f := m.functionAt(callback); f != nil && f.bears {
		m.wrap(callback, layerValue, m.call("y", at, region.ID), ")")
	}
}

// entries wraps the names by which functions that bear are called.
func (m *marker) entries() {
	for n, kind := range m.all() {
		if kind != "call_expression" || m.events[n] != nil || m.kind(m.field(n, "arguments")) != "arguments" {
			continue
		}
		callee := m.field(n, "function")
		if m.kind(callee) != "identifier" {
			continue
		}
		for _, f := range m.callees[n] {
			if f.bears && !f.generator {
				m.wrap(callee, layerValue, m.recorder+".x("+m.frameAt(n)+",", m.branchAt(n)+")")
				break
			}
		}
	}
}
