package search

import (
	"math"

	"github.com/pml-run/pml/internal/capability"
)

// A reliability multiplies a score: 1 is that of what has not shown itself yet.
const (
	leastReliability = 0.8
	bestReliability  = 1.05
	promotedFactor   = 1.05
	degradedFactor   = 0.5
	// maxReliability is the largest there is: a promoted capability's.
	maxReliability = bestReliability * promotedFactor

	// runnableRate is the success rate below which no intent alone runs a capability.
	runnableRate = 0.5
)

// ToolReliability is the mean of a Beta(2,1) distribution after the calls, in terms
// of its mean before any (2/3), between 0.8 and 1.05. So a tool that was never
// called counts as it is, one that works gains little, and one that fails loses at
// most a fifth: a poor tool for the job is not made right by never failing.
func ToolReliability(successes, failures int64) float64 {
	const priorSuccesses, priorFailures = 2, 1
	mean := (float64(successes) + priorSuccesses) / (float64(successes+failures) + priorSuccesses + priorFailures)
	return min(max(mean/(2.0/3), leastReliability), bestReliability)
}

// Wilson is the lower bound of a rate of which so many successes and failures were
// seen, z standard errors below (Wilson, Probable Inference, the Law of Succession,
// and Statistical Inference, 1927); 0 without any.
func Wilson(successes, failures int64, z float64) float64 {
	n := float64(successes + failures)
	if n == 0 {
		return 0
	}
	p := float64(successes) / n
	spread := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max((p+z*z/(2*n)-spread)/(1+z*z/n), 0)
}

// CapabilityReliability is by how much a capability's score is multiplied: the
// Wilson bound at one standard error, drawn through three points: 0 is 0.8 as for the
// worst tool, a single success (1/2) is 1 as for a tool that was never called, and
// certainty is 1.05 as for the best tool. At two standard errors a single success
// would have a bound of 0.21, behind five failures in ten runs. A promoted one ranks
// 1.05 times higher, a degraded one half as high.
func CapabilityReliability(state capability.State, successes, failures int64) float64 {
	const single = 0.5 // Wilson(1, 0, 1)
	r := 1.0           // without any run, as an imported one
	if successes+failures > 0 {
		w := Wilson(successes, failures, 1)
		r = leastReliability + (1-leastReliability)*min(w, single)/single +
			(bestReliability-1)*(max(w, single)-single)/(1-single)
	}
	switch state {
	case capability.Promoted:
		r *= promotedFactor
	case capability.Degraded:
		r *= degradedFactor
	default: // as its runs say
	}
	return r
}

// RunsByIntent reports whether an intent alone may run a capability at all: its state
// allows it, and at least half of its runs succeeded.
func RunsByIntent(state capability.State, successes, failures int64) bool {
	runs := successes + failures
	return state.RunsByIntent() && runs > 0 && float64(successes) >= runnableRate*float64(runs)
}
