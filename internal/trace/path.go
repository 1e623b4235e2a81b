package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pml-run/pml/internal/structure"
)

const (
	// maxPath is how many ids of a path are kept. Its hash is that of the whole.
	maxPath = 500
	// A loop over very different items has as many variants as items, and a recursion
	// enters a loop very often: this many are kept.
	mostVariants = 50
	mostRegions  = 200
	variantBytes = 64 << 10
)

// Path is the way that a run took through its program.
type Path struct {
	// IDs are the nodes, at most 500.
	IDs []string
	// Decisions are those on the kept part of the path, in its order.
	Decisions []Decision
	// Regions are the loops and forks entered, inner ones first.
	Regions []RegionRun
	// Hash names the whole path with its outcomes: 32 hexadecimal digits.
	Hash string
	// Exact is false when some of the calls are not known by their node.
	Exact bool
}

// RegionRun says what one entry of a loop or one fork did.
type RegionRun struct {
	ID         string    `json:"id"`
	Iterations int       `json:"iterations"`
	Variants   []Variant `json:"variants,omitempty"`
}

// Variant is a way through a loop's body and how many passes took it. The pass
// that only tested a loop's condition counts here, not as an iteration.
type Variant struct {
	Path  string `json:"path"` // ids, decisions with their outcome: "n2 d1:true"
	Count int    `json:"count"`
}

// Fold makes the path of a run from its records, which are those of one program:
// Split takes the records of capabilities out, and Fold passes over those that it
// finds. A path that ends early (the run failed) ends where the run did.
func Fold(s structure.Structure, records []Record) Path {
	f := newFolder(s)
	steps := f.fold(f.frames(records))
	p := f.path(steps)
	p.Regions, p.Exact = f.regions, f.exact
	return p
}

// FoldCalls makes the path of a run that was not instrumented: the names of the
// tools in the order in which they were called.
func FoldCalls(calls []Call) Path {
	steps := make([]step, len(calls))
	for i, c := range calls {
		steps[i] = step{id: unknownPlace + string(c.Tool)}
	}
	return new(folder).path(steps)
}

func (f *folder) path(steps []step) Path {
	p := Path{IDs: []string{}, Decisions: []Decision{}, Hash: hashOf(steps)}
	for _, s := range steps[:min(len(steps), maxPath)] {
		p.IDs = append(p.IDs, s.id)
		if s.outcome != "" {
			p.Decisions = append(p.Decisions, Decision{NodeID: s.id, Condition: f.nodes[s.id].Condition, Outcome: s.outcome})
		}
	}
	return p
}

// hashOf is equal for equal paths, also beyond what is kept of them. Each outcome
// comes with its length: the label of a case may hold anything.
func hashOf(steps []step) string {
	h := sha256.New()
	for _, s := range steps {
		fmt.Fprintf(h, "%s %d:%s\n", s.id, len(s.outcome), s.outcome)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Put writes the path into a trace.
func (p Path) Put(t *Trace) {
	t.ExecutedPath, t.Decisions, t.PathHash, t.Exact = p.IDs, p.Decisions, p.Hash, p.Exact
	t.Loops = nil
	if len(p.Regions) > 0 {
		t.Loops, _ = json.Marshal(p.Regions) // strings and numbers: always encodes
	}
}

// Place says where in the program a call was made.
type Place struct {
	Seq        int    // of the call's record
	NodeID     string // "?server:tool" when no node is known
	Occurrence int    // one-based, per node
	// ParentNode is the innermost loop or fork that the call was made in, also
	// when a helper made it; empty at the program's top.
	ParentNode string
	// Iteration counts the passes of ParentNode from zero; nil when the call was
	// not made in a pass (a branch of a fork, the head of a loop).
	Iteration *int
}

// Places finds the places of the calls among the records, in their order. Like
// Fold it passes over what capabilities did inside.
func Places(s structure.Structure, records []Record) []Place {
	f := newFolder(s)
	opened := map[int]Record{0: {}}
	counts := map[string]int{}
	var out []Place
	for _, r := range records {
		if r.opens() {
			_, known := opened[r.Parent]
			_, twice := opened[r.Frame]
			if known && !twice && r.Capability == "" {
				opened[r.Frame] = r
			}
			continue
		}
		if _, known := opened[r.Frame]; !known || r.Type != CallEvent {
			continue
		}
		counts[r.ID]++
		p := Place{Seq: r.Seq, NodeID: r.ID, Occurrence: counts[r.ID]}
		p.ParentNode, p.Iteration = f.around(opened, r)
		out = append(out, p)
	}
	return out
}

// around finds the region that a call was made in: that of its node when the call
// stands in one that no frame has entered, else that of the nearest frame.
func (f *folder) around(opened map[int]Record, r Record) (string, *int) {
	static := f.region[r.ID]
	var nearest string
	var pass *int
	var entered []string
	for n := r.Frame; n != 0; n = opened[n].Parent {
		o := opened[n]
		region := o.Region
		if o.Type == Iteration {
			region = o.ID
		}
		if region == "" {
			continue
		}
		entered = append(entered, region)
		if nearest == "" {
			nearest = region
			if o.Type == Iteration {
				pass = &o.Index
			}
		}
	}
	if static != "" && !slices.Contains(entered, static) {
		return static, nil
	}
	return nearest, pass
}
