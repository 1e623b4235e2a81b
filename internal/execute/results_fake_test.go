package execute

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/trace"
)

// fakeResults holds the result of one run and its calls by task id.
type fakeResults struct {
	id      uuid.UUID
	run     trace.Run
	calls   map[string]trace.Call
	order   []string
	inner   map[string]uuid.UUID // by node
	expires time.Time
	gone    bool
	reads   int // of whole results
}

func newResults(id uuid.UUID) *fakeResults {
	return &fakeResults{id: id, run: trace.Run{ID: id, Status: trace.Succeeded}, calls: map[string]trace.Call{}, inner: map[string]uuid.UUID{}}
}

func (f *fakeResults) add(c trace.Call) {
	task := taskID(c.NodeID, c.Occurrence)
	f.calls[task] = c
	f.order = append(f.order, task)
}

func (f *fakeResults) kept() (time.Time, error) {
	if f.gone {
		return f.expires, fault.New(fault.Expired, "the result was kept until %s", f.expires)
	}
	return f.expires, nil
}

func (f *fakeResults) RunHead(_ context.Context, id uuid.UUID) (trace.Run, time.Time, error) {
	if id != f.id {
		return trace.Run{}, time.Time{}, fault.New(fault.NotFound, "there is no run %s", id)
	}
	until, err := f.kept()
	run := f.run
	run.Result = nil
	return run, until, err
}

func (f *fakeResults) RunResult(context.Context, uuid.UUID) (json.RawMessage, time.Time, error) {
	f.reads++
	return f.run.Result, f.expires, nil
}

func (f *fakeResults) CallHead(_ context.Context, _ uuid.UUID, node string, occurrence int) (trace.Call, time.Time, error) {
	c, ok := f.calls[taskID(node, occurrence)]
	if !ok {
		return c, time.Time{}, fault.New(fault.NotFound, "no call")
	}
	until, err := f.kept()
	c.Result = nil
	return c, until, err
}

func (f *fakeResults) CallResult(_ context.Context, _ uuid.UUID, node string, occurrence int) (json.RawMessage, time.Time, error) {
	f.reads++
	c, ok := f.calls[taskID(node, occurrence)]
	if !ok {
		return nil, time.Time{}, fault.New(fault.NotFound, "no call")
	}
	return c.Result, f.expires, nil
}

func (f *fakeResults) CallNodes(context.Context, uuid.UUID, int) ([]trace.Call, error) {
	var nodes []trace.Call
	for _, task := range f.order {
		if c := f.calls[task]; c.Occurrence == 1 {
			nodes = append(nodes, c)
		} else {
			nodes[len(nodes)-1].Occurrence = c.Occurrence
		}
	}
	return nodes, nil
}

func (f *fakeResults) InnerRuns(_ context.Context, _ uuid.UUID, node string) ([]trace.Run, error) {
	if id, ok := f.inner[node]; ok {
		return []trace.Run{{ID: id, Intent: "tidy up"}}, nil
	}
	return nil, nil
}
