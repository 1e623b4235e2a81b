package analysis

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/pml-run/pml/internal/structure"
)

// test says how a decision looks at its value.
type test byte

const (
	truthy  test = iota // if, ?:, && and ||
	nullish             // ??
	assigns             // &&=, ||= and ??=
	cases               // switch
)

// rank orders vertices at the same place.
type rank byte

const (
	rankCall rank = iota + 1
	rankTest
	rankFork
	rankJoin
)

// vertex is a node of the static structure while it is being made.
type vertex struct {
	structure.Node
	syntax  node
	offset  uint32 // with rank: its place in the order
	rank    rank
	order   int // its position in the structure
	test    test
	awaited bool
	dynamic bool
	base    node // the identifier that a call's reference starts with

	region *vertex // the innermost loop or fork around it
	branch int     // of a fork, -1 otherwise
	fork   *vertex // of a join
	source node    // the array or map call that opens a late fork, none otherwise

	point point // in the control flow, none before it was reached
}

func (v *vertex) is(t structure.NodeType) bool { return v != nil && v.Type == t }

// calls reports whether v calls, or hands on, a tool or capability.
func (v *vertex) calls() bool { return v.is(structure.Task) || v.is(structure.Capability) }

func (a *analysis) newVertex(t structure.NodeType, n node, offset uint32, r rank) *vertex {
	v := &vertex{Node: structure.Node{Type: t}, syntax: n, offset: offset, rank: r, branch: -1, base: none, source: none, point: noPoint}
	a.vertices = append(a.vertices, v)
	return v
}

var prefixes = map[structure.NodeType]string{
	structure.Task: "n", structure.Decision: "d", structure.Capability: "c",
	structure.Fork: "f", structure.Join: "j", structure.Loop: "l",
}

// number sorts the vertices by their place and gives them their ids.
func (a *analysis) number() {
	slices.SortStableFunc(a.vertices, func(x, y *vertex) int {
		return cmp.Or(cmp.Compare(x.offset, y.offset), cmp.Compare(x.rank, y.rank))
	})
	count := map[string]int{}
	for i, v := range a.vertices {
		v.order = i
		if v.Type != structure.Join {
			v.ID = a.nodeID(v, count)
		}
	}
	for _, v := range a.vertices {
		if v.fork != nil {
			v.ID = joinID(v.fork.ID)
		}
		a.byID[v.ID] = v
	}
	for _, v := range a.vertices {
		v.region, v.branch = a.regionOf(v.syntax, v)
	}
}

// nodeID makes the next id of v's kind. In a DAG the call of a task has the task's id,
// and what is inside a task an id below that; what joins the tasks leaves out their ids.
func (a *analysis) nodeID(v *vertex, count map[string]int) string {
	prefix := prefixes[v.Type]
	t, own := a.options.taskAt(a.at[v.syntax])
	switch {
	case own && v.calls():
		return t.id
	case t != nil:
		prefix = t.id + "." + prefix
	}
	for {
		count[prefix]++
		id := prefix + strconv.Itoa(count[prefix])
		if t != nil || !a.options.isTask(id) && !a.options.isTask(joinID(id)) {
			return id
		}
	}
}

// joinID is the id of the join of a fork.
func joinID(fork string) string {
	i := strings.LastIndexByte(fork, '.') + 1
	return fork[:i] + prefixes[structure.Join] + fork[i+1:]
}

// regionOf is the innermost loop or fork that n lies in, and the branch of a fork;
// v is n's own vertex, nil if it has none.
func (a *analysis) regionOf(n node, v *vertex) (*vertex, int) {
	if a.limit.over() {
		return nil, -1
	}
	for c, p := n, a.parent(n); p >= 0; c, p = p, a.parent(p) {
		if r, branch := a.regionAt(c, p, v); r != nil {
			return r, branch
		}
	}
	return nil, -1
}

// regionAt is the region that begins between p and its child c.
func (a *analysis) regionAt(c, p node, v *vertex) (*vertex, int) {
	own := func(r *vertex) bool { return r == nil || r == v || v != nil && v.fork == r }
	if l := a.loops[p]; !own(l) && !a.isHead(c, p) {
		return l, -1
	}
	if f := a.functions[c]; f != nil && !own(f.pass) {
		if f.pass.Type == structure.Fork {
			return f.pass, 0
		}
		return f.pass, -1
	}
	ref := v != nil && v.Ref
	inArguments := a.kind(c) == "arguments"
	if l := a.callbackLoops[p]; ref && inArguments && !own(l) {
		return l, -1
	}
	if m := a.members[c]; m != nil && !own(m.fork) {
		return m.fork, m.branch
	}
	if a.kind(p) == "array" {
		if f := a.forkOf(p); !own(f) {
			return f, slices.Index(a.children(p), c)
		}
	}
	if !ref {
		return nil, -1
	}
	if f := a.forks[p]; inArguments && !own(f) {
		return f, 0
	}
	if a.kind(p) == "arguments" {
		if f := a.forkOf(a.parent(p)); f != nil {
			return f, 0
		}
	}
	return nil, -1
}

// isHead reports whether c is the part of loop p that is evaluated before it.
func (a *analysis) isHead(c, p node) bool {
	switch a.kind(p) {
	case "for_in_statement":
		return c == a.field(p, "right")
	case "for_statement":
		return c == a.field(p, "initializer")
	}
	return false
}

// forkOf is the fork whose array or map call n is.
func (a *analysis) forkOf(n node) *vertex {
	if f := a.late[n]; f != nil {
		return f
	}
	if p := a.parent(n); p >= 0 && a.kind(p) == "arguments" {
		return a.forks[a.parent(p)]
	}
	return nil
}
