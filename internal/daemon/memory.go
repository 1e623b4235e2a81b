package daemon

import (
	"context"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/learn"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// memory is the store as the engine sees it: what it is given to keep, it learns
// from in the same transaction.
type memory struct {
	*store.Store

	// served is told which intents were served by which tools and capability.
	served func(intent string, tools []tool.ID, capability uuid.UUID)
	learnt *learnt
}

// Finish stores finished runs and what they teach.
func (m memory) Finish(ctx context.Context, finished []execute.Finished) (execute.Learnt, error) {
	traces := make([]trace.Trace, len(finished))
	studies := make([]*learn.Study, len(finished))
	for i, f := range finished {
		traces[i] = f.Trace
		studies[i] = learn.Prepare(f.Trace, f.Capability, learn.Options{AllowPartial: f.AllowPartial})
	}
	var first learn.Result
	var lessons noted
	err := m.FinishRuns(ctx, traces, func(ctx context.Context, tx *store.Tx) error {
		lessons = noted{Tx: tx} // a second try starts again
		for i, study := range studies {
			result, err := study.Apply(ctx, &lessons)
			if err != nil {
				return err
			}
			if i == 0 {
				first = result
			}
		}
		return nil
	})
	if err == nil {
		m.learnt.count(traces, lessons.list)
		m.tell(finished)
	}
	return execute.Learnt{
		State: first.After, Saved: first.Save, Activated: first.Activated,
		Promoted: first.After == capability.Promoted && first.Before != capability.Promoted,
	}, err
}

// tell says what the runs that succeeded have served, by which calls that did too.
func (m memory) tell(finished []execute.Finished) {
	for _, f := range finished {
		if f.Trace.Run.Status != trace.Succeeded || m.served == nil {
			continue
		}
		var tools []tool.ID
		for _, c := range f.Trace.Calls {
			if c.Status == trace.CallOK {
				tools = append(tools, c.Tool)
			}
		}
		m.served(f.Trace.Run.Intent, tools, f.Trace.Run.Capability)
	}
}

// CapabilityAt returns a capability at one of its versions; 0 is its head.
func (m memory) CapabilityAt(ctx context.Context, nameOrID string, version int) (capability.Capability, error) {
	c, err := m.Capability(ctx, nameOrID)
	if err != nil || version == 0 || version == c.Version {
		return c, err
	}
	versions, err := m.CapabilityVersions(ctx, nameOrID)
	if err != nil {
		return c, err
	}
	for _, v := range versions {
		if v.Number == version {
			c.Version, c.HashExact, c.HashShape = v.Number, v.HashExact, v.HashShape
			c.Source, c.Parameters, c.Structure = v.Source, v.Parameters, v.Structure
			return c, nil
		}
	}
	return c, fault.New(fault.NotFound, "capability %q has no version %d", c.Name, version).WithHint("its versions are 1 to %d", len(versions))
}
