package evaluate

import (
	"context"
	"math/rand/v2"
	"strings"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/search"
)

const (
	// stores is how many stores of capabilities are drawn from each half of a data set.
	stores = 600
	// seed makes a fit repeatable.
	seed = 1
)

// storeSizes are how many capabilities a store has: a new installation has few, and
// there the best leads by much whether it is right or not.
var storeSizes = []int{1, 3, 10, 30, 90}

// sample is one intent, its best match in a store, and whether that was the right one.
type sample struct {
	match search.Match
	right bool
}

// Calibration is a fit of the confidence of a match and how good it is on intents and
// capabilities that it has not seen.
type Calibration struct {
	Fit search.Logistic `json:"fit"`
	// Fitted is the quality of Fit, Used that of search.Confidence as it is compiled in.
	Fitted Quality `json:"fitted"`
	Used   Quality `json:"used"`
}

// Calibrate makes a capability of each tool: its intent is the tool's first example,
// else the first sentence of its description, and it has served that once. Stores of
// them are asked four things in turn: a query for one that they have, a query for one
// that they lack but of which they have the most similar other, and the same two
// with the intent itself, in its own words. So the near misses are as near as the
// data has them. One half of the tools with their queries is for the fit and the
// other for its quality.
func Calibrate(ctx context.Context, sets []*Dataset, e Encoder) (*Calibration, error) {
	r := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // repeatable on purpose
	var halves [2][]sample
	for _, d := range sets {
		order := r.Perm(len(d.Tools))
		for h := range halves {
			half := &Dataset{Queries: d.Queries, Examples: d.Examples}
			for i := h; i < len(order); i += len(halves) {
				half.Tools = append(half.Tools, d.Tools[order[i]])
			}
			more, err := drawSamples(ctx, half, e, r)
			if err != nil {
				return nil, err
			}
			halves[h] = append(halves[h], more...)
		}
	}
	if len(halves[0]) == 0 || len(halves[1]) == 0 {
		return nil, fault.New(fault.InvalidInput, "no query asks for one tool only, so there is nothing to fit").
			WithHint("give a data set whose queries have one relevant tool each")
	}
	c := &Calibration{Fit: fitLogistic(halves[0])}
	c.Fitted = qualityOf(halves[1], c.Fit.At)
	c.Used = qualityOf(halves[1], search.Confidence)
	return c, nil
}

// market is what stores are drawn from.
type market struct {
	index *search.Index
	names map[string]string // of the tools by id; tools of one name are one capability
	ids   []string
	asked []string                  // those that queries ask for
	of    map[string][]search.Query // the queries of those
	own   map[string]search.Query   // the intents in their own words
}

func drawSamples(ctx context.Context, d *Dataset, e Encoder, r *rand.Rand) ([]sample, error) {
	m, err := newMarket(ctx, d, e)
	if err != nil || len(m.asked) == 0 {
		return nil, err
	}
	var out []sample
	for i := range stores {
		size := min(storeSizes[i%len(storeSizes)], len(m.ids))
		order := r.Perm(len(m.ids))
		for k := range 4 {
			id := m.asked[r.IntN(len(m.asked))]
			q := m.own[id]
			if k < 2 {
				q = m.of[id][r.IntN(len(m.of[id]))]
			}
			store := map[string]bool{}
			for _, at := range order[:size] {
				other := m.ids[at]
				store[other] = m.names[other] != m.names[id]
			}
			if has := k%2 == 0; has {
				store[id] = true
			} else {
				_, near, err := m.best(ctx, q, func(other string) bool { return m.names[other] != m.names[id] })
				if err != nil {
					return nil, err
				}
				store[near] = true
			}
			match, best, err := m.best(ctx, q, func(other string) bool { return store[other] })
			if err != nil {
				return nil, err
			}
			out = append(out, sample{match: match, right: best == id})
		}
	}
	return out, nil
}

// best is the best match among some, and whose it is.
func (m *market) best(ctx context.Context, q search.Query, has func(id string) bool) (search.Match, string, error) {
	hit, match, err := m.index.Best(ctx, q, search.Options{Keep: has})
	return match, hit.ID, err
}

func newMarket(ctx context.Context, d *Dataset, e Encoder) (*market, error) {
	m := &market{index: search.NewIndex(), names: map[string]string{}, of: map[string][]search.Query{}, own: map[string]search.Query{}}
	if err := m.stock(ctx, d, e); err != nil {
		return nil, err
	}
	c := &Corpus{Dataset: d}
	if err := c.encodeQueries(ctx, e); err != nil {
		return nil, err
	}
	for i, q := range d.Queries {
		if id := q.Relevant[0]; len(q.Relevant) == 1 && m.names[id] != "" {
			if m.of[id] == nil {
				m.asked = append(m.asked, id)
			}
			m.of[id] = append(m.of[id], c.queries[i])
		}
	}
	return m, nil
}

// stock indexes the tools as capabilities that have served their intent once.
func (m *market) stock(ctx context.Context, d *Dataset, e Encoder) error {
	documents := make([]search.Document, len(d.Tools))
	var texts []string
	for i, t := range d.Tools {
		intent, _, _ := strings.Cut(t.Description, ". ")
		if examples := d.Examples[t.ID]; len(examples) > 0 {
			intent = examples[0]
		}
		text := search.CapabilityText(capability.Capability{Name: t.Name, Intent: intent, Description: t.Description})
		documents[i] = search.Document{ID: t.ID, Kind: search.Capabilities, Lexical: text.Lexical}
		texts = append(texts, e.DocumentPrefix()+text.Dense, e.QueryPrefix()+intent)
		m.ids, m.names[t.ID], m.own[t.ID] = append(m.ids, t.ID), t.Name, search.Query{Text: intent}
	}
	encoded, err := encodeAll(ctx, e, texts)
	if err != nil {
		return err
	}
	vectors := map[string][]float32{}
	for i, t := range d.Tools {
		text, intent := encoded[2*i], encoded[2*i+1]
		vectors[t.ID] = search.Uses{}.Add(intent).Vector(text)
		m.own[t.ID] = search.Query{Text: m.own[t.ID].Text, Vectors: [][]float32{intent}}
	}
	if err := m.index.Put(documents...); err != nil {
		return err
	}
	return m.index.SetVectors(vectors)
}
