package execute

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/maypok86/otter/v2"

	"github.com/pml-run/pml/internal/analysis"
	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
)

// analysesKept is how many analysed programs are remembered.
const analysesKept = 512

// maxInner is how many capabilities one program may reach, directly or through others.
const maxInner = 64

// prepared is a program that can run: analysed, its tools known, its capability stored.
type prepared struct {
	program    *analysis.Program
	code       analysis.Code
	args       json.RawMessage // what the program reads
	arguments  json.RawMessage // the values of its parameters, given or from its text
	capability capability.Capability
	created    bool
	inner      map[string]inner // the capabilities that it may call, by the name it uses
	cache      *cachePlan       // nil where neither a cache was asked nor one gets the result
}

// inner is a capability that a program calls.
type inner struct {
	capability capability.Capability
	program    *analysis.Program
	text       string
	nodes      map[string]sandbox.NodeKind
}

// planner prepares programs.
type planner struct {
	store    Store
	upstream Upstream
	analyses *otter.Cache[analysisKey, *analysis.Program]
}

// analysisKey names an analysis: the program, the tools that its names meant, and
// whether it stops after layers.
type analysisKey struct {
	source  [sha256.Size]byte
	catalog string
	layers  bool
}

func newPlanner(store Store, upstream Upstream) *planner {
	return &planner{store: store, upstream: upstream, analyses: otter.Must(&otter.Options[analysisKey, *analysis.Program]{MaximumSize: analysesKept})}
}

// prepare makes a request's program ready. Its errors say why nothing was run.
func (p *planner) prepare(ctx context.Context, req Request) (*prepared, error) {
	if req.Implementation.Type == CapabilityType {
		return p.prepareCapability(ctx, req)
	}
	program, err := p.analyse(ctx, req.Implementation.source(), req.Options.PerLayer)
	if err != nil {
		return nil, err
	}
	ready := &prepared{program: program, args: req.Args}
	if ready.arguments, err = withDefaults(program.Parameters, req.Args); err != nil {
		return nil, err
	}
	if err := p.addInner(ctx, ready); err != nil {
		return nil, err
	}
	if !req.Options.DryRun.On {
		if err := p.keep(ctx, req, ready); err != nil {
			return nil, err
		}
	}
	ready.code, err = program.Code(analysis.CodeOptions{Provided: keys(req.Args)})
	return ready, err
}

// keep stores the program, or finds it, with what it depends on.
func (p *planner) keep(ctx context.Context, req Request, ready *prepared) error {
	var err error
	ready.capability, ready.created, err = p.store.UpsertCandidate(ctx, p.candidate(req, ready.program))
	if err != nil {
		return fmt.Errorf("store the program: %w", err)
	}
	return p.noteDependencies(ctx, ready)
}

// prepareCapability makes a stored program ready, its parameters taking the
// request's arguments in the place of their defaults.
func (p *planner) prepareCapability(ctx context.Context, req Request) (*prepared, error) {
	c, err := p.store.CapabilityAt(ctx, req.Implementation.Name, req.Implementation.Version)
	if err != nil {
		return nil, err
	}
	if c.State == capability.Retired {
		return nil, fault.New(fault.UnknownCapability, "capability %q is retired: %s", c.Name, c.StateReason).
			WithHint("send the program as code, or have a person revive it")
	}
	program, err := p.analyse(ctx, c.Source, req.Options.PerLayer)
	if err != nil {
		return nil, err
	}
	ready := &prepared{program: program, capability: c}
	if ready.args, err = withDefaults(c.Parameters, req.Args); err != nil {
		return nil, err
	}
	ready.arguments = ready.args
	if err := p.addInner(ctx, ready); err != nil {
		return nil, err
	}
	ready.code, err = program.Code(analysis.CodeOptions{Lift: true, Provided: keys(ready.args)})
	return ready, err
}

