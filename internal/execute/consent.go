package execute

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
)

// Rules are what decides about calls. The policy may change at any time.
type Rules interface {
	Policy() *policy.Policy
	// Changed is called after a person's rule was stored.
	Changed(ctx context.Context)
}

// permissive allows everything: the rules of an engine that was given none.
type permissive struct{}

func (permissive) Policy() *policy.Policy  { return policy.New(nil, nil, policy.AlwaysAllow) }
func (permissive) Changed(context.Context) {}

// consent is what persons have allowed in one run.
type consent struct {
	mu    sync.Mutex
	tools map[tool.ID]bool
	calls map[place]bool
	// layers are those that the client has approved, and when.
	layers map[int]time.Time
	open   []policy.Approval // asked by an earlier attempt at the run, and not answered
}

// waiting finds the question that an earlier attempt has asked about the same.
func (c *consent) waiting(r policy.Request) (policy.Approval, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.open {
		q := a.Requested
		if q.Frame == r.Frame && q.NodeID == r.NodeID && q.Occurrence == r.Occurrence && q.Layer == r.Layer {
			return a, true
		}
	}
	return policy.Approval{}, false
}

// add takes in an approval that was asked for, and given or not.
func (c *consent) add(a policy.Approval) {
	if a.Status == policy.Pending {
		c.mu.Lock()
		c.open = append(c.open, a)
		c.mu.Unlock()
	}
	if a.Status != policy.Approved || a.Answer == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.Kind == policy.ForLayer {
		if c.layers == nil {
			c.layers = map[int]time.Time{}
		}
		c.layers[a.Requested.Layer] = a.DecidedAt
		return
	}
	if a.Kind == policy.ForCall && a.Answer.Scope == policy.Once {
		if c.calls == nil {
			c.calls = map[place]bool{}
		}
		c.calls[place{a.Requested.Frame, a.Requested.NodeID, a.Requested.Occurrence}] = true
		return
	}
	if c.tools == nil {
		c.tools = map[tool.ID]bool{}
	}
	for _, id := range a.Requested.Tools() {
		c.tools[id] = true
	}
}

// passed reports whether the client has approved a layer, and when.
func (c *consent) passed(layer int) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.layers[layer]
	return at, ok
}

func (c *consent) covers(at place, id tool.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tools[id] || c.calls[at]
}

// maxShown is how much of a call's text a person is shown, in bytes.
const maxShown = 400

// judge looks at every tool that a program and its capabilities can be seen to
// call. One that is denied is an error, which names the place; those that ask are
// returned.
func (e *Engine) judge(ready *prepared) ([]policy.Question, error) {
	p, catalog := e.config.Rules.Policy(), e.upstream.Catalog()
	var asks []policy.Question
	look := func(name string, program programView) error {
		for _, n := range program.structure.Nodes {
			t, known := catalog.Get(tool.ID(n.Tool))
			if n.Type != structure.Task || !known {
				continue // a computed name is looked at when it is called
			}
			d := p.Decide(t)
			switch d.Effect {
			case policy.Deny:
				return denied(t.ID, d)(n.ID)
			case policy.Ask:
				asks = append(asks, policy.Question{
					Tool: t.ID, NodeID: n.ID, Line: program.info[n.ID].Line, Call: program.text(n.ID), Reason: d.Reason, Capability: name,
				})
			case policy.Allow:
			}
		}
		return nil
	}
	if err := look("", viewOf(ready)); err != nil {
		return nil, placed(err, ready.program, nodeOf(err))
	}
	names := make([]string, 0, len(ready.inner))
	for name := range ready.inner {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		in := ready.inner[name]
		if err := look(name, programView{in.program.Structure, in.program.Info, in.program.Source}); err != nil {
			return nil, err
		}
	}
	return asks, nil
}

// programView is what judge reads of a program.
type programView struct {
	structure structure.Structure
	info      map[string]structure.Info
	source    string
}

func viewOf(ready *prepared) programView {
	return programView{ready.program.Structure, ready.program.Info, ready.program.Source}
}

// text is the call as it stands in the program.
func (v programView) text(node string) string {
	at := v.info[node]
	if at.Start < 0 || at.End > len(v.source) || at.Start >= at.End {
		return ""
	}
	text := v.source[at.Start:at.End]
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return text
}

// denied is the fault of a call that no person is asked about.
func denied(id tool.ID, d policy.Decision) func(node string) *fault.Error {
	return func(node string) *fault.Error {
		f := fault.New(fault.Denied, "%s may not be called: %s", id, d.Reason).
			WithHint("use another tool; a person can change the rule, in the configuration or with pml policy")
		f.Tool, f.NodeID = string(id), node
		return f
	}
}

func nodeOf(err error) string {
	if f, ok := asFault(err); ok {
		return f.NodeID
	}
	return ""
}

// permit lets a call pass that is allowed, and holds one that asks until a person
// has answered.
func (g *gate) permit(ctx context.Context, at place, c sandbox.Call, target tool.Tool) error {
	d := g.engine.config.Rules.Policy().Decide(target)
	switch {
	case d.Effect == policy.Deny:
		return denied(target.ID, d)(at.node)
	case d.Effect == policy.Allow || g.consent.covers(at, target.ID):
		return nil
	}
	_, err := g.engine.hold(ctx, g, policy.Request{
		Intent: g.run.Intent, Frame: at.root, NodeID: at.node, Occurrence: at.occurrence,
		Asks: []policy.Question{{Tool: target.ID, NodeID: at.node, Args: c.Args, Reason: d.Reason, Capability: c.Capability}},
	})
	return err
}
