package evaluate

import (
	"math"

	"github.com/pml-run/pml/internal/search"
)

// Quality says how good a confidence is.
type Quality struct {
	Intents int `json:"intents"`
	Right   int `json:"right"` // of which the best match was the right one
	// Brier is the mean squared difference of confidence and truth, 0 at best; Base is
	// that of always saying how many are right.
	Brier float64 `json:"brier"`
	Base  float64 `json:"brier_of_base_rate"`
	// Precision is the share of right ones among those from the threshold on, Recall the
	// share of the right ones that are there.
	Threshold float64 `json:"threshold"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	// Bins compare what was said with what was true, tenth by tenth.
	Bins []Bin `json:"bins"`
}

// Bin is one tenth of the confidences.
type Bin struct {
	Said  float64 `json:"said"` // on average
	True  float64 `json:"true"` // share of right ones
	Count int     `json:"count"`
}

// qualityOf measures a confidence on samples.
func qualityOf(samples []sample, confidence func(search.Match) float64) Quality {
	q := Quality{Intents: len(samples), Threshold: search.DefaultThreshold}
	var above, rightAbove float64
	bins := make([]Bin, 10)
	for _, s := range samples {
		p, truth := confidence(s.match), s.truth()
		q.Right += int(truth)
		q.Brier += (p - truth) * (p - truth)
		b := &bins[min(int(p*10), len(bins)-1)]
		b.Said, b.True, b.Count = b.Said+p, b.True+truth, b.Count+1
		if p >= q.Threshold {
			above, rightAbove = above+1, rightAbove+truth
		}
	}
	n := max(float64(len(samples)), 1)
	rate := float64(q.Right) / n
	q.Brier, q.Base = q.Brier/n, rate*(1-rate)
	q.Precision, q.Recall = rightAbove/max(above, 1), rightAbove/max(float64(q.Right), 1)
	for _, b := range bins {
		if b.Count > 0 {
			q.Bins = append(q.Bins, Bin{Said: b.Said / float64(b.Count), True: b.True / float64(b.Count), Count: b.Count})
		}
	}
	return q
}

func (s sample) truth() float64 {
	if s.right {
		return 1
	}
	return 0
}

const (
	// ridge keeps the steps finite where the samples could be told apart perfectly.
	ridge = 1e-3
	// newtonSteps is far more than a logistic in three coefficients needs.
	newtonSteps = 30
)

// fitLogistic finds the coefficients of largest likelihood by Newton's method
// (Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, 2nd ed., §4.4.1).
func fitLogistic(samples []sample) search.Logistic {
	var l search.Logistic
	for range newtonSteps {
		gradient := [3]float64{-ridge * l.Offset, -ridge * l.Cosine, -ridge * l.Margin}
		curvature := [3][3]float64{{ridge}, {0, ridge}, {0, 0, ridge}}
		for _, s := range samples {
			x := [3]float64{1, s.match.Closeness(), s.match.Margin()}
			p := l.At(s.match)
			for i := range x {
				gradient[i] += (s.truth() - p) * x[i]
				for j := range x {
					curvature[i][j] += p * (1 - p) * x[i] * x[j]
				}
			}
		}
		step := solve(curvature, gradient)
		l.Offset, l.Cosine, l.Margin = l.Offset+step[0], l.Cosine+step[1], l.Margin+step[2]
		if math.Abs(step[0])+math.Abs(step[1])+math.Abs(step[2]) < 1e-9 {
			break
		}
	}
	return l
}

// solve eliminates; the matrix is positive definite, so that no pivot is zero.
func solve(m [3][3]float64, b [3]float64) [3]float64 {
	for i := range b {
		for k := i + 1; k < len(b); k++ {
			f := m[k][i] / m[i][i]
			for j := i; j < len(b); j++ {
				m[k][j] -= f * m[i][j]
			}
			b[k] -= f * b[i]
		}
	}
	for i := len(b) - 1; i >= 0; i-- {
		for j := i + 1; j < len(b); j++ {
			b[i] -= m[i][j] * b[j]
		}
		b[i] /= m[i][i]
	}
	return b
}
