package search

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/pml-run/pml/internal/capability"
)

func TestToolReliability(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		successes, failures int64
		want                float64
	}{
		{0, 0, 1}, {1, 0, 1.05}, {100, 0, 1.05}, {0, 1, 0.8}, {0, 1000, 0.8}, {1, 1, 0.9}, {6, 4, 8.0 / 13 * 1.5},
	} {
		if got := ToolReliability(c.successes, c.failures); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d of %d: %g, want %g", c.successes, c.successes+c.failures, got, c.want)
		}
	}
}

// TestWilson has values of the formula worked out by hand.
func TestWilson(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		successes, failures int64
		z, want             float64
	}{
		{0, 0, 1.96, 0}, {1, 0, 1.96, 0.206549}, {0, 5, 1.96, 0}, {9, 1, 1.96, 0.595850}, {1, 0, 1, 0.5}, {10, 0, 1, 10.0 / 11},
	} {
		if got := Wilson(c.successes, c.failures, c.z); math.Abs(got-c.want) > 1e-5 {
			t.Errorf("%d of %d at %g: %g, want %g", c.successes, c.successes+c.failures, c.z, got, c.want)
		}
	}
}

func TestCapabilityReliability(t *testing.T) {
	t.Parallel()
	active := func(successes, failures int64) float64 {
		return CapabilityReliability(capability.Active, successes, failures)
	}
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %g, want %g", name, got, want)
		}
	}
	near("a single success is not buried below a tool that was never called", active(1, 0), ToolReliability(0, 0))
	near("never run", active(0, 0), 1)
	near("only failures", active(0, 9), 0.8)
	near("promoted", CapabilityReliability(capability.Promoted, 10, 0), active(10, 0)*1.05)
	near("degraded", CapabilityReliability(capability.Degraded, 10, 0), active(10, 0)*0.5)
	order := []float64{active(0, 3), active(1, 3), active(5, 5), active(1, 0), active(2, 0), active(19, 1), active(100, 0), 1.05}
	for i := 1; i < len(order); i++ {
		if order[i] <= order[i-1] {
			t.Errorf("more evidence of success must rank higher: %v", order)
		}
	}
}

// TestReliabilityBounds: SetReliability takes whatever these functions give, and
// one more success never harms.
func TestReliabilityBounds(t *testing.T) {
	t.Parallel()
	states := []capability.State{capability.Active, capability.Promoted, capability.Degraded}
	rapid.Check(t, func(t *rapid.T) {
		s, f := rapid.Int64Range(0, 1e6).Draw(t, "successes"), rapid.Int64Range(0, 1e6).Draw(t, "failures")
		state := rapid.SampledFrom(states).Draw(t, "state")
		tool, c := ToolReliability(s, f), CapabilityReliability(state, s, f)
		if tool < 0.8 || tool > 1.05 || c <= 0 || c > maxReliability {
			t.Fatalf("tool %g, capability %g", tool, c)
		}
		if ToolReliability(s+1, f) < tool || s+f > 0 && CapabilityReliability(state, s+1, f) < c-1e-12 {
			t.Fatal("a success has done harm")
		}
	})
}

func TestRunsByIntent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state               capability.State
		successes, failures int64
		want                bool
	}{
		{capability.Active, 1, 0, true},
		{capability.Active, 1, 1, true},
		{capability.Active, 1, 2, false},
		{capability.Active, 0, 0, false},
		{capability.Promoted, 9, 1, true},
		{capability.Promoted, 4, 5, false},
		{capability.Degraded, 9, 1, false},
		{capability.Candidate, 9, 1, false},
		{capability.Retired, 9, 1, false},
	} {
		if got := RunsByIntent(c.state, c.successes, c.failures); got != c.want {
			t.Errorf("%s with %d of %d: %v", c.state, c.successes, c.successes+c.failures, got)
		}
	}
}