// analyse reads a program and makes sure that every tool it names exists. A server
// that has not listed its tools yet is waited for. A DAG may stop after each layer.
func (p *planner) analyse(ctx context.Context, s capability.Source, layers bool) (*analysis.Program, error) {
	for {
		catalog := p.upstream.Catalog()
		program, err := p.analyseWith(catalog, s, layers)
		if err != nil {
			return nil, err
		}
		if err := p.checkTools(ctx, program); err != nil {
			return nil, err
		}
		if p.upstream.Catalog().Version() == catalog.Version() {
			return program, nil
		}
	}
}

func (p *planner) analyseWith(catalog *tool.Catalog, s capability.Source, layers bool) (*analysis.Program, error) {
	key := analysisKey{sha256.Sum256(mustJSON(s)), catalog.Version(), layers}
	if known, ok := p.analyses.GetIfPresent(key); ok {
		return known, nil
	}
	program, err := readProgram(s, analysis.Options{Resolve: func(server, name string) (tool.Tool, bool) {
		t, err := catalog.Resolve(server, name)
		return t, err == nil
	}}, layers)
	if err != nil {
		return nil, err
	}
	p.analyses.Set(key, program)
	return program, nil
}

// readProgram analyses a program. A delegation to a tool is the program that calls it.
func readProgram(s capability.Source, o analysis.Options, layers bool) (*analysis.Program, error) {
	switch s.Type {
	case capability.CodeSource:
		return analysis.Analyse(s.Code, o)
	case capability.DAGSource:
		dag, err := structure.ParseDAG(s.DAG)
		if err != nil {
			return nil, err
		}
		return analysis.FromDAG(dag, o, layers)
	case capability.ToolSource:
		defaults := "{}"
		if len(s.DefaultArgs) > 0 {
			defaults = string(s.DefaultArgs)
		}
		return analysis.Analyse(fmt.Sprintf("return await mcp[%q][%q]({...%s, ...args});", s.ToolID.Server(), s.ToolID.Name(), defaults), o)
	}
	return nil, fault.New(fault.UnsupportedCode, "a capability of the type %q cannot run here", s.Type)
}

// checkTools fails for the first tool of the program that does not exist, naming
// the place where it is used.
func (p *planner) checkTools(ctx context.Context, program *analysis.Program) error {
	for _, n := range program.Structure.Nodes {
		if n.Type != structure.Task || strings.Contains(n.Tool, "*") {
			continue // a computed name is checked when it is called
		}
		id := tool.ID(n.Tool)
		_, err := p.upstream.Resolve(ctx, id.Server(), id.Name())
		if err == nil {
			continue
		}
		return placed(err, program, n.ID)
	}
	return nil
}

// placed adds a node's place in the program to a fault.
func placed(err error, program *analysis.Program, node string) error {
	f, ok := asFault(err)
	if !ok {
		return err
	}
	at := *f
	at.NodeID, at.Line, at.Column = node, program.Info[node].Line, program.Info[node].Column
	if lines := strings.Split(program.Source, "\n"); at.Line > 0 && at.Line <= len(lines) {
		at.Source = strings.TrimRight(lines[at.Line-1], "\r")
	}
	return &at
}

// candidate is the capability that a program becomes.
func (*planner) candidate(req Request, program *analysis.Program) capability.Capability {
	return capability.Capability{
		Name: req.Options.Name, Intent: req.Intent, HashExact: program.HashExact, HashShape: program.HashShape,
		State: capability.Candidate, Origin: capability.Emergent,
		Source:     req.Implementation.source(),
		Parameters: program.Parameters, Structure: program.Structure, Info: program.Info,
	}
}

