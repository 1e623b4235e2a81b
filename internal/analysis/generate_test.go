package analysis

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// generator writes random programs that end: loops are short, and functions call
// only functions that come before them.
type generator struct {
	r       *rand.Rand
	names   int
	depth   int
	helpers []string // functions that can be called
	labels  []string // loops around, "" where none may be left
	inLoop  bool
}

// generated is the program of a seed.
func generated(seed uint64) string {
	g := &generator{r: rand.New(rand.NewPCG(seed, 1))}
	var b strings.Builder
	b.WriteString("const log: any[] = [];" + g.space())
	for range g.r.IntN(4) {
		b.WriteString(g.helper() + g.space())
	}
	for range 2 + g.r.IntN(4) {
		b.WriteString(g.statement() + g.space())
	}
	if g.r.IntN(3) > 0 {
		b.WriteString("return log")
	} else {
		b.WriteString(g.value())
	}
	return b.String()
}

func (g *generator) pick(of ...func() string) string {
	g.depth++
	defer func() { g.depth-- }()
	if g.depth > 6 {
		return of[0]()
	}
	return of[g.r.IntN(len(of))]()
}

func (g *generator) one(of ...string) string { return of[g.r.IntN(len(of))] }

func (g *generator) space() string {
	return g.one("\n", "\n", "\n  ", " ", " // note } ) `\n", " /* { ( */ ", "\r\n", ";\n", "\n\n")
}

func (g *generator) name() string {
	g.names++
	return fmt.Sprint(g.one("v", "x", "ö", "$"), g.names)
}

// event is a call of a tool that is awaited, or a constant in place of a failure.
func (g *generator) event() string {
	call := g.one("mcp.a.", "mcp.fs.", "mcp?.b?.", `mcp["c"].`) + g.one("get", "put", "list") + "({ k: " + g.literal() + g.one(" })", ", n: log.length })", " } as any)")
	if g.r.IntN(3) == 0 {
		return "(await " + call + ")." + g.one("n", "flag", "label", "items", "value")
	}
	return "(await " + call + g.one("", ".catch(() => ({} as any))", ".then((r: any) => r, (e: any) => ({ n: e.message }))") + ")"
}

func (g *generator) literal() string {
	return g.one("1", `"a}"`, "`t${1 + 1}`", "true", "null", "[1, 2]", "{ x: [3] }", "-2.5", "'😀'", "/[}]/.source")
}

func (g *generator) value() string {
	return g.pick(
		g.literal, g.event, g.event,
		func() string { return "(" + g.value() + g.one(" && ", " || ", " ?? ") + g.value() + ")" },
		func() string { return "(" + g.value() + " ? " + g.value() + " : " + g.value() + ")" },
		func() string { return "[" + g.value() + ", " + g.value() + "].length" },
		func() string { return "((z: any) => z)(" + g.value() + ")" },
		func() string { return "(await (async () => " + g.value() + ")())" },
		func() string { return "typeof " + g.value() },
		func() string { return "`<${" + g.value() + "}>`" },
		g.call,
	)
}

func (g *generator) call() string {
	if len(g.helpers) == 0 {
		return g.event()
	}
	return "(await " + g.one(g.helpers...) + "(" + g.value() + "))"
}

func (g *generator) statement() string {
	return g.pick(
		g.note, g.note,
		func() string { return "const " + g.name() + ": any = " + g.value() + ";" },
		func() string { return g.branch() },
		func() string { return g.branch() },
		g.switchOf, g.loop, g.loop, g.tryOf, g.together, g.assign, g.jump,
		func() string { return "{" + g.space() + g.block() + "}" },
	)
}

func (g *generator) note() string { return "log.push(" + g.value() + ");" }

func (g *generator) block() string {
	var b strings.Builder
	for range 1 + g.r.IntN(3) {
		b.WriteString(g.statement() + g.space())
	}
	return b.String()
}

// body is a block or a single statement.
func (g *generator) body() string {
	if g.r.IntN(3) == 0 {
		return " " + g.one(g.note(), g.jump(), g.assignExpression()+";")
	}
	return " {" + g.space() + g.block() + "}"
}

func (g *generator) branch() string {
	s := "if (" + g.value() + ")" + g.body()
	if g.r.IntN(2) == 0 {
		s += " else" + g.body()
	}
	return s
}

func (g *generator) switchOf() string {
	s := "switch (" + g.value() + ") {\n"
	for _, label := range []string{`case "bug":`, "case 1:", "case (await mcp.a.get({})).n:", "default:"} {
		if g.r.IntN(3) == 0 {
			continue
		}
		s += label + g.space() + g.one("", g.block()) + g.one("break;", "", "") + g.space()
	}
	return s + "}"
}

