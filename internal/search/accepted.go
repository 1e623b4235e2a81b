package search

import (
	"sync"
	"time"
)

const (
	// acceptedWithin is how long after it was given a suggestion may be taken up.
	acceptedWithin = time.Hour
	// mostGiven bounds the suggestions that are remembered; the oldest go.
	mostGiven = 1000
)

// given are the suggestions of the last hour that nobody has taken up yet, by what
// they suggest.
type given struct {
	mu  sync.Mutex
	at  map[string]time.Time
	old []string // in the order in which they were first given
}

// note remembers suggestions.
func (g *given) note(list []Suggestion, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.at == nil {
		g.at = map[string]time.Time{}
	}
	for _, s := range list {
		if _, known := g.at[s.ID]; !known {
			g.old = append(g.old, s.ID)
		}
		g.at[s.ID] = now
	}
	for len(g.old) > mostGiven {
		delete(g.at, g.old[0])
		g.old = g.old[1:]
	}
}

// take counts which of the ids were suggested, and forgets them.
func (g *given) take(ids []string, now time.Time) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, id := range ids {
		if at, ok := g.at[id]; ok && now.Sub(at) < acceptedWithin {
			n++
		}
		delete(g.at, id)
	}
	return n
}

// Used notes that a successful run has used tools and capabilities, by their ids: a
// suggestion of one of them was taken up.
func (f *Finder) Used(ids []string) {
	f.metrics.accepted.Add(float64(f.given.take(ids, time.Now())))
}
