package graph

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func build(t testing.TB, edges []Edge, nodes ...string) *Graph {
	t.Helper()
	g, err := Build(edges, nodes...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestBuild(t *testing.T) {
	t.Parallel()
	g := build(t, []Edge{{"b", "a", 1}, {"a", "c", 0.25}, {"a", "c", 0.5}, {"a", "a", 9}, {"c", "d", 0}, {"a", "b", 0.75}}, "lonely", "a")
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "lonely"}, g.IDs()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Scored{{"b", 0.75}, {"c", 0.75}}, g.Out("a")); diff != "" {
		t.Error(diff)
	}
	for _, none := range []string{"c", "lonely", "nobody"} {
		if out := g.Out(none); len(out) != 0 {
			t.Errorf("%s: %v", none, out)
		}
	}
	if diff := cmp.Diff([]float64{2.5, 1.75, 0.75, 0, 0}, g.both.strength); diff != "" {
		t.Error(diff)
	}
}

func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	for _, w := range []float64{-1, math.NaN(), math.Inf(1), math.Inf(-1), 1e101} {
		if _, err := Build([]Edge{{"a", "b", 1}, {"x", "y", w}}); err == nil {
			t.Errorf("the weight %v was taken", w)
		}
		if _, err := Spectral([]Link{{"x", "y", w}}, SpectralOptions{}); err == nil {
			t.Errorf("the count %v was taken", w)
		}
	}
}

