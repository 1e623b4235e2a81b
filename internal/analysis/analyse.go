package analysis

import (
	"slices"
	"time"

	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
)

// Analyse reads a program. An error is a *fault.Error: a syntax error with its
// place, or code that no program may have.
func Analyse(source string, o Options) (*Program, error) {
	source, err := clean(source)
	if err != nil {
		return nil, err
	}
	p := &Program{Source: source, source: origin{src: source}}
	p.HashExact = hashText("text\x00" + source)
	p.HashShape = p.HashExact
	p.Recorder, p.Frame = "__t", "__s0"
	p.Structure = structure.Structure{Nodes: []structure.Node{}, Edges: []structure.Edge{}}
	if err := p.analyse(o); err != nil {
		return nil, err
	}
	p.plain = p.source.code(CodeOptions{}, p.Exact)
	if p.Exact && p.plain.Nodes == nil {
		p.inexact("the marks cannot be put into this program: it runs without them")
	}
	return p, nil
}

// inexact notes why the program runs without marks.
func (p *Program) inexact(why string) {
	p.Exact = false
	p.Diagnostics = append(p.Diagnostics, Diagnostic{Severity: Warning, Message: why})
}

// analyse fills p as far as the limits allow.
func (p *Program) analyse(o Options) error {
	if len(p.Source) > maxSource {
		p.inexact("the program is longer than 128 KiB: it runs without marks")
		return nil
	}
	t, err := parse(p.Source)
	if err != nil {
		p.inexact(err.Error() + ": it runs without marks")
		return checkSyntax(p.Source, nil)
	}
	if len(t.broken) > 0 {
		if err := checkSyntax(p.Source, t); err != nil {
			return err
		}
		line, column := newLines(p.Source).place(int(t.at[t.broken[0]].start))
		p.inexact("the analyser does not know this syntax: the program runs without marks")
		last := &p.Diagnostics[len(p.Diagnostics)-1]
		last.Line, last.Column = line, column
		return nil
	}
	switch {
	case len(t.at) > maxNodes:
		p.inexact("the program has more than 100,000 syntax nodes: it runs without marks")
		return nil
	case t.depth > maxDepth:
		p.inexact("the program is nested more than 500 levels deep: it runs without marks")
		return nil
	}
	t.repair()
	if p.source.result, err = t.checkModule(); err != nil {
		return err
	}
	if err := t.checkAwait(p.Source); err != nil {
		return err
	}
	newAnalysis(t, o).fill(p)
	return nil
}

// analysis is one program being analysed.
type analysis struct {
	*tree
	scopes  *scopes
	options Options
	limit   *limiter
	tools   map[tool.ID]tool.Tool // of what Resolve knew

	resolved map[node]reference
	passed   map[*binding][]node // arguments of direct calls, by parameter

	program      *function
	functionList []*function
	functions    map[node]*function
	owner        []*function // the function that each node is in
	methods      map[string][]*function
	pool         []*function // functions in array and object literals
	heldBy       map[*binding][]*function
	handings     int
	callees      map[node][]*function
	handed       map[node][]*function // functions passed to unknown callees
	bearing      []int32              // how many calls come before each node
	exits        []exit

	vertices      []*vertex
	byID          map[string]*vertex
	events        map[node]*vertex
	decisions     map[node]*vertex
	loops         map[node]*vertex
	callbackLoops map[node]*vertex
	forks         map[node]*vertex
	joins         map[node]*vertex
	late          map[node]*vertex // arrays and map calls that open a fork early
	members       map[node]*member

	info  map[string]structure.Info
	flags structure.Flags
}

func newAnalysis(t *tree, o Options) *analysis {
	return &analysis{
		tree: t, scopes: newScopes(t), options: o, limit: &limiter{deadline: time.Now().Add(maxAnalysis)},
		tools: map[tool.ID]tool.Tool{}, resolved: map[node]reference{}, passed: map[*binding][]node{},
		functions: map[node]*function{}, methods: map[string][]*function{}, heldBy: map[*binding][]*function{},
		callees: map[node][]*function{}, handed: map[node][]*function{}, byID: map[string]*vertex{},
		events: map[node]*vertex{}, decisions: map[node]*vertex{}, loops: map[node]*vertex{},
		callbackLoops: map[node]*vertex{}, forks: map[node]*vertex{}, joins: map[node]*vertex{},
		late: map[node]*vertex{}, members: map[node]*member{}, info: map[string]structure.Info{},
	}
}