func (g *generator) loop() string {
	name := g.name()
	label := g.one("", "", "L"+fmt.Sprint(len(g.labels)))
	before := g.inLoop
	g.inLoop = true
	g.labels = append(g.labels, label)
	body := g.body()
	g.labels = g.labels[:len(g.labels)-1]
	g.inLoop = before
	if label != "" {
		label += ": "
	}
	n := 1 + g.r.IntN(2)
	switch g.r.IntN(6) {
	case 0:
		return fmt.Sprintf("%sfor (let %s = 0; %s < %d; %s++)%s", label, name, name, n, name, body)
	case 1:
		return fmt.Sprintf("let %s = 0; %swhile (%s++ < %d)%s", name, label, name, n, body)
	case 2:
		return fmt.Sprintf("let %s = 0; %sdo%s while (%s++ < %d);", name, label, body, name, n)
	case 3:
		return fmt.Sprintf("%sfor (const %s in { a: 1, b: 2 })%s", label, name, body)
	case 4:
		return fmt.Sprintf("%sfor (const %s of [1, %s])%s", label, name, g.value(), body)
	}
	return fmt.Sprintf("let %s = 0; %sfor (;;) { if (%s++ > %d) break; %s }", name, label, name, n, strings.TrimSpace(body))
}

func (g *generator) tryOf() string {
	s := "try {" + g.space() + g.block() + "}"
	with := g.r.IntN(3)
	if with != 1 {
		s += " catch " + g.one("", "(e) ") + "{" + g.space() + g.block() + "}"
	}
	if with != 0 {
		s += " finally {" + g.space() + g.note() + "}"
	}
	return s
}

// together starts several calls at once.
func (g *generator) together() string {
	list := "[" + g.value() + ", mcp.a.get({ k: 7 }), " + g.literal() + "]"
	if g.r.IntN(2) == 0 {
		list = "[1, 2].map(async (y) => { " + strings.TrimSpace(g.note()) + " return y })"
	}
	return "log.push((await Promise." + g.one("all", "allSettled") + "(" + list + ")).length);"
}

func (g *generator) assign() string {
	name := g.name()
	return "let " + name + ": any = " + g.literal() + "; " + name + g.one(" ??= ", " ||= ", " &&= ", " = ") + g.value() + ";"
}

func (g *generator) assignExpression() string {
	return "log[0]" + g.one(" ??= ", " ||= ", " &&= ") + g.value()
}

// jump leaves a loop, a function or the program, behind a condition.
func (g *generator) jump() string {
	out := []string{"throw new Error(`e${log.length}`);", "return log.length;"}
	if g.inLoop {
		out = append(out, "break;", "continue;", "continue;", "break;")
	}
	for _, l := range g.labels {
		if l != "" {
			out = append(out, "continue "+l+";", "break "+l+";")
		}
	}
	return "if (" + g.value() + ") " + g.one(out...)
}

// helper is a function that later code can call.
func (g *generator) helper() string {
	name := g.name()
	loop, labels := g.inLoop, g.labels
	g.inLoop, g.labels = false, nil
	defer func() { g.inLoop, g.labels, g.helpers = loop, labels, append(g.helpers, name) }()
	switch g.r.IntN(4) {
	case 0:
		return "async function " + name + "(p: any, q = 1) {" + g.space() + g.block() + "return p }"
	case 1:
		return "const " + name + " = async (p: any) => {" + g.space() + g.block() + "};"
	case 2:
		return "const " + name + " = async (p: any) => " + g.value() + ";"
	}
	return "const " + name + " = async (p: any) => { for await (const y of (async function* () { yield " + g.value() + "; yield p })()) log.push(y) };"
}

// FuzzGenerated wants marks in every generated program.
func FuzzGenerated(f *testing.F) {
	const known = 50
	for seed := range uint64(known) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		source := generated(seed)
		if !parses(source) { // the grammar does not know all of the language
			if seed < known {
				t.Errorf("does not parse:\n%s", source)
			}
			return
		}
		p := analysed(t, source)
		code, err := p.Code(CodeOptions{Lift: true})
		if err != nil || code.Nodes == nil {
			t.Fatalf("no marks, %v:\n%s", err, source)
		}
		wantSameLines(t, source, code.Text)
		again := analysed(t, source)
		if again.HashExact != p.HashExact || notation(again) != notation(p) || again.plain.Text != p.plain.Text {
			t.Errorf("another result for the same program:\n%s", source)
		}
	})
}
