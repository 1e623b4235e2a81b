package search

import (
	"context"
	"fmt"
	"runtime"
	"sync"
)

// Neighbour is a document near a vector.
type Neighbour struct {
	ID     string
	Cosine float32
}

// Neighbours finds the documents nearest to a vector, where there are so many that
// not all are looked at.
type Neighbours interface {
	// Nearest returns up to n documents, the nearest first.
	Nearest(ctx context.Context, vector []float32, n int) ([]Neighbour, error)
}

// parallelWork is from how many products of numbers it pays to use several cores.
const parallelWork = 1 << 20

// maxWorkers bounds the cores for one search: others search too.
const maxWorkers = 4

// cosines returns for every row the largest cosine with one of the vectors, and
// unknown for rows without a vector.
func (s *snapshot) cosines(vectors [][]float32) []float32 {
	out := make([]float32, len(s.rows))
	workers := 1
	if len(s.rows)*s.dimensions*len(vectors) >= parallelWork {
		workers = min(runtime.GOMAXPROCS(0), maxWorkers)
	}
	share := (len(s.rows) + workers - 1) / workers
	var wg sync.WaitGroup
	for from := share; from < len(s.rows); from += share {
		wg.Go(func() { s.cosinesBetween(from, min(from+share, len(s.rows)), vectors, out) })
	}
	s.cosinesBetween(0, min(share, len(s.rows)), vectors, out)
	wg.Wait()
	return out
}

func (s *snapshot) cosinesBetween(from, to int, vectors [][]float32, out []float32) {
	for at := from; at < to; at++ {
		out[at] = s.cosine(at, vectors)
	}
}

// cosine is the largest of a row with one of the vectors.
func (s *snapshot) cosine(at int, vectors [][]float32) float32 {
	if !s.rows[at].vector {
		return unknown
	}
	v := s.vectorOf(at)
	largest := dot(v, vectors[0])
	for _, q := range vectors[1:] {
		largest = max(largest, dot(v, q))
	}
	return largest
}

// dot is the scalar product of two vectors of one length. Four sums do not wait for
// each other, and the compiler leaves the bounds checks out.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(a) >= 8 && len(b) >= 8 {
		s0 += a[0]*b[0] + a[4]*b[4]
		s1 += a[1]*b[1] + a[5]*b[5]
		s2 += a[2]*b[2] + a[6]*b[6]
		s3 += a[3]*b[3] + a[7]*b[7]
		a, b = a[8:], b[8:]
	}
	for i := range min(len(a), len(b)) {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// nearestCount is how many neighbours of each vector are asked for.
const nearestCount = 200

// nearby does what cosines does for the rows that others name as near, and for
// those with the most words of the query. A row without a vector gets the smallest
// cosine that was named: it was not among the nearest.
func (s *snapshot) nearby(ctx context.Context, by Neighbours, vectors [][]float32, lexical []float32) ([]float32, error) {
	out := make([]float32, len(s.rows))
	for i := range out {
		out[i] = unknown
	}
	least := float32(1)
	for _, v := range vectors {
		near, err := by.Nearest(ctx, v, nearestCount)
		if err != nil {
			return nil, fmt.Errorf("find nearest: %w", err)
		}
		for _, n := range near {
			least = min(least, n.Cosine)
			if at, ok := s.ids.get(n.ID); ok && !(out[at] >= n.Cosine) { //nolint:staticcheck // true for unknown too
				out[at] = n.Cosine
			}
		}
	}
	for _, at := range s.best(lexical, nearestCount) {
		if lexical[at] <= 0 || !isUnknown(out[at]) {
			continue
		}
		out[at] = least
		if s.rows[at].vector {
			out[at] = s.cosine(int(at), vectors)
		}
	}
	return out, nil
}
