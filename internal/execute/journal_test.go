package execute

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/trace"
)

// noted is a call that ended at a millisecond; a negative one has no end.
func noted(node string, end int) trace.Call {
	start := time.UnixMilli(1_000_000)
	c := trace.Call{NodeID: node, Occurrence: 1, Tool: "fs:write", ArgsHash: "h", Status: trace.CallOK, StartedAt: start, Duration: time.Duration(end) * time.Millisecond}
	if end < 0 {
		c.Status, c.Duration = trace.CallStarted, 0
	}
	return c
}

func TestTheJournalFindsCalls(t *testing.T) {
	t.Parallel()
	yes := true
	j := newJournal(map[int][]trace.Call{0: {noted("n1", 5), noted("n2", -1)}, 3: {noted("n1", 7)}})
	write, read := tool.Tool{ID: "fs:write"}, tool.Tool{ID: "fs:write", Annotations: tool.Annotations{ReadOnly: &yes}}
	asked := func(hash string) trace.Call { return trace.Call{Tool: "fs:write", ArgsHash: hash} }
	for name, c := range map[string]struct {
		at     place
		hash   string
		target tool.Tool
		ended  bool
		fails  string
	}{
		"ended":                   {place{0, "n1", 1}, "h", write, true, ""},
		"of a capability":         {place{3, "n1", 1}, "h", write, true, ""},
		"another time":            {place{0, "n1", 2}, "h", write, false, ""},
		"never made":              {place{0, "n3", 1}, "h", write, false, ""},
		"other arguments":         {place{0, "n1", 1}, "x", write, false, "other arguments"},
		"sent, outcome unknown":   {place{0, "n2", 1}, "h", write, false, "not known"},
		"sent, may be made again": {place{0, "n2", 1}, "h", read, false, ""},
	} {
		_, ended, err := j.find(c.at, asked(c.hash), c.target)
		if ended != c.ended || (err == nil) != (c.fails == "") || err != nil && (fault.CodeOf(err) != fault.InterruptedCall || !strings.Contains(err.Error(), c.fails)) {
			t.Errorf("%s: ended %t, %v", name, ended, err)
		}
	}
}

// TestRepliesComeInTheirOrder: whoever asks first, the replies of the journal come as
// they came before, and a new call's after all of them.
func TestRepliesComeInTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(map[int][]trace.Call{0: {noted("n1", 30), noted("n2", 10)}, 2: {noted("n1", 20)}})
		var mu sync.Mutex
		var order []string
		ask := func(at place, name string) func() {
			return func() {
				if err := j.await(t.Context(), at); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				if _, known := j.rank[at]; known {
					j.seal()
				}
			}
		}
		var wg sync.WaitGroup
		for _, f := range []func(){ask(place{0, "new", 1}, "new"), ask(place{0, "n1", 1}, "third"), ask(place{2, "n1", 1}, "second"), ask(place{0, "n2", 1}, "first")} {
			wg.Go(f)
			synctest.Wait()
		}
		wg.Wait()
		if want := []string{"first", "second", "third", "new"}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
	})
}

// TestAnotherWayThanBeforeEnds: a reply that waits for a call which never comes does
// not wait for ever.
func TestAnotherWayThanBeforeEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(map[int][]trace.Call{0: {noted("n1", 10), noted("n2", 20)}})
		if err := j.await(t.Context(), place{0, "n2", 1}); fault.CodeOf(err) != fault.InterruptedCall {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errSuspended)
		if err := j.await(ctx, place{0, "n2", 1}); err != errSuspended { //nolint:errorlint // the cause itself
			t.Errorf("got %v", err)
		}
		if err := (*journal)(nil).await(ctx, place{}); err != nil {
			t.Errorf("a first attempt waits: %v", err)
		}
	})
}