// fill runs the passes and writes what they found into p.
func (a *analysis) fill(p *Program) {
	a.collectFunctions()
	a.collectExits()
	p.source.result = append(p.source.result, a.implicitResult()...)
	a.findEvents()
	l := newLifter(a)
	p.source.provided = l.readNames()
	if len(a.events) > maxEvents {
		p.inexact("the program has more than 500 calls of tools: it runs without marks")
		return
	}
	a.resolveCalls()
	a.findDecisions()
	a.findLoops()
	a.findForks()
	a.findCallbackLoops()
	a.number()
	a.describeVertices()
	edges := a.edges()
	d := newData(a)
	provides := d.provide(edges)
	l.liftLiterals()
	exact, shape := l.hashes()
	marks := a.mark()
	if a.limit.spent {
		p.inexact("the analysis took longer than 2 seconds: the program runs without marks")
		return
	}
	p.Exact = true
	p.Structure.Nodes = a.nodes()
	p.Structure.Edges = slices.Concat([]structure.Edge{}, edges, a.contains(), provides)
	p.Info, p.Flags = a.info, a.flags
	p.Inputs = l.inputs()
	p.Parameters = l.public(p.Inputs)
	p.HashExact, p.HashShape = exact, shape
	p.Recorder, p.Frame = marks.recorder, marks.rootFrame()
	p.Diagnostics = append(p.Diagnostics, a.remarks()...)
	p.source.marks, p.source.lifted = marks.edits, l.readLiterals()
	p.source.nodes = a.nodeTypes()
}

// edges are the control edges, in order. They say which vertices nothing leads to.
func (a *analysis) edges() []structure.Edge {
	c := newControl(a)
	edges := c.contract()
	slices.SortStableFunc(edges, a.compareEdges)
	reached := c.reachable()
	for _, v := range a.vertices {
		if !reached[v] {
			a.flags.Implicit = true
		}
	}
	return edges
}

// contains are the edges from loops and forks to what is in them.
func (a *analysis) contains() []structure.Edge {
	var out []structure.Edge
	for _, v := range a.vertices {
		if v.region == nil || v.is(structure.Join) {
			continue
		}
		e := structure.Edge{From: v.region.ID, To: v.ID, Type: structure.Contains}
		if v.branch >= 0 {
			branch := v.branch
			e.Branch = &branch
		}
		out = append(out, e)
	}
	return out
}

func (a *analysis) nodes() []structure.Node {
	out := make([]structure.Node, len(a.vertices))
	for i, v := range a.vertices {
		out[i] = v.Node
	}
	return out
}

func (a *analysis) nodeTypes() map[string]structure.NodeType {
	out := make(map[string]structure.NodeType, len(a.vertices))
	for _, v := range a.vertices {
		out[v.ID] = v.Type
	}
	return out
}

// describeVertices fills the table beside the graph.
func (a *analysis) describeVertices() {
	lines := newLines(a.src)
	for _, v := range a.vertices {
		s := a.at[v.syntax]
		line, column := lines.place(int(s.start))
		a.info[v.ID] = structure.Info{
			Start: int(s.start), End: int(s.end), Line: line, Column: column, Awaited: v.awaited, Dynamic: v.dynamic,
		}
	}
}

// remarks are what a reader should know of the flags.
func (a *analysis) remarks() []Diagnostic {
	var out []Diagnostic
	if a.flags.Escapes {
		out = append(out, Diagnostic{Severity: Note, Message: "mcp or a server is handed on as a value: calls made through it are recorded without their place"})
	}
	for _, v := range a.vertices {
		if v.dynamic {
			i := a.info[v.ID]
			out = append(out, Diagnostic{Note, i.Line, i.Column, "the name of the tool is computed: it is known when the call is made"})
		}
	}
	return out
}
