package daemon

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/search"
	"github.com/pml-run/pml/internal/store"
	"github.com/pml-run/pml/internal/store/storetest"
	"github.com/pml-run/pml/internal/tool"
)

// hasher is a model whose vectors count words, in places that depend on a hash: texts
// are like each other when they share words.
type hasher struct {
	name       string
	dimensions int
	texts      []string // that were encoded
	after      int      // fail after so many texts; 0 is never
	closed     int
}

func (m *hasher) Model() string        { return m.name }
func (m *hasher) Dimensions() int      { return m.dimensions }
func (*hasher) QueryPrefix() string    { return "" }
func (*hasher) DocumentPrefix() string { return "document " }

func (m *hasher) Encode(_ context.Context, texts []string) ([][]float32, error) {
	if m.after > 0 && len(m.texts)+len(texts) > m.after {
		return nil, errors.New("the power is out")
	}
	m.texts = append(m.texts, texts...)
	out := make([][]float32, len(texts))
	for i, text := range texts {
		v := make([]float32, m.dimensions)
		var squares float64
		for word := range strings.FieldsSeq(strings.ToLower(text)) {
			h := fnv.New32a()
			_, _ = h.Write([]byte(strings.Trim(word, ".,:"))) // never fails
			v[h.Sum32()%uint32(m.dimensions)]++
		}
		for _, x := range v {
			squares += float64(x) * float64(x)
		}
		for j := range v {
			v[j] = float32(float64(v[j]) / math.Sqrt(max(squares, 1)))
		}
		out[i] = v
	}
	return out, nil
}

// shelf is a source whose catalog can change.
type shelf struct{ catalog *tool.Catalog }

func (s *shelf) Catalog() *tool.Catalog { return s.catalog }

// numbered is a catalog of n tools, each described by a word of its own.
func numbered(n int) *tool.Catalog {
	var tools []tool.Tool
	for i := range n {
		tools = append(tools, tool.Tool{
			ID: tool.MakeID("s", fmt.Sprintf("t%d", i)), Description: fmt.Sprintf("Does job%d.", i), SchemaHash: "1",
		})
	}
	return tool.NewCatalog(map[string][]tool.Tool{"s": tools})
}

// bench is a discovery on a workspace of a real store.
type bench struct {
	*discovery
	shelf   *shelf
	used    *hasher
	metrics *prometheus.Registry
}

func newBench(t *testing.T, s *store.Store, catalog *tool.Catalog, m *hasher) bench {
	t.Helper()
	if _, err := s.SaveCatalog(t.Context(), "s", catalog.Tools()); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	b := bench{newDiscovery(s, slog.New(slog.DiscardHandler), registry), &shelf{catalog}, m, registry}
	b.settings = func() any { return m.name }
	b.model = func(context.Context) (*model, error) {
		return &model{Encoder: m, close: func() error { m.closed++; return nil }, settings: m.name}, nil
	}
	b.finder = search.NewFinder(b.shelf, search.FinderOptions{Neighbours: b, ExactRows: 200})
	if err := b.keepModel(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.closeModel)
	return b
}

func (b bench) refresh(t *testing.T) {
	t.Helper()
	if err := b.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// first is the best result for an intent and what the answer rests on.
func (b bench) first(t *testing.T, intent string) (string, search.Mode) {
	t.Helper()
	a, err := b.finder.Discover(t.Context(), search.Request{Intent: intent})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Results) == 0 {
		return "", a.Mode
	}
	return a.Results[0].ID, a.Mode
}

func TestDiscovery(t *testing.T) {
	options, err := storetest.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	options.DataDir = filepath.Join(t.TempDir(), "data")
	s, err := store.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, test := range map[string]func(*testing.T, *store.Store){
		"embeds once": testEmbedsOnce, "killed": testKilled, "learns": testLearns, "another model": testAnotherModel,
		"changed text": testChangedText, "many": testManyTools, "full queue": testFullQueue, "no model": testNoModel, "comes back": testComesBack,
	} {
		t.Run(name, func(t *testing.T) { test(t, s.WithWorkspace(uuid.NewString())) })
	}
}

func small() *hasher { return &hasher{name: "minilm-l6 small", dimensions: 384} }

