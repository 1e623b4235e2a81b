package trace

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/structure"
)

// folder makes a Path of records. It folds what may repeat: the passes of a loop
// that went the same way count as one, and what ran in parallel is put in the order
// of the program's text. So a path does not depend on how many items there were
// or on which answer came first.
type folder struct {
	nodes   map[string]structure.Node
	region  map[string]string // node → innermost loop or fork around it
	branch  map[string]int    // node → branch of that fork
	regions []RegionRun
	room    int // bytes that the texts of variants may still take
	exact   bool
}

// frame is one execution of the program, a function, a pass or a callback.
type frame struct {
	pass   string // the loop or fork that it is one pass of
	fork   string // the fork whose branch it runs in
	branch int
	// entered are the regions that the frame runs inside: what lies in one of them
	// is the frame's own. Frames that enter nothing new share their parent's.
	entered map[string]bool
	items   []any // Record or *frame, in time order
}

func newFrame(parent *frame, r Record) *frame {
	fr := &frame{fork: r.Region, branch: r.Branch, entered: parent.entered}
	if r.Type == Iteration {
		fr.pass = r.ID
	}
	for _, region := range []string{fr.pass, fr.fork} {
		if region != "" && !fr.entered[region] {
			fr.entered = maps.Clone(fr.entered)
			fr.entered[region] = true
		}
	}
	return fr
}

// step is one id of a path, with the outcome where it is a decision.
type step struct{ id, outcome string }

func (s step) String() string {
	if s.outcome == "" {
		return s.id
	}
	return s.id + ":" + s.outcome
}

func newFolder(s structure.Structure) *folder {
	f := &folder{nodes: make(map[string]structure.Node, len(s.Nodes)), region: map[string]string{}, branch: map[string]int{}, room: variantBytes, exact: true}
	for _, n := range s.Nodes {
		f.nodes[n.ID] = n
	}
	for _, e := range s.Edges {
		if e.Type != structure.Contains {
			continue
		}
		f.region[e.To] = e.From
		if e.Branch != nil {
			f.branch[e.To] = *e.Branch
		}
	}
	return f
}

// frames rebuilds the tree of frames; what a capability did inside is not in it.
func (f *folder) frames(records []Record) *frame {
	root := &frame{entered: map[string]bool{}}
	byNumber := map[int]*frame{0: root}
	foreign := map[int]bool{}
	for _, r := range records {
		if !r.opens() {
			if at := byNumber[r.Frame]; at != nil {
				at.items = append(at.items, r)
			} else if !foreign[r.Frame] {
				f.exact = false // its frame was lost with the records that did not fit
			}
			continue
		}
		parent := byNumber[r.Parent]
		if r.Capability != "" || foreign[r.Parent] || parent == nil || byNumber[r.Frame] != nil {
			foreign[r.Frame] = true
			f.exact = f.exact && (r.Capability != "" || foreign[r.Parent])
			continue
		}
		child := newFrame(parent, r)
		byNumber[r.Frame] = child
		parent.items = append(parent.items, child)
	}
	return root
}

// group gathers what a frame has recorded of one loop or fork.
type group struct {
	id       string
	fork     bool
	passes   [][]any       // each with what went before it in the loop's head
	prefix   []any         // the head's records of the pass to come
	branches map[int][]any // of a fork
}

// walk folds one frame.
type walk struct {
	*folder

	fr     *frame
	out    []any // step, []step or *group
	groups map[string]*group
}

// fold returns the canonical path of a frame.
func (f *folder) fold(fr *frame) []step {
	w := &walk{folder: f, fr: fr, groups: map[string]*group{}}
	for _, item := range fr.items {
		switch item := item.(type) {
		case *frame:
			w.child(item)
		case Record:
			w.event(item)
		}
	}
	return shorten(w.expand(w.out))
}

// maxSteps bounds the path of one frame while it is folded: in a deep recursion
// every frame's path holds those of all frames below.
const maxSteps = 600

// shorten puts a digest in the place of a path's end. It stands so far behind that
// no kept part of any path has it, and it keeps different paths different.
func shorten(path []step) []step {
	if len(path) <= maxSteps {
		return path
	}
	return append(path[:maxSteps:maxSteps], step{id: "…", outcome: hashOf(path[maxSteps:])})
}

// child takes in a frame that was opened in this one.
func (w *walk) child(fr *frame) {
	path := w.fold(fr)
	switch {
	case fr.pass != "":
		w.pass(w.group(fr.pass), path)
	case fr.fork != "":
		w.place(fr.fork, fr.branch, path)
	default:
		w.out = append(w.out, path)
	}
}

