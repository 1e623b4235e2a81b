package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pml-run/pml/internal/capability"
)

// unusedFor is for how long a candidate is kept that nobody runs.
const unusedFor = 30 * 24 * time.Hour

// capabilities is where capabilities are found and moved.
type capabilities interface {
	// ActiveCapabilities returns those that are active and have run that often.
	ActiveCapabilities(ctx context.Context, runs int) ([]capability.Capability, error)
	// UnusedCandidates returns the candidates that were neither run nor changed since then.
	UnusedCandidates(ctx context.Context, since time.Time) ([]capability.Capability, error)
	// MoveCapability applies an event to the capability with a name or an id.
	MoveCapability(ctx context.Context, nameOrID string, e capability.Event) (capability.State, error)
}

// Promote promotes the capabilities that have proved themselves.
func Promote(store capabilities, registerer prometheus.Registerer) Kind {
	detected := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "pml_patterns_detected_total", Help: "Capabilities that were found to have run often and well enough to be promoted.",
	})
	promoted := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "pml_capabilities_promoted_total", Help: "Capabilities that became promoted.",
	})
	if registerer != nil {
		registerer.MustRegister(detected, promoted)
	}
	do := func(ctx context.Context) (string, error) {
		list, err := store.ActiveCapabilities(ctx, capability.PromoteRuns)
		if err != nil {
			return "", err
		}
		n := 0
		for _, c := range list {
			if !capability.MayPromote(c) {
				continue
			}
			detected.Inc()
			state, err := store.MoveCapability(ctx, c.ID.String(), capability.Event{Kind: capability.Proved})
			if err != nil {
				return "", err
			}
			if state == capability.Promoted {
				n++
				promoted.Inc()
			}
		}
		return fmt.Sprintf("%d promoted", n), nil
	}
	return Kind{Name: "promote", About: "promote capabilities that ran often and well", Every: 10 * time.Minute, Do: do}
}

// Retire puts the candidates away that were not used for thirty days.
func Retire(store capabilities, now func() time.Time) Kind {
	do := func(ctx context.Context) (string, error) {
		list, err := store.UnusedCandidates(ctx, now().Add(-unusedFor))
		if err != nil {
			return "", err
		}
		n := 0
		for _, c := range list {
			state, err := store.MoveCapability(ctx, c.ID.String(), capability.Event{Kind: capability.Unused})
			if err != nil {
				return "", err
			}
			if state == capability.Retired {
				n++
			}
		}
		return fmt.Sprintf("%d retired", n), nil
	}
	return Kind{Name: "retire", About: "put away candidates that were not used for 30 days", Every: day, Do: do}
}