// addInner finds the capabilities that the program calls, and those that they call.
func (p *planner) addInner(ctx context.Context, ready *prepared) error {
	ready.inner = map[string]inner{}
	queue := ready.program.Capabilities()
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if _, done := ready.inner[name]; done {
			continue
		}
		if len(ready.inner) == maxInner {
			return fault.New(fault.UnsupportedCode, "the program reaches more than %d capabilities", maxInner)
		}
		in, err := p.innerCapability(ctx, name)
		if err != nil {
			return placed(err, ready.program, capabilityNode(ready.program, name))
		}
		ready.inner[name] = in
		queue = append(queue, in.program.Capabilities()...)
	}
	return nil
}

func capabilityNode(program *analysis.Program, name string) string {
	for _, n := range program.Structure.Nodes {
		if n.Type == structure.Capability && n.CapabilityID == name {
			return n.ID
		}
	}
	return ""
}

func (p *planner) innerCapability(ctx context.Context, name string) (inner, error) {
	c, err := p.store.Capability(ctx, name)
	if err != nil {
		return inner{}, err
	}
	program, err := p.analyse(ctx, c.Source, false)
	if err != nil {
		return inner{}, fmt.Errorf("capability %s: %w", name, err)
	}
	defaults, err := withDefaults(c.Parameters, nil)
	if err != nil {
		return inner{}, err
	}
	code, err := program.Code(analysis.CodeOptions{Lift: true, Provided: keys(defaults)})
	if err != nil {
		return inner{}, fmt.Errorf("capability %s: %w", name, err)
	}
	// On the first line, so that the lines stay those of the capability's program.
	text := "args={..." + string(defaults) + ",...args};" + code.Text
	return inner{capability: c, program: program, text: text, nodes: kinds(code)}, nil
}

// noteDependencies records which capabilities the program contains. A program that
// would contain itself is refused with the circle named.
func (p *planner) noteDependencies(ctx context.Context, ready *prepared) error {
	if !ready.created {
		return nil
	}
	for _, name := range ready.program.Capabilities() {
		if err := p.store.AddDependency(ctx, ready.capability.ID, ready.inner[name].capability.ID, capability.Contains); err != nil {
			return placed(err, ready.program, capabilityNode(ready.program, name))
		}
	}
	return nil
}

// withDefaults merges arguments over the defaults of parameters. A required
// parameter without a value is an error that names it and its schema.
func withDefaults(parameters []structure.Parameter, args json.RawMessage) (json.RawMessage, error) {
	merged := map[string]json.RawMessage{}
	if len(args) > 0 && string(args) != "null" {
		if err := json.Unmarshal(args, &merged); err != nil {
			return nil, fault.New(fault.InvalidInput, "args is not a JSON object: %v", err)
		}
	}
	for _, p := range parameters {
		if _, given := merged[p.Name]; given {
			continue
		}
		var schema struct {
			Default json.RawMessage `json:"default"`
		}
		if json.Unmarshal(p.Schema, &schema) == nil && schema.Default != nil {
			merged[p.Name] = schema.Default
		}
	}
	return json.Marshal(merged)
}

// keys are the names of an object's members, in order.
func keys(object json.RawMessage) []string {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// kinds are the nodes that a text's marks may name.
func kinds(code analysis.Code) map[string]sandbox.NodeKind {
	if code.Nodes == nil {
		return nil
	}
	out := make(map[string]sandbox.NodeKind, len(code.Nodes))
	for id, t := range code.Nodes {
		out[id] = sandbox.NodeKind(t)
	}
	return out
}

// Analyse reads a capability's program and makes sure that its tools exist.
func (e *Engine) Analyse(ctx context.Context, s capability.Source) (*analysis.Program, error) {
	return e.planner.analyse(ctx, s, false)
}

// Hash computes the hashes and the structure of a program, whose tools need not exist here.
func (e *Engine) Hash(s capability.Source) (exact, shape string, st structure.Structure, err error) {
	program, err := e.planner.analyseWith(e.planner.upstream.Catalog(), s, false)
	if err != nil {
		return "", "", st, err
	}
	return program.HashExact, program.HashShape, program.Structure, nil
}