// A second gateway, or the next start, finds the vectors in the store.
func testEmbedsOnce(t *testing.T, s *store.Store) {
	one := newBench(t, s, numbered(40), small())
	one.refresh(t)
	one.refresh(t)
	if id, mode := one.first(t, "job7"); id != "s:t7" || mode != search.Hybrid || len(one.used.texts) != 41 {
		t.Errorf("found %q, %s, with %d texts encoded; want s:t7, hybrid, 40 and the intent", id, mode, len(one.used.texts))
	}
	two := newBench(t, s, numbered(40), small())
	two.refresh(t)
	if id, mode := two.first(t, "job9"); id != "s:t9" || mode != search.Hybrid || len(two.used.texts) != 1 {
		t.Errorf("found %q, %s, with %d texts encoded; want s:t9, hybrid and the intent only", id, mode, len(two.used.texts))
	}
}

// What ends in the middle goes on where it was.
func testKilled(t *testing.T, s *store.Store) {
	one := newBench(t, s, numbered(80), &hasher{name: "minilm-l6 small", dimensions: 384, after: 70})
	if err := one.Refresh(t.Context()); err == nil {
		t.Fatal("the model has not failed")
	}
	if _, mode := one.first(t, "job7"); mode != search.Partial && mode != search.Lexical {
		t.Errorf("in the middle the mode is %s", mode)
	}
	two := newBench(t, s, numbered(80), small())
	two.refresh(t)
	list, _, err := s.Embeddings(t.Context(), two.vectors.space, 0)
	if err != nil || len(list) != 80 || len(two.used.texts) != 16 {
		t.Errorf("%d vectors, %d texts encoded after two batches, %v; want 80 and 16", len(list), len(two.used.texts), err)
	}
}

