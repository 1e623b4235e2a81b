package search

import (
	"context"

	"github.com/pml-run/pml/internal/fault"
)

// Mode says what an answer rests on.
type Mode string

// The modes.
const (
	Lexical Mode = "lexical" // words only: there are no vectors, of the query or of any document
	Partial Mode = "partial" // vectors, but some documents have none yet
	Hybrid  Mode = "hybrid"  // words and vectors of all documents
)

// Signals are parts of the ranking that can be switched off.
type Signals uint

// The signals.
const (
	Words       Signals = 1 << iota // BM25
	Vectors                         // cosines
	Sentences                       // of the query by themselves
	Reliability                     // the factors of SetReliability
	Boost                           // Options.Boost
)

const (
	// defaultExactRows is up to how many documents all cosines are computed.
	defaultExactRows = 50_000
	// defaultHits is how many hits an answer has.
	defaultHits = 10
	// boosted is how many of the best by rank a boost may re-order.
	boosted = 100
)

// Options are those of one search; the zero value finds the ten best of everything.
type Options struct {
	Limit  int    // hits; 0 is 10
	Offset int    // hits to leave out
	Kind   Kind   // empty for both
	Fusion Fusion // see FusionFor
	// Keep says which documents may be found; nil keeps all.
	Keep func(id string) bool
	// MinRank leaves out what has a lower rank, before it is boosted.
	MinRank float64
	// Boost multiplies the rank of the hundred best: for signals from the graph, which
	// only mean something where the caller named tools that it already uses.
	Boost func(id string) float64
	// Without switches signals off.
	Without Signals
	// Neighbours finds the nearest where there are more than ExactRows documents
	// (0 is 50,000); nil computes all cosines however many there are. Keep and Kind
	// then choose among the 200 nearest and the 200 best by words.
	Neighbours Neighbours
	ExactRows  int
}

// Hit is one document that was found.
type Hit struct {
	ID          string  `json:"id"`
	Kind        Kind    `json:"kind"`
	Rank        float64 `json:"rank"`  // Score × Reliability × boost
	Score       float64 `json:"score"` // of the fusion
	Cosine      float64 `json:"cosine"`
	BM25        float64 `json:"bm25"`
	Reliability float64 `json:"reliability"`
	// Guessed: the document has no vector yet, and Cosine is what is to be expected.
	Guessed bool `json:"guessed,omitempty"`
}

// Found is the answer to a search.
type Found struct {
	Hits  []Hit `json:"hits"`
	Total int   `json:"total"` // documents that have a rank, of which Hits is a page
	Mode  Mode  `json:"mode"`
	// Missing is how many documents have no vector yet; not known, and 0, where
	// Neighbours has the vectors.
	Missing int `json:"missing,omitempty"`
}

// Search ranks the documents for a query: rank = score × reliability.
func (x *Index) Search(ctx context.Context, q Query, o Options) (Found, error) {
	s := x.now.Load()
	f := Found{Hits: []Hit{}, Mode: s.mode(q, o)}
	if !o.elsewhere(s) {
		f.Missing = s.live - s.vectors
	}
	var lexical, cosine []float32
	var guessed map[int32]bool
	if o.Without&Words == 0 {
		lexical = s.lexical(q.Text)
	}
	if f.Mode != Lexical {
		var err error
		if cosine, guessed, err = s.dense(ctx, q, o, lexical); err != nil {
			return f, err
		}
	}
	score := s.fuse(cosine, lexical, o.Fusion)
	ranks := make([]float32, len(score))
	for at, v := range score {
		ranks[at] = s.rank(at, v, o)
		if !isUnknown(ranks[at]) {
			f.Total++
		}
	}
	from, to := o.page()
	want := to
	if o.boosts() {
		want = max(want, boosted)
	}
	for _, at := range s.best(ranks, want) {
		h := s.hit(at, cosine, lexical)
		h.Rank, h.Score, h.Guessed = float64(ranks[at]), float64(score[at]), guessed[at]
		f.Hits = append(f.Hits, h)
	}
	if o.boosts() {
		f.Hits = boost(f.Hits, o.Boost)
	}
	sortHits(f.Hits)
	f.Hits = f.Hits[min(from, len(f.Hits)):min(to, len(f.Hits))]
	return f, nil
}

// page are the hits that are wanted.
func (o Options) page() (from, to int) {
	if o.Limit <= 0 {
		o.Limit = defaultHits
	}
	from = max(o.Offset, 0)
	return from, from + o.Limit
}

func (o Options) boosts() bool { return o.Boost != nil && o.Without&Boost == 0 }

// elsewhere reports whether the nearest are found by others. They may have all the
// vectors and this index none.
func (o Options) elsewhere(s *snapshot) bool {
	exact := o.ExactRows
	if exact <= 0 {
		exact = defaultExactRows
	}
	return o.Neighbours != nil && s.live > exact
}

func (s *snapshot) mode(q Query, o Options) Mode {
	switch {
	case len(q.Vectors) == 0 || o.Without&Vectors != 0:
		return Lexical
	case o.elsewhere(s):
		return Hybrid
	case s.vectors == 0:
		return Lexical
	case s.vectors < s.live:
		return Partial
	}
	return Hybrid
}

// dense are the cosines of the rows, and which of them are guesses.
func (s *snapshot) dense(ctx context.Context, q Query, o Options, lexical []float32) (cosine []float32, guessed map[int32]bool, err error) {
	vectors := q.Vectors
	if o.Without&Sentences != 0 {
		vectors = vectors[:1]
	}
	for _, v := range vectors {
		if s.dimensions > 0 && len(v) != s.dimensions {
			return nil, nil, fault.New(fault.InvalidInput, "the query's vector has %d dimensions, the index %d", len(v), s.dimensions).
				WithHint("were the documents encoded with another model?")
		}
	}
	if o.elsewhere(s) {
		return s.nearby(ctx, o.Neighbours, vectors, lexical)
	}
	cosine = s.cosines(vectors)
	if s.vectors < s.live {
		guessed = guess(cosine, lexical)
	}
	return cosine, guessed, nil
}

// fuse makes one score of the two; rows that nothing speaks for are unknown.
func (s *snapshot) fuse(cosine, lexical []float32, f Fusion) []float32 {
	if f == ZScore && cosine != nil && lexical != nil {
		return s.zScores(cosine, lexical)
	}
	return sum(cosine, lexical)
}

// rank is a row's score with its reliability, unknown if it may not be found. A
// score below zero is no match, and no reliability makes it a better one.
func (s *snapshot) rank(at int, score float32, o Options) float32 {
	r := &s.rows[at]
	if isUnknown(score) || r.id == "" || o.Kind != "" && o.Kind != r.kind || o.Keep != nil && !o.Keep(r.id) {
		return unknown
	}
	if o.Without&Reliability == 0 && score > 0 {
		score *= r.reliability
	}
	if o.MinRank > 0 && float64(score) < o.MinRank {
		return unknown
	}
	return score
}

func (s *snapshot) hit(at int32, cosine, lexical []float32) Hit {
	r := &s.rows[at]
	h := Hit{ID: r.id, Kind: r.kind, Reliability: float64(r.reliability)}
	if cosine != nil {
		h.Cosine = float64(cosine[at])
	}
	if lexical != nil {
		h.BM25 = float64(lexical[at])
	}
	return h
}

func boost(hits []Hit, by func(id string) float64) []Hit {
	for i := range hits {
		if f := by(hits[i].ID); f > 0 && hits[i].Rank > 0 {
			hits[i].Rank *= f
		}
	}
	return hits
}