// pass closes one pass of g. What stood in the head belongs to it, and the head's
// own loops and forks are opened anew in the next.
func (w *walk) pass(g *group, path []step) {
	g.passes = append(g.passes, append(g.prefix, path))
	g.prefix = nil
	if !g.fork {
		maps.DeleteFunc(w.groups, func(id string, _ *group) bool { return w.inside(id, g.id) })
	}
}

// inside reports whether node id lies in region r, at any depth.
func (f *folder) inside(id, r string) bool {
	for range f.region { // at most so many steps, even if the edges formed a circle
		id = f.region[id]
		if id == "" || id == r {
			break
		}
	}
	return id == r
}

func (w *walk) event(r Record) {
	switch r.Type {
	case LoopEntered, ForkOpened:
		w.group(r.ID)
	case ForkJoined:
		fork := "f" + strings.TrimPrefix(r.ID, "j")
		w.group(fork)
		w.place(w.region[fork], w.branch[fork], step{id: r.ID})
	case CallEvent, DecisionSet:
		if strings.HasPrefix(r.ID, unknownPlace) {
			w.exact = false
		}
		s, region := step{r.ID, r.Outcome}, w.region[r.ID]
		if w.nodes[r.ID].Ref && region != "" && !w.fr.entered[region] {
			// A tool that is itself the callback: each call is a pass without a frame.
			w.pass(w.group(region), []step{s})
			return
		}
		w.place(region, w.branch[r.ID], s)
	case FrameOpened, Iteration, FrameEnded: // are frames, not events
	}
}

// group returns the group of a loop or fork, opened at the present place.
func (w *walk) group(id string) *group {
	if g := w.groups[id]; g != nil {
		return g
	}
	g := &group{id: id, fork: w.nodes[id].Type == structure.Fork, branches: map[int][]any{}}
	w.groups[id] = g
	w.place(w.region[id], w.branch[id], g)
	return g
}

// place puts something where its innermost region says: into a group of this frame
// if it is recorded outside of the region's own frames, as the parts of an array
// given to Promise.all and the head of a loop are.
func (w *walk) place(region string, branch int, item any) {
	if region == "" || w.fr.entered[region] {
		w.out = append(w.out, item)
		return
	}
	g := w.group(region)
	if g.fork {
		g.branches[branch] = append(g.branches[branch], item)
		return
	}
	g.prefix = append(g.prefix, item)
}

func (w *walk) expand(items []any) []step {
	var path []step
	for _, item := range items {
		switch item := item.(type) {
		case step:
			path = append(path, item)
		case []step:
			path = append(path, item...)
		case *group:
			path = append(path, w.expandGroup(item)...)
		}
	}
	return path
}

// variant is a way that one or more passes went.
type variant struct {
	text  string
	path  []step
	count int
}

// expandGroup writes a group: its id, a fork's branches, then each distinct pass
// once. The passes of a fork ran at the same time, so their order is that of their
// texts; those of a loop stand as they first came.
func (w *walk) expandGroup(g *group) []step {
	path := []step{{id: g.id}}
	for _, b := range slices.Sorted(maps.Keys(g.branches)) {
		path = append(path, w.expand(g.branches[b])...)
	}
	var variants []*variant
	byText := map[string]*variant{}
	add := func(items []any) {
		steps := w.expand(items)
		text := textOf(steps)
		v := byText[text]
		if v == nil {
			v = &variant{text: text, path: steps}
			byText[text] = v
			variants = append(variants, v)
		}
		v.count++
	}
	for _, items := range g.passes {
		add(items)
	}
	if len(g.prefix) > 0 && !g.fork {
		add(g.prefix) // the test that ended the loop
	}
	if g.fork {
		slices.SortStableFunc(variants, func(a, b *variant) int { return cmp.Compare(a.text, b.text) })
	}
	for _, v := range variants {
		path = append(path, v.path...)
	}
	w.note(g, variants)
	return path
}

// note keeps how often the loop or fork went which way, as far as there is room.
func (w *walk) note(g *group, variants []*variant) {
	if g.fork && len(g.passes) == 0 || len(w.regions) == mostRegions {
		return
	}
	run := RegionRun{ID: g.id, Iterations: len(g.passes)}
	for _, v := range variants {
		if w.room < len(v.text) || len(run.Variants) == mostVariants {
			break
		}
		w.room -= len(v.text)
		run.Variants = append(run.Variants, Variant{Path: v.text, Count: v.count})
	}
	w.regions = append(w.regions, run)
}

func textOf(path []step) string {
	words := make([]string, len(path))
	for i, s := range path {
		words[i] = s.String()
	}
	return strings.Join(words, " ")
}
