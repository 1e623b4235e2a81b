package search

import "math"

// mostUses is how many past intents count: a later one takes the place of a tenth
// of those before.
const mostUses = 10

// Uses is what a document has learnt from the intents that it served: the mean of
// their vectors. With the text's own vector it gives the vector that the document is
// found by, so that one is found in the words of those who used it. The text's share
// never falls below an eleventh, and intents can be added in any number. The zero
// value has learnt nothing; a value is never changed.
type Uses struct {
	Mean  []float32 // of the intents' vectors; not of length one
	Count int       // intents that the mean is of, at most 10
}

// Restore is the Uses of what was stored of one.
func Restore(mean []float32, count int) Uses {
	if len(mean) == 0 || count <= 0 {
		return Uses{}
	}
	return Uses{Mean: mean, Count: min(count, mostUses)}
}

// Add returns the uses after one more. A vector of another length is another
// model's: what was learnt before does not compare with it and is forgotten.
func (u Uses) Add(intent []float32) Uses {
	if len(intent) != len(u.Mean) {
		u = Uses{}
	}
	n := min(u.Count, mostUses-1)
	next := Uses{Mean: make([]float32, len(intent)), Count: n + 1}
	for i, v := range intent {
		if n > 0 {
			next.Mean[i] = u.Mean[i]
		}
		next.Mean[i] += (v - next.Mean[i]) / float32(n+1)
	}
	return next
}

// Vector is the one that a document with this text vector is found by: the mean of
// the text and the uses, brought to length one.
func (u Uses) Vector(text []float32) []float32 {
	if len(u.Mean) != len(text) {
		return text
	}
	out := make([]float32, len(text))
	var squares float64
	for i, v := range text {
		out[i] = (v + float32(u.Count)*u.Mean[i]) / float32(u.Count+1)
		squares += float64(out[i]) * float64(out[i])
	}
	length := math.Sqrt(squares)
	if length < 1e-6 { // opposites
		return text
	}
	for i := range out {
		out[i] = float32(float64(out[i]) / length)
	}
	return out
}
