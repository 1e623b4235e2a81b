package evaluate

import (
	"context"
	"fmt"

	"github.com/pml-run/pml/internal/search"
)

// Encoder is what the evaluation needs of a model.
type Encoder interface {
	search.Encoder
	// DocumentPrefix is what the model wants to see before a document.
	DocumentPrefix() string
}

// Variant is one way to search.
type Variant struct {
	Name    string
	Without search.Signals
	Fusion  search.Fusion
	Uses    int // examples that each tool has learnt from
}

// Scores are averages over the queries, in percent.
type Scores struct {
	Variant  string  `json:"variant"`
	NDCG10   float64 `json:"ndcg_at_10"`
	Recall5  float64 `json:"recall_at_5"`
	Recall10 float64 `json:"recall_at_10"`
}

// Variants are the ways that are compared, for a model's fusion: the parts, the
// whole, the whole without each part, and the whole after use. Reliability and graph
// have no row: the data sets tell nothing of outcomes and of tools in use.
func Variants(f search.Fusion, learning bool) []Variant {
	out := []Variant{
		wordsOnly,
		{Name: "vectors", Without: search.Words | search.Sentences, Fusion: f},
		{Name: "words + vectors", Without: search.Sentences, Fusion: f},
		{Name: Whole, Fusion: f},
		{Name: "vectors + sentences", Without: search.Words, Fusion: f},
		{Name: "all, fused the other way", Fusion: search.Sum + search.ZScore - f},
	}
	if learning {
		for _, n := range []int{1, 3, mostUses} {
			out = append(out, Variant{Name: fmt.Sprintf("all + learnt from %d", n), Fusion: f, Uses: n})
		}
	}
	return out
}

// wordsOnly needs no vectors.
var wordsOnly = Variant{Name: "words", Without: search.Vectors}

// Whole names the variant that the gateway uses.
const Whole = "words + vectors + sentences"

// Corpus is a data set with its vectors.
type Corpus struct {
	*Dataset
	documents [][]float32
	queries   []search.Query
	examples  map[string][][]float32
}

// mostUses is how many examples of a tool are encoded.
const mostUses = 5

// Encode makes the vectors of a data set; a nil encoder makes none.
func Encode(ctx context.Context, d *Dataset, e Encoder) (*Corpus, error) {
	c := &Corpus{Dataset: d, examples: map[string][][]float32{}}
	if e == nil {
		c.documents = make([][]float32, len(d.Tools))
		for _, q := range d.Queries {
			c.queries = append(c.queries, search.Query{Text: q.Text})
		}
		return c, nil
	}
	texts := make([]string, 0, len(d.Tools))
	for _, t := range d.Tools {
		texts = append(texts, e.DocumentPrefix()+t.Text.Dense)
	}
	var err error
	if c.documents, err = encodeAll(ctx, e, texts); err != nil {
		return nil, err
	}
	if err := c.encodeQueries(ctx, e); err != nil {
		return nil, err
	}
	for _, t := range d.Tools {
		texts = texts[:0]
		for _, example := range d.Examples[t.ID][:min(mostUses, len(d.Examples[t.ID]))] {
			texts = append(texts, e.QueryPrefix()+example)
		}
		if c.examples[t.ID], err = encodeAll(ctx, e, texts); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *Corpus) encodeQueries(ctx context.Context, e Encoder) error {
	var texts []string
	starts := make([]int, 0, len(c.Queries)+1)
	for _, q := range c.Queries {
		starts = append(starts, len(texts))
		texts = append(texts, search.QueryTexts(e, q.Text)...)
	}
	starts = append(starts, len(texts))
	vectors, err := encodeAll(ctx, e, texts)
	if err != nil {
		return err
	}
	for i, q := range c.Queries {
		c.queries = append(c.queries, search.Query{Text: q.Text, Vectors: vectors[starts[i]:starts[i+1]]})
	}
	return nil
}

// batch is how many texts are encoded at once: an answer to ctx lies between two.
const batch = 256

func encodeAll(ctx context.Context, e Encoder, texts []string) ([][]float32, error) {
	out := make([][]float32, 0, len(texts))
	for from := 0; from < len(texts); from += batch {
		vectors, err := e.Encode(ctx, texts[from:min(from+batch, len(texts))])
		if err != nil {
			return nil, fmt.Errorf("encode texts %d and following: %w", from, err)
		}
		out = append(out, vectors...)
	}
	return out, nil
}

// Measure runs all queries in one way.
func (c *Corpus) Measure(ctx context.Context, v Variant) (Scores, error) {
	x, err := c.index(v.Uses)
	if err != nil {
		return Scores{}, err
	}
	s := Scores{Variant: v.Name}
	for i, q := range c.queries {
		found, err := x.Search(ctx, q, search.Options{Limit: 10, Fusion: v.Fusion, Without: v.Without})
		if err != nil {
			return s, err
		}
		ranked := make([]string, len(found.Hits))
		for j, h := range found.Hits {
			ranked[j] = h.ID
		}
		relevant := map[string]bool{}
		for _, id := range c.Queries[i].Relevant {
			relevant[id] = true
		}
		s.NDCG10 += NDCG(ranked, relevant, 10)
		s.Recall5 += Recall(ranked, relevant, 5)
		s.Recall10 += Recall(ranked, relevant, 10)
	}
	percent := 100 / float64(len(c.queries))
	s.NDCG10, s.Recall5, s.Recall10 = s.NDCG10*percent, s.Recall5*percent, s.Recall10*percent
	return s, nil
}

func (c *Corpus) index(uses int) (*search.Index, error) {
	x := search.NewIndex()
	documents := make([]search.Document, len(c.Tools))
	vectors := make(map[string][]float32, len(c.Tools))
	for i, t := range c.Tools {
		documents[i] = search.Document{ID: t.ID, Kind: search.Tools, Lexical: t.Text.Lexical}
		var learnt search.Uses
		for _, v := range c.examples[t.ID][:min(uses, len(c.examples[t.ID]))] {
			learnt = learnt.Add(v)
		}
		vectors[t.ID] = learnt.Vector(c.documents[i])
	}
	if err := x.Put(documents...); err != nil {
		return nil, err
	}
	return x, x.SetVectors(vectors)
}
