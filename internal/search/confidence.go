package search

import (
	"context"
	"math"
)

// Match is what is known of the best capability for an intent.
type Match struct {
	Cosine float64 // of the best
	// Second is the largest cosine of another one, and 0 if there is none.
	Second float64
	// Reliability is that of the best (see CapabilityReliability).
	Reliability float64
	// Complete: the caller gave every parameter that has no default.
	Complete bool
	// Swapped: the intent is the best one's own but for one word, in whose place it has
	// another (see swapped).
	Swapped bool
}

// Best finds the capability that an intent asks for, if any does, and what is known
// of the match; whether its parameters are complete is left to the caller to say. No
// id means that there is none. The whole intent counts: a capability that does what
// one of its sentences asks for is not what was asked for. One that has no vector
// yet does not match.
func (x *Index) Best(ctx context.Context, q Query, o Options) (Hit, Match, error) {
	o.Kind, o.Without, o.Limit, o.Offset = Capabilities, o.Without|Sentences, defaultHits, 0
	found, err := x.Search(ctx, q, o)
	if err != nil || len(found.Hits) == 0 {
		return Hit{}, Match{}, err
	}
	best := found.Hits[0]
	m := Match{Cosine: best.Cosine, Reliability: best.Reliability, Complete: true}
	if best.Guessed {
		m.Cosine = 0
	}
	for _, h := range found.Hits[1:] {
		m.Second = max(m.Second, h.Cosine)
	}
	return best, m, nil
}

// likeness is what "make calibrate" prints (package evaluate): fitted on half of the
// tools of MetaTool and of LiveMCPBench's steps, with all-MiniLM-L6-v2. On the other
// half, 4,800 intents of which for 46 % the best match is the right one, its Brier
// score is 0.148 (0.249 for always saying how many are right); of the matches from
// 0.85 on 99 % are right, and among them are 58 % of all right ones. Half of the
// intents are asked of a store that lacks what they need but has what is most like it.
var likeness = Logistic{Offset: -2.20, Cosine: 8.32, Margin: 5.12}

const (
	// DefaultThreshold is the confidence from which an intent alone runs a capability.
	DefaultThreshold = 0.85
	// incompleteFactor keeps a match whose parameters are missing below any sensible
	// threshold: it cannot run as it is.
	incompleteFactor = 0.5
	// swappedFactor does the same for a match whose intent has another word: what is
	// counted, read or sent is another thing, though the vectors are nearly the same.
	swappedFactor = 0.8
	// widestMargin is how far ahead of the second it pays to be: in a small store
	// everything is far ahead.
	widestMargin = 0.2
)

// Logistic turns the features of a match into the probability that it is what was
// asked for: 1/(1+e^-(Offset + Cosine·cosine⁶ + Margin·margin)). The sixth power was
// the best of the powers 1 to 8 on held-out data: other tools for a like purpose reach
// 0.8, and what is asked for in nearly the same words begins right above.
type Logistic struct {
	Offset float64 `json:"offset"`
	Cosine float64 `json:"cosine"`
	Margin float64 `json:"margin"`
}

// Margin is by how much the best leads, between 0 and 0.2.
func (m Match) Margin() float64 { return min(max(m.Cosine-m.Second, 0), widestMargin) }

// Closeness is the cosine to the sixth power, and 0 for what points away.
func (m Match) Closeness() float64 { return math.Pow(max(m.Cosine, 0), 6) }

// At is the probability for a match.
func (l Logistic) At(m Match) float64 {
	return 1 / (1 + math.Exp(-(l.Offset + l.Cosine*m.Closeness() + l.Margin*m.Margin())))
}

// Confidence is the probability, from 0 to 1, that running the capability does what
// the intent asks for: that it is the right one, times what its past says about its
// success, halved if parameters are missing, and cut by a fifth if a word is another. It
// never falls when the cosine, the lead, or the reliability rises or parameters come.
func Confidence(m Match) float64 {
	c := likeness.At(m) * min(max(m.Reliability, 0), 1)
	if !m.Complete {
		c *= incompleteFactor
	}
	if m.Swapped {
		c *= swappedFactor
	}
	return c
}

// swapped reports whether two intents say the same but for one word each, stop words
// and endings aside: "count the words of a file" and "count the lines of the file". Two
// that differ in more are told apart by their vectors.
func swapped(a, b string) bool {
	of := func(text string) map[string]bool {
		set := map[string]bool{}
		for _, t := range tokens(text) {
			set[t] = true
		}
		return set
	}
	first, second := of(a), of(b)
	common := 0
	for t := range first {
		if second[t] {
			common++
		}
	}
	return common > 0 && len(first) == common+1 && len(second) == common+1
}
