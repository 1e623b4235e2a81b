// Package learn turns finished runs into what PML knows: how well each way through
// a program works, which runs were surprises, which tools follow and feed each
// other, what results look like, and which state a capability is in. Its formulas
// are pure; Prepare does the work of one trace outside of any transaction, and
// Lesson.Apply joins it with the stored evidence inside the transaction that
// stores the trace. It talks to no database: package store is behind the interface Tx.
package learn

import (
	"math"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/tool"
)

const (
	// alpha is the learning rate of the temporal-difference updates.
	alpha = 0.1
	// startRate is what is expected of a way that was never taken.
	startRate = 0.5
	// dominantRuns is from how many runs on a path can be the dominant one.
	dominantRuns = 3
	// MostPaths bounds the paths that are kept of a program; of more, the one with
	// the fewest runs goes, the oldest of those first.
	MostPaths = 64
	// mostOutcomes bounds the statistics of decisions likewise: a later one is not
	// taken in.
	mostOutcomes = 500
)

// rate is one step of temporal-difference learning, TD(0) for outcomes that are
// terminal: V ← V + α·(r − V) (Sutton and Barto, Reinforcement Learning, 2nd ed., §6.1).
func rate(old float64, success bool) float64 { return old + alpha*(actual(success)-old) }

// average moves an average towards a new value at the same rate.
func average(old, value float64) float64 { return old + alpha*(value-old) }

func actual(success bool) float64 {
	if success {
		return 1
	}
	return 0
}

// Run is what the formulas need of a finished run.
type Run struct {
	PathHash   string
	Path       []string
	Decisions  []Outcome
	Success    bool
	DurationMS float64
	// Output is what the result of a successful run shows.
	Output tool.Observed
}

// Outcome is an outcome that a decision had in a run.
type Outcome struct{ NodeID, Outcome string }

// Update returns the learning after one more run. The given one is not changed.
func Update(l capability.Learning, r Run) capability.Learning {
	l.Paths, l.Decisions = updatePaths(l.Paths, r), updateDecisions(l.Decisions, r)
	l.DominantPath = Dominant(l.Paths)
	l.Output = l.Output.Add(r.Output)
	return l
}

func updatePaths(list []capability.PathStats, r Run) []capability.PathStats {
	out := append(make([]capability.PathStats, 0, len(list)+1), list...)
	for i := range out {
		if p := &out[i]; p.Hash == r.PathHash {
			p.Count++
			p.SuccessRate = rate(p.SuccessRate, r.Success)
			p.AvgDurationMS = average(p.AvgDurationMS, r.DurationMS)
			return out
		}
	}
	if len(out) >= MostPaths {
		out = forget(out)
	}
	return append(out, capability.PathStats{
		Hash: r.PathHash, Path: r.Path, Count: 1, SuccessRate: rate(startRate, r.Success), AvgDurationMS: r.DurationMS,
	})
}

// forget takes out the path with the fewest runs.
func forget(list []capability.PathStats) []capability.PathStats {
	least := 0
	for i, p := range list {
		if p.Count < list[least].Count {
			least = i
		}
	}
	return append(list[:least], list[least+1:]...)
}

// updateDecisions counts each outcome of a decision once a run, however often a
// loop has met it.
func updateDecisions(list []capability.DecisionStats, r Run) []capability.DecisionStats {
	out := append(make([]capability.DecisionStats, 0, len(list)+len(r.Decisions)), list...)
	at := make(map[Outcome]int, len(out))
	for i, d := range out {
		at[Outcome{d.NodeID, d.Outcome}] = i
	}
	counted := map[Outcome]bool{}
	for _, d := range r.Decisions {
		if counted[d] {
			continue
		}
		counted[d] = true
		i, known := at[d]
		if !known {
			if len(out) >= mostOutcomes {
				continue
			}
			i = len(out)
			at[d] = i
			out = append(out, capability.DecisionStats{NodeID: d.NodeID, Outcome: d.Outcome, SuccessRate: startRate})
		}
		out[i].Count++
		out[i].SuccessRate = rate(out[i].SuccessRate, r.Success)
	}
	return out
}

// Dominant returns the hash of the path with the largest successRate·count among
// those with at least three runs, the first seen when there is none; empty for none
// at all. Of equals the first seen wins.
func Dominant(paths []capability.PathStats) string {
	if len(paths) == 0 {
		return ""
	}
	best, score := paths[0].Hash, 0.0
	for _, p := range paths {
		if s := p.SuccessRate * float64(p.Count); p.Count >= dominantRuns && s > score {
			best, score = p.Hash, s
		}
	}
	return best
}

const (
	// A path with more runs than this has a usual duration, and a run that takes
	// more than twice or less than half of it is a surprise.
	usualAfter             = 5
	slow, fast             = 2.0, 0.5
	durationBonus          = 0.2
	rareShare, rarityBonus = 0.1, 0.1
)

// Priority says how much there is to learn from a run, from 0 to 1, given what was
// known before it: the size of the prediction's error, as in prioritized experience
// replay (Schaul et al., 2015), and more for an unusual duration and a rare path. A
// path that was never seen has the highest priority.
func Priority(before capability.Learning, r Run) float64 {
	var total int64
	var known *capability.PathStats
	for i, p := range before.Paths {
		total += p.Count
		if p.Hash == r.PathHash {
			known = &before.Paths[i]
		}
	}
	if known == nil {
		return 1
	}
	priority := math.Abs(known.SuccessRate - actual(r.Success))
	if known.Count > usualAfter && known.AvgDurationMS > 0 {
		if ratio := r.DurationMS / known.AvgDurationMS; ratio > slow || ratio < fast {
			priority += durationBonus
		}
	}
	if float64(known.Count) < rareShare*float64(total) {
		priority += rarityBonus
	}
	return min(max(priority, 0), 1)
}

// count adds a run to the overall counts.
func count(e capability.Evidence, success bool, durationMS float64) capability.Evidence {
	e.AvgDurationMS = average(e.AvgDurationMS, durationMS)
	if e.UsageCount == 0 {
		e.AvgDurationMS = durationMS
	}
	e.UsageCount++
	if success {
		e.SuccessCount++
		e.ConsecutiveFailures = 0
	} else {
		e.FailureCount++
		e.ConsecutiveFailures++
	}
	e.SuccessRate = float64(e.SuccessCount) / float64(e.SuccessCount+e.FailureCount)
	return e
}
