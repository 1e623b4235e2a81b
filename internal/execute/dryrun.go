package execute

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/pml-run/pml/internal/connector"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// Recorded finds what calls have answered before, for dry runs.
type Recorded interface {
	// RecordedResult returns the latest result that is still kept of a call of a tool
	// with these arguments or, exact being false, with arguments of the same names.
	RecordedResult(ctx context.Context, id tool.ID, argsHash string, args json.RawMessage) (result json.RawMessage, exact, ok bool, err error)
	// ObservedSchemas returns what results of tools have looked like.
	ObservedSchemas(ctx context.Context) (map[tool.ID]tool.Observed, error)
}

// DryRun asks for a run in which no tool with a possible side effect is called.
type DryRun struct {
	On bool
	// RealReads has tools that change nothing be called for real.
	RealReads bool
}

// UnmarshalJSON reads true, false, or {"reads": "real" | "mock"}.
func (d *DryRun) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &d.On) == nil {
		return nil
	}
	var o struct {
		Reads string `json:"reads"`
	}
	in := json.NewDecoder(bytes.NewReader(b))
	in.DisallowUnknownFields()
	if err := in.Decode(&o); err != nil || o.Reads != "" && o.Reads != "real" && o.Reads != "mock" {
		return fault.New(fault.InvalidInput, "options.dry_run is %s", Preview(string(b), 100)).WithHint(`use true, or {"reads": "real"}`)
	}
	d.On, d.RealReads = true, o.Reads == "real"
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads.
func (d DryRun) MarshalJSON() ([]byte, error) {
	if d.RealReads {
		return []byte(`{"reads":"real"}`), nil
	}
	return json.Marshal(d.On)
}

// IsZero reports whether the run is a real one.
func (d DryRun) IsZero() bool { return !d.On }

// Origin says where the answer of a call in a dry run came from.
type Origin string

// The origins, the most truthful first.
const (
	FromTool      Origin = "real"           // the tool was called: it changes nothing
	FromJournal   Origin = "recorded"       // the latest result of the same call
	FromSimilar   Origin = "recorded_shape" // the latest result of a call with the same names of arguments
	FromSchema    Origin = "mock"           // made from the declared or learnt output schema
	FromConnector Origin = "generator"      // made by what is known of the tool's kind of server
	FromNothing   Origin = "placeholder"    // nothing is known of what it answers
	FromRefusal   Origin = "refused"        // the call would not have been made
)

// What is shown of a dry run: so many calls, with so many characters of each answer.
const (
	mostDryCalls  = 200
	maxDryPreview = 400
)

// dryRun runs a program without its side effects and reports what it would do. No
// row is written and nothing is learnt.
func (e *Engine) dryRun(ctx context.Context, req Request) *Answer {
	if !e.enter() {
		return e.refused(errNotRunning)
	}
	defer e.wg.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.ctx, func() { cancel(context.Cause(e.ctx)) })()
	ready, err := e.planner.prepare(ctx, req)
	if err != nil {
		return e.refused(err)
	}
	asks, err := e.judge(ready)
	if err != nil {
		return e.refused(err)
	}
	observed, err := e.store.ObservedSchemas(ctx)
	if err != nil {
		return e.refused(err)
	}
	host := &dryGate{engine: e, observed: observed, realReads: req.Options.DryRun.RealReads, progress: req.Progress, counts: map[tool.ID]int{}}
	run := trace.Run{Intent: req.Intent, StartedAt: e.now(), Seed: 1}
	outcome, err := e.sandbox.Run(ctx, e.program(&activeRun{run: run, ready: ready}, req), host)
	a := &Answer{Status: StatusSuccess, Logs: outcome.Logs, LogsDropped: outcome.LogsDropped, DryRun: host.report(ready, outcome, asks)}
	if err != nil {
		a.Status, a.Error = StatusFailed, e.fault(run.ID, err)
		return a
	}
	a.setResult(outcome.Result)
	a.Next = "" // there is no run whose result could be read
	return a
}

