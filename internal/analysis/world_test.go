package analysis

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/pml-run/pml/internal/sandbox"
	"github.com/pml-run/pml/internal/tool"
)

// world answers calls as its seed says: with values that make programs go many
// ways, with failures, and after delays. The answer to a call depends on what is
// called and on how often it was called so before, not on when it comes.
type world struct {
	seed uint64

	mu     sync.Mutex
	made   map[string]int
	calls  []sandbox.Call
	now    int // calls being answered
	atOnce int // the most of them
}

func newWorld(seed uint64) *world { return &world{seed: seed, made: map[string]int{}} }

// Progress does nothing.
func (w *world) Progress(float64, float64, string) {}

// Log does nothing.
func (w *world) Log(string) {}

// Call answers one call.
func (w *world) Call(ctx context.Context, c sandbox.Call) (sandbox.Reply, error) {
	call := fmt.Sprint(c.Server, c.Tool, string(c.Args))
	w.mu.Lock()
	key := fmt.Sprint(call, w.made[call], w.seed)
	w.made[call]++
	w.calls = append(w.calls, c)
	w.now++
	w.atOnce = max(w.atOnce, w.now)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.now--
		w.mu.Unlock()
	}()
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // a hash takes everything
	r := rand.New(rand.NewPCG(h.Sum64(), w.seed))
	delay := time.NewTimer(time.Duration(r.IntN(4)) * time.Millisecond)
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-ctx.Done():
		return sandbox.Reply{}, ctx.Err()
	}
	if r.IntN(12) == 0 {
		return sandbox.Reply{}, &tool.CallError{Server: c.Server, Tool: c.Tool, Code: "busy", Message: "the tool is busy"}
	}
	value, err := json.Marshal(answer(r, 2))
	return sandbox.Reply{Value: value}, err
}

// answer is an object with the properties that the programs look at.
func answer(r *rand.Rand, depth int) map[string]any {
	pick := func(of ...any) any { return of[r.IntN(len(of))] }
	n := r.IntN(100)
	out := map[string]any{
		"id": pick(n, n%7), "num": n, "size": n * 3, "total": n, "hits": r.IntN(5), "n": n % 5, "exists": r.IntN(2) == 0,
		"ok": r.IntN(3) > 0, "flag": r.IntN(2) == 0, "dir": r.IntN(3) == 0, "content": pick("abc", fmt.Sprint("text ", n), fmt.Sprint("text ", n)), "body": fmt.Sprint("body ", n),
		"text": fmt.Sprint("t", n), "title": fmt.Sprint("title ", n), "label": pick("bug", "feature", "enhancement", "other"),
		"name": pick("", "ann", fmt.Sprint("file", n)), "kind": pick("job", "stop"), "status": pick("open", "closed", "rejected", 200, 500),
		"value": pick(nil, n, "v", true, false), "next": pick(nil, nil, fmt.Sprint("c", n)), "mode": pick("db", "memory"),
		"url": fmt.Sprint("https://", n), "lastOrder": n, "type": pick("a", "b", "c"), "path": fmt.Sprint("/p/", n), "error": pick(nil, "bad"),
	}
	if depth == 0 {
		return out
	}
	var list []any
	for range r.IntN(4) {
		list = append(list, answer(r, depth-1))
	}
	for _, k := range []string{"items", "files", "rows", "repos", "results", "messages", "issues", "list", "entries", "data"} {
		out[k] = slices.Clip(list)
		if list == nil {
			out[k] = []any{}
		}
	}
	return out
}

// sequence lists the calls in the order in which the program made them.
func (w *world) sequence() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortFunc(w.calls, func(x, y sandbox.Call) int { return cmp.Compare(x.ID, y.ID) })
	var out []string
	for _, c := range w.calls {
		out = append(out, c.Server+":"+c.Tool+" "+string(c.Args))
	}
	return out
}
