package execute

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/policy"
	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/structure"
)

// A DAG that stops after its layers calls this from between them.
const (
	ownServer = "$pml"
	layerTool = "layer"
)

// isCheckpoint reports whether a call is the stop after a layer: only the text of a
// DAG that the run asked for makes such a call.
func (g *gate) isCheckpoint(c sandbox.Call) bool {
	return g.layers && c.Server == ownServer && c.Tool == layerTool
}

// checkpoint holds the run until its client has said how to go on.
func (g *gate) checkpoint(ctx context.Context, c sandbox.Call) (sandbox.Reply, error) {
	var at struct {
		Index   int                        `json:"index"`
		Results map[string]json.RawMessage `json:"results"`
	}
	if err := json.Unmarshal(c.Args, &at); err != nil {
		return sandbox.Reply{}, fmt.Errorf("read the end of a layer: %w", err)
	}
	decided, passed := g.consent.passed(at.Index)
	if !passed {
		a, err := g.engine.hold(ctx, g, policy.Request{Intent: g.run.Intent, Asks: []policy.Question{}, Layer: at.Index, Results: previews(at.Results)})
		if err != nil {
			return sandbox.Reply{}, err
		}
		if a.Answer != nil && len(a.Answer.Plan) > 0 {
			g.engine.abort(g.run.ID, errReplanned)
			return sandbox.Reply{}, errReplanned
		}
		decided = a.DecidedAt
	}
	return sandbox.Reply{Seal: func() (time.Time, error) { return g.tickTo(decided), nil }}, nil
}

// previews cuts results to what fits an answer.
func previews(results map[string]json.RawMessage) json.RawMessage {
	out := map[string]any{}
	for id, raw := range results {
		if len(raw) <= maxPreview {
			out[id] = raw
			continue
		}
		out[id] = Preview(string(raw), maxPreview)
	}
	return mustJSON(out)
}

// replan replaces the layers of a DAG that come after one by a new rest. The tasks
// that have run stay, with their ids; the new ones may refer to their results.
func replan(dag structure.DAG, layer int, rest json.RawMessage) (json.RawMessage, error) {
	var more struct {
		Tasks []json.RawMessage `json:"tasks"`
	}
	if err := json.Unmarshal(rest, &more); err != nil {
		return nil, fault.New(fault.InvalidInput, "the new rest is no DAG: %v", err).WithHint(`pass {"tasks": […]}`)
	}
	var kept []json.RawMessage
	done := map[string]bool{}
	for i, ids := range dag.Layers() {
		for _, id := range ids {
			if i <= layer {
				done[id] = true
			}
		}
	}
	for _, t := range dag.Tasks {
		if done[t.ID] {
			kept = append(kept, mustJSON(t))
		}
	}
	joined := mustJSON(map[string]any{"tasks": slices.Concat(kept, more.Tasks)})
	if _, err := structure.ParseDAG(joined); err != nil {
		f, ok := asFault(err)
		if !ok {
			return nil, err
		}
		return nil, f.WithHint("%s (tasks that have run already: %v)", f.Hint, slices.Sorted(maps.Keys(done)))
	}
	return joined, nil
}