// dryGate is the gate of a dry run: it answers in the place of tools.
type dryGate struct {
	engine    *Engine
	observed  map[tool.ID]tool.Observed
	realReads bool
	progress  func(done, total float64, message string)

	mu     sync.Mutex
	calls  []DryCall
	order  []int
	counts map[tool.ID]int
}

var _ sandbox.Host = (*dryGate)(nil)

// Progress passes on what the program says.
func (g *dryGate) Progress(done, total float64, message string) {
	if g.progress != nil {
		g.progress(done, total, message)
	}
}

// Log does nothing: the answer has what the program says.
func (*dryGate) Log(string) {}

// Call answers a call as well as it can without a side effect.
func (g *dryGate) Call(ctx context.Context, c sandbox.Call) (sandbox.Reply, error) {
	call := DryCall{TaskID: taskID(c.NodeID, c.Occurrence), Tool: tool.MakeID(c.Server, c.Tool), Args: c.Args, Capability: c.Capability, Origin: FromRefusal}
	value, err := g.answer(ctx, c, &call)
	if err != nil {
		call.Problem = err.Error()
	} else {
		call.Preview = Preview(string(value), maxDryPreview)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts[call.Tool]++
	g.calls, g.order = append(g.calls, call), append(g.order, c.Seq)
	return sandbox.Reply{Value: value}, err
}

func (g *dryGate) answer(ctx context.Context, c sandbox.Call, call *DryCall) (json.RawMessage, error) {
	target, err := g.engine.upstream.Resolve(ctx, c.Server, c.Tool)
	if err != nil {
		return nil, err
	}
	call.Tool = target.ID
	if err := g.engine.validator.Validate(target, c.Args); err != nil {
		return nil, err
	}
	d := g.engine.config.Rules.Policy().Decide(target)
	if call.Effect = d.Effect; d.Effect == policy.Deny {
		return nil, denied(target.ID, d)(c.NodeID)
	}
	if g.realReads && target.ReadOnly() && d.Effect == policy.Allow {
		call.Origin = FromTool
		raw, err := g.engine.upstream.Call(ctx, target.ID, c.Args, g.Progress)
		if err != nil {
			return nil, err
		}
		value, err := unwrap(target.ID, raw, c.Raw)
		return value.JSON, err
	}
	return g.imagine(ctx, c, target, call)
}

// imagine answers from what is known of a tool's results.
func (g *dryGate) imagine(ctx context.Context, c sandbox.Call, target tool.Tool, call *DryCall) (json.RawMessage, error) {
	sum := sha256.Sum256(c.Args)
	hash := hex.EncodeToString(sum[:16])
	if !c.Raw { // results are kept as programs see them
		value, exact, ok, err := g.engine.store.RecordedResult(ctx, target.ID, hash, c.Args)
		if err != nil {
			return nil, err
		}
		if ok {
			call.Origin = FromSimilar
			if exact {
				call.Origin = FromJournal
			}
			return value, nil
		}
	}
	schema := target.OutputSchema
	if o, ok := g.observed[target.ID]; ok && len(schema) == 0 && o.Count > 0 {
		schema, _ = json.Marshal(o.Shape) // a shape always encodes
	}
	if value := tool.Mock(schema, fmt.Sprint(target.ID, hash, c.Occurrence)); value != nil {
		call.Origin = FromSchema
		return structured(value, c.Raw), nil
	}
	made, ok := connector.Generate(connector.Call{
		Tool: target, Server: g.engine.upstream.Catalog().ServerTools(target.ID.Server()), Args: c.Args, Seed: target.ID.Server(), Place: call.TaskID,
	})
	if !ok {
		call.Origin = FromNothing
		return structured(json.RawMessage("null"), c.Raw), nil
	}
	call.Origin, call.Connector = FromConnector, made.Connector
	value, err := unwrap(target.ID, made.Result, c.Raw)
	return value.JSON, err
}

// structured is a value as the program is to see it: as it is, or in a tool's whole
// result.
func structured(value json.RawMessage, raw bool) json.RawMessage {
	if !raw {
		return value
	}
	return mustJSON(map[string]any{"content": []map[string]string{{"type": "text", "text": string(value)}}, "structuredContent": value})
}