// Tools and capabilities are found in the words of the intents that they served, by
// other gateways too.
func testLearns(t *testing.T, s *store.Store) {
	one := newBench(t, s, numbered(20), small())
	two := newBench(t, s, numbered(20), small())
	one.refresh(t)
	two.refresh(t)
	c, _, err := s.UpsertCandidate(t.Context(), capability.Capability{
		Name: "tidy_up", Intent: "tidy up", HashExact: "e", HashShape: "s", State: capability.Candidate, Origin: capability.Emergent,
		Source: capability.Source{Type: capability.CodeSource, Code: "return 1"}, ToolsUsed: []tool.ID{"s:t3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.MoveCapability(t.Context(), c.Name, capability.Event{Kind: capability.FullSuccess}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		one.Served("put the toys away", []tool.ID{"s:t3", "s:t3", "s:gone"}, c.ID)
	}
	one.refresh(t)
	two.refresh(t)
	for _, b := range []bench{one, two} {
		for _, kind := range []string{"tool", "capability"} {
			a, err := b.finder.Discover(t.Context(), search.Request{Intent: "toys away", Filter: search.Filter{Type: kind}})
			want := map[string]string{"tool": "s:t3", "capability": c.ID.String()}[kind]
			if err != nil || len(a.Results) == 0 || a.Results[0].ID != want || a.Results[0].Score < 0.5 {
				t.Errorf("%s: found %+v, %v", kind, a, err)
			}
		}
	}
	// What is put away is no longer found.
	if err := s.RetireCapability(t.Context(), c.Name, "enough"); err != nil {
		t.Fatal(err)
	}
	if err := two.readFacts(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if id, _ := two.first(t, "tidy_up"); id == c.ID.String() {
		t.Error("a retired capability is found")
	}
}

func testAnotherModel(t *testing.T, s *store.Store) {
	b := newBench(t, s, numbered(10), small())
	b.refresh(t)
	other := &hasher{name: "other", dimensions: 100}
	b.settings = func() any { return other.name }
	b.model = func(context.Context) (*model, error) {
		return &model{Encoder: other, close: func() error { return nil }, settings: other.name}, nil
	}
	if err := b.keepModel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, mode := b.first(t, "job7"); mode != search.Lexical || b.used.closed != 1 {
		t.Errorf("between the models the mode is %s; the first was closed %d times", mode, b.used.closed)
	}
	b.refresh(t)
	if id, mode := b.first(t, "job7"); id != "s:t7" || mode != search.Hybrid || len(other.texts) != 11 {
		t.Errorf("found %q, %s with %d texts encoded", id, mode, len(other.texts))
	}
}

// A new description is embedded, and what was learnt stays.
func testChangedText(t *testing.T, s *store.Store) {
	b := newBench(t, s, numbered(3), small())
	b.refresh(t)
	b.Served("put the toys away", []tool.ID{"s:t1"}, uuid.Nil)
	b.refresh(t)
	tools := b.shelf.catalog.Tools()
	tools[1].Description = "Sweeps the floor."
	b.shelf.catalog = tool.NewCatalog(map[string][]tool.Tool{"s": tools})
	b.refresh(t)
	for _, intent := range []string{"sweeps the floor", "toys away"} {
		if id, _ := b.first(t, intent); id != "s:t1" {
			t.Errorf("%q found %q", intent, id)
		}
	}
	list, _, err := s.Embeddings(t.Context(), b.vectors.space, 0)
	at := slices.IndexFunc(list, func(e store.Embedding) bool { return e.Ref == "s:t1" })
	if err != nil || len(list) != 3 || list[at].Uses != 1 {
		t.Errorf("stored %v, %v", list, err)
	}
}

// Above the threshold the store's index finds the nearest.
func testManyTools(t *testing.T, s *store.Store) {
	b := newBench(t, s, numbered(210), small())
	b.refresh(t)
	if len(b.vectors.placed) != 0 {
		t.Errorf("%d vectors are kept in memory", len(b.vectors.placed))
	}
	a, err := b.finder.Discover(t.Context(), search.Request{Intent: "does job77"})
	if err != nil || a.Mode != search.Hybrid || a.Results[0].ID != "s:t77" || len(a.Notes) != 0 {
		t.Errorf("found %+v, %v", a, err)
	}
}

func testFullQueue(t *testing.T, s *store.Store) {
	b := newBench(t, s, numbered(1), small())
	for range mostServed + 5 {
		b.Served("do it", []tool.ID{"s:t0"}, uuid.Nil)
	}
	measured, err := b.metrics.Gather()
	if err != nil || len(measured) != 1 || measured[0].GetMetric()[0].GetCounter().GetValue() != 5 {
		t.Errorf("measured %v, %v; want that 5 were dropped", measured, err)
	}
	b.Served("", []tool.ID{"s:t0"}, uuid.Nil) // nothing to learn
	b.used.after = 1                          // the tool's own text
	if err := b.Refresh(t.Context()); err == nil || len(b.served) != mostServed {
		t.Errorf("after a failure %d wait, %v; want all", len(b.served), err)
	}
	b.used.after = 0
	b.refresh(t)
	list, _, err := s.Embeddings(t.Context(), b.vectors.space, 0)
	if err != nil || len(list) != 1 || list[0].Uses != 10 || len(b.served) != 0 {
		t.Errorf("learnt %+v, %v; %d wait", list, err, len(b.served))
	}
}

func testNoModel(t *testing.T, s *store.Store) {
	b := newBench(t, s, numbered(3), small())
	b.closeModel()
	b.model = func(context.Context) (*model, error) { return nil, errors.New("the registry is away") }
	if err := b.keepModel(t.Context()); err == nil {
		t.Fatal("no error")
	}
	b.refresh(t)
	a, err := b.finder.Discover(t.Context(), search.Request{Intent: "job2"})
	if err != nil || a.Mode != search.Lexical || a.Results[0].ID != "s:t2" || !strings.Contains(fmt.Sprint(a.Notes), "the registry is away") {
		t.Errorf("found %+v, %v", a, err)
	}
	if _, err := b.Nearest(t.Context(), []float32{1}, 1); err == nil {
		t.Error("neighbours without a model")
	}
}

// A server that was away is found by its vectors again.
func testComesBack(t *testing.T, s *store.Store) {
	b := newBench(t, s, numbered(5), small())
	b.refresh(t)
	b.shelf.catalog = numbered(2)
	b.refresh(t)
	b.shelf.catalog = numbered(5)
	b.refresh(t)
	if id, mode := b.first(t, "job4"); id != "s:t4" || mode != search.Hybrid || len(b.used.texts) != 6 {
		t.Errorf("found %q, %s, with %d texts encoded", id, mode, len(b.used.texts))
	}
}