func TestSmallGraphs(t *testing.T) {
	t.Parallel()
	var none *Graph
	for name, g := range map[string]*Graph{"nil": none, "empty": build(t, nil)} {
		if g.Len() != 0 || g.IDs() != nil && len(g.IDs()) != 0 || g.Out("a") != nil || g.AdamicAdar("a") != nil {
			t.Errorf("%s: has nodes", name)
		}
		if _, ok := g.ShortestPath("a", "b", math.Inf(1)); ok {
			t.Errorf("%s: has a path", name)
		}
		if name == "nil" {
			continue
		}
		if len(g.PageRank(PageRankOptions{})) != 0 || g.Louvain(LouvainOptions{}).Count != 0 {
			t.Errorf("%s: has ranks", name)
		}
	}
	one := build(t, []Edge{{"a", "a", 1}})
	if diff := cmp.Diff([]float64{1}, one.PageRank(PageRankOptions{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Communities{Of: []int{0}, Count: 1}, one.Louvain(LouvainOptions{})); diff != "" {
		t.Error(diff)
	}
	if p, ok := one.ShortestPath("a", "a", 0); !ok || p.Cost != 0 || len(p.IDs) != 1 {
		t.Error(p)
	}
	c, err := Spectral(nil, SpectralOptions{})
	if err != nil || c.Count != 0 {
		t.Error(c, err)
	}
	c, err = Spectral([]Link{{"cap", "tool", 3}}, SpectralOptions{Clusters: 5})
	if err != nil || c.Count != 1 || c.Rows["cap"] != 0 || c.Columns["tool"] != 0 {
		t.Error(c, err)
	}
}

func TestShortestPath(t *testing.T) {
	t.Parallel()
	g := build(t, []Edge{
		{"a", "z", 0.5}, {"a", "m", 1}, {"m", "z", 1}, // both cost 2: fewer edges win
		{"z", "q", 1}, {"z", "p", 1}, {"p", "end", 1}, {"q", "end", 1}, // equal but for the names
		{"end", "a", 0.1},
	}, "island")
	for _, tc := range []struct {
		from, to string
		limit    float64
		want     Path
		ok       bool
	}{
		{"a", "z", math.Inf(1), Path{[]string{"a", "z"}, 2}, true},
		{"a", "end", math.Inf(1), Path{[]string{"a", "z", "p", "end"}, 4}, true},
		{"m", "a", math.Inf(1), Path{[]string{"m", "z", "p", "end", "a"}, 13}, true},
		{"a", "end", 4, Path{[]string{"a", "z", "p", "end"}, 4}, true},
		{"a", "end", 3.9, Path{}, false},
		{"a", "island", math.Inf(1), Path{}, false},
		{"a", "nowhere", math.Inf(1), Path{}, false},
		{"nowhere", "a", math.Inf(1), Path{}, false},
	} {
		if got, ok := g.ShortestPath(tc.from, tc.to, tc.limit); ok != tc.ok || !cmp.Equal(tc.want, got) {
			t.Errorf("%s to %s: %v, %v", tc.from, tc.to, got, ok)
		}
	}
}

func TestAdamicAdar(t *testing.T) {
	t.Parallel()
	g := build(t, []Edge{{"x", "hub", 1}, {"hub", "y", 1}, {"hub", "a", 1}, {"hub", "b", 1}, {"z", "x", 1}, {"y", "z", 2}})
	hub, rare := 2/math.Log(5), 3/math.Log(4)
	want := []Scored{{"y", hub + rare}, {"a", hub}, {"b", hub}}
	if diff := cmp.Diff(want, g.AdamicAdar("x")); diff != "" {
		t.Error(diff)
	}
}

// TestLouvainFindsCliques: four cliques in a ring, and a node by itself.
func TestLouvainFindsCliques(t *testing.T) {
	t.Parallel()
	var edges []Edge
	name := func(c, i int) string { return strconv.Itoa(c) + "-" + strconv.Itoa(i) }
	for c := range 4 {
		for i := range 5 {
			for j := range i {
				edges = append(edges, Edge{name(c, i), name(c, j), 1})
			}
		}
		edges = append(edges, Edge{name(c, 0), name((c+1)%4, 1), 0.5})
	}
	g := build(t, edges, "9")
	got := g.Louvain(LouvainOptions{})
	for i, id := range g.IDs() {
		if want := int(id[0] - '0'); got.Of[i] != min(want, 4) {
			t.Errorf("%s is in %d", id, got.Of[i])
		}
	}
	if got.Count != 5 {
		t.Errorf("%d communities", got.Count)
	}
	if fine := g.Louvain(LouvainOptions{Resolution: 20}); fine.Count <= got.Count {
		t.Errorf("a higher resolution found %d communities", fine.Count)
	}
}

// TestSpectralFindsBlocks: three groups of capabilities with tools of their own, and
// a few links across.
func TestSpectralFindsBlocks(t *testing.T) {
	t.Parallel()
	var links []Link
	for group := range 3 {
		for i := range 6 {
			for j := range 5 {
				if (i+j)%3 != 0 {
					links = append(links, Link{name("cap", group, i), name("tool", group, j), float64(1 + i*j)})
				}
			}
		}
		links = append(links, Link{name("cap", group, 0), name("tool", (group+1)%3, 1), 1})
	}
	for label, o := range map[string]SpectralOptions{"by the gap": {}, "given": {Clusters: 3}, "by logarithms": {LogCounts: true}} {
		c, err := Spectral(links, o)
		if err != nil || c.Count != 3 {
			t.Fatalf("%s: %d clusters, %v, %v", label, c.Count, c.Values, err)
		}
		for side, of := range map[string]map[string]int{"cap": c.Rows, "tool": c.Columns} {
			for id, cluster := range of {
				if want := int(id[len(side)] - '0'); cluster != want {
					t.Errorf("%s: %s is in %d", label, id, cluster)
				}
			}
		}
	}
}

func name(kind string, group, i int) string {
	return kind + strconv.Itoa(group) + "-" + strconv.Itoa(i)
}

// results are all that can be asked of a graph.
type results struct {
	IDs       []string
	Rank      []float64
	Groups    Communities
	Alike     map[string][]Scored
	Out       map[string][]Scored
	Ways      map[string]Path
	Clusters  Clusters
	LogCounts Clusters
}

func resultsOf(t interface{ Fatal(args ...any) }, edges []Edge) results {
	g, err := Build(edges)
	if err != nil {
		t.Fatal(err)
	}
	r := results{
		IDs: g.IDs(), Rank: g.PageRank(PageRankOptions{}), Groups: g.Louvain(LouvainOptions{}),
		Alike: map[string][]Scored{}, Out: map[string][]Scored{}, Ways: map[string]Path{},
	}
	var links []Link
	for _, e := range edges {
		links = append(links, Link{e.From, e.To, e.Weight})
	}
	if r.Clusters, err = Spectral(links, SpectralOptions{}); err != nil {
		t.Fatal(err)
	}
	if r.LogCounts, err = Spectral(links, SpectralOptions{LogCounts: true, Clusters: 3}); err != nil {
		t.Fatal(err)
	}
	for _, a := range r.IDs {
		r.Alike[a], r.Out[a] = g.AdamicAdar(a), g.Out(a)
		for _, b := range r.IDs {
			if p, ok := g.ShortestPath(a, b, math.Inf(1)); ok {
				r.Ways[a+" "+b] = p
			}
		}
	}
	return r
}

// TestOrderDoesNotMatter: the same edges in another order give exactly the same.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	id := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"})
	edge := rapid.Custom(func(t *rapid.T) Edge {
		return Edge{id.Draw(t, "from"), id.Draw(t, "to"), rapid.SampledFrom([]float64{0, 0.1, 0.35, 0.5, 0.7, 1, 3}).Draw(t, "weight")}
	})
	rapid.Check(t, func(t *rapid.T) {
		edges := rapid.SliceOfN(edge, 0, 60).Draw(t, "edges")
		shuffled := rapid.Permutation(edges).Draw(t, "shuffled")
		if diff := cmp.Diff(resultsOf(t, edges), resultsOf(t, shuffled)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestExtremeWeights: no weight that is taken makes a result that is no number.
func TestExtremeWeights(t *testing.T) {
	t.Parallel()
	id := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	weight := rapid.SampledFrom([]float64{5e-324, 1e-300, 1e-100, 1e-20, 1, 1e20, 1e100})
	rapid.Check(t, func(t *rapid.T) {
		var edges []Edge
		for range rapid.IntRange(1, 12).Draw(t, "edges") {
			edges = append(edges, Edge{id.Draw(t, "from"), id.Draw(t, "to"), weight.Draw(t, "weight")})
		}
		r := resultsOf(t, edges)
		numbers := slices.Concat(r.Rank, []float64{r.Groups.Modularity}, r.Clusters.Values, r.LogCounts.Values)
		for _, list := range r.Alike {
			for _, s := range list {
				numbers = append(numbers, s.Score)
			}
		}
		for _, p := range r.Ways {
			numbers = append(numbers, p.Cost)
		}
		for _, x := range numbers {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Fatalf("%+v", r)
			}
		}
	})
}

// random makes a graph of communities of about 50 nodes with some edges across.
func random(nodes, edges int) []Edge {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]Edge, edges)
	for i := range out {
		from := r.IntN(nodes)
		to := r.IntN(nodes)
		if r.Float64() < 0.8 {
			to = min(nodes-1, from/50*50+r.IntN(50))
		}
		out[i] = Edge{strconv.Itoa(from), strconv.Itoa(to), []float64{0.35, 0.5, 0.7, 1}[r.IntN(4)]}
	}
	return out
}
