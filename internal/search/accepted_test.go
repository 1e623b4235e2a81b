package search

import (
	"fmt"
	"testing"
	"time"
)

func TestSuggestionsAreTakenUpOnce(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var g given
	g.note([]Suggestion{{ID: "fs:read"}, {ID: "fs:write"}}, now)
	g.note([]Suggestion{{ID: "fs:read"}}, now.Add(time.Minute))
	if n := g.take([]string{"fs:read", "git:log"}, now.Add(2*time.Minute)); n != 1 {
		t.Errorf("%d taken up, want 1", n)
	}
	if n := g.take([]string{"fs:read"}, now.Add(3*time.Minute)); n != 0 {
		t.Errorf("%d taken up again", n)
	}
	if n := g.take([]string{"fs:write"}, now.Add(2*time.Hour)); n != 0 {
		t.Errorf("%d taken up too late", n)
	}
	for i := range 3 * mostGiven {
		g.note([]Suggestion{{ID: fmt.Sprint(i)}}, now)
	}
	if len(g.at) > mostGiven || len(g.old) > mostGiven {
		t.Errorf("%d are remembered", len(g.at))
	}
}
