package search

import (
	"math"
	"strings"
)

// Fusion is how the two scores of a document become one.
type Fusion int

// The ways. Sum is for models whose cosines spread as those of all-MiniLM-L6-v2 do,
// for which its weight was measured; ZScore makes no assumption about the scale.
const (
	Sum    Fusion = iota // cosine + 0.02 · BM25
	ZScore               // standard scores within the best by cosine and by BM25
)

// FusionFor is the way for a model.
func FusionFor(model string) Fusion {
	if strings.Contains(strings.ToLower(model), "minilm-l6") {
		return Sum
	}
	return ZScore
}

const (
	lexicalWeight = 0.02 // of BM25 in the sum
	zDense        = 0.6  // of the cosine's standard score
	zPool         = 100  // how many of the best by either score are compared
)

// unknown stands for the cosine of a row that has no vector, and for the score of a
// row that is not found.
var unknown = float32(math.NaN())

// isUnknown is math.IsNaN without the conversions.
func isUnknown(v float32) bool { return v != v }

// guess gives rows that have words of the query but no vector yet the cosine that
// is to be expected of them: by the least-squares line through the rows that have
// both, within what was seen. So a new tool stands where tools that match as well
// by words stand, neither below all nor above all. It returns those rows.
func guess(cosine, lexical []float32) map[int32]bool {
	line, ok := fitLine(lexical, cosine)
	if !ok || lexical == nil {
		return nil
	}
	guessed := map[int32]bool{}
	for i, c := range cosine {
		if isUnknown(c) && lexical[i] > 0 {
			cosine[i] = line.at(lexical[i])
			guessed[int32(i)] = true
		}
	}
	return guessed
}

// line is y = offset + slope·x, held between low and high.
type line struct{ offset, slope, low, high float64 }

func (l line) at(x float32) float32 {
	return float32(min(max(l.offset+l.slope*float64(x), l.low), l.high))
}

// fitLine is the least-squares line through the points whose y is known, level
// where it would fall. A nil x is 0 everywhere.
func fitLine(xs, ys []float32) (line, bool) {
	var n, sx, sy, sxx, sxy float64
	l := line{low: math.Inf(1), high: math.Inf(-1)}
	for i, y32 := range ys {
		if isUnknown(y32) {
			continue
		}
		x, y := 0.0, float64(y32)
		if xs != nil {
			x = float64(xs[i])
		}
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
		l.low, l.high = min(l.low, y), max(l.high, y)
	}
	if n == 0 {
		return line{}, false
	}
	if spread := n*sxx - sx*sx; spread > 1e-9*n*sxx {
		l.slope = max((n*sxy-sx*sy)/spread, 0)
	}
	l.offset = (sy - l.slope*sx) / n
	return l, true
}

// sum is cosine + 0.02·BM25 for each row with either; a nil side counts nothing.
func sum(cosine, lexical []float32) []float32 {
	out := make([]float32, max(len(cosine), len(lexical)))
	for i := range out {
		switch {
		case cosine == nil && lexical[i] == 0:
			out[i] = unknown
		case cosine == nil:
			out[i] = lexicalWeight * lexical[i]
		case lexical == nil:
			out[i] = cosine[i]
		default:
			out[i] = cosine[i] + lexicalWeight*lexical[i]
		}
	}
	return out
}

// zScores compares the best hundred by cosine and by BM25: 0.6 of the one standard
// score and 0.4 of the other, brought between 0 and 1 by the logistic function so
// that it can be multiplied by a reliability. Other rows are not found.
func (s *snapshot) zScores(cosine, lexical []float32) []float32 {
	pool := s.best(cosine, zPool)
	in := make(map[int32]bool, 2*zPool)
	for _, at := range pool {
		in[at] = true
	}
	for _, at := range s.best(lexical, zPool) {
		if !in[at] && lexical[at] > 0 && !isUnknown(cosine[at]) {
			in[at] = true
			pool = append(pool, at)
		}
	}
	cosineOf, lexicalOf := standard(pool, cosine), standard(pool, lexical)
	out := make([]float32, len(cosine))
	for i := range out {
		out[i] = unknown
	}
	for _, at := range pool {
		z := zDense*cosineOf(at) + (1-zDense)*lexicalOf(at)
		out[at] = float32(1 / (1 + math.Exp(-z)))
	}
	return out
}

// standard returns the function from a row to its standard score within the pool.
func standard(pool []int32, values []float32) func(int32) float64 {
	var n, total, squares float64
	for _, at := range pool {
		v := float64(values[at])
		n, total, squares = n+1, total+v, squares+v*v
	}
	mean := total / max(n, 1)
	deviation := math.Sqrt(max(squares/max(n, 1)-mean*mean, 0))
	if deviation < 1e-6 {
		return func(int32) float64 { return 0 }
	}
	return func(at int32) float64 { return (float64(values[at]) - mean) / deviation }
}
