package search

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/pml-run/pml/internal/embedding/kernel"
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

// products are the processor's fastest scalar products.
var products = sync.OnceValue(func() kernel.Set { return kernel.Available()[0] })

// lane is what the length of a stored vector is rounded up to, with zeros: the
// kernels take so many numbers at once.
const lane = 8

// cosines returns for every row the largest cosine with one of the vectors, and
// unknown for rows without a vector.
func (s *snapshot) cosines(vectors [][]float32) []float32 {
	out := make([]float32, len(s.rows))
	queries := s.pack(vectors)
	pages := (len(s.rows) + pageRows - 1) / pageRows
	workers := 1
	if len(s.rows)*len(queries.Data) >= parallelWork {
		workers = min(runtime.GOMAXPROCS(0), maxWorkers)
	}
	var wg sync.WaitGroup
	for worker := range workers {
		compare := func() {
			room := make([]float32, len(vectors)*pageRows)
			for p := worker; p < pages; p += workers {
				s.comparePage(p, queries, len(vectors), room, out)
			}
		}
		if worker == workers-1 {
			compare() // the last share is this goroutine's
		} else {
			wg.Go(compare)
		}
	}
	wg.Wait()
	return out
}

// pack lays vectors one behind the other as rows are in a page.
func (s *snapshot) pack(vectors [][]float32) kernel.View {
	out := kernel.View{Data: make([]float32, len(vectors)*s.stride()), Stride: s.stride()}
	for i, v := range vectors {
		copy(out.Row(i, s.stride()), v)
	}
	return out
}

// comparePage fills out for the rows of one page; room is for the cosines of each
// query with each row.
func (s *snapshot) comparePage(p int, queries kernel.View, count int, room, out []float32) {
	first := p * pageRows
	rows := s.rows[first:min(first+pageRows, len(s.rows))]
	if p < len(s.pages) && s.pages[p].values != nil {
		page := kernel.View{Data: s.pages[p].values, Stride: s.stride()}
		n := (len(rows) + kernel.Tile - 1) / kernel.Tile * kernel.Tile
		products().Products(kernel.View{Data: room, Stride: pageRows}, queries, count, page, n, s.stride())
	}
	for i := range rows {
		if !rows[i].vector {
			out[first+i] = unknown
			continue
		}
		largest := room[i]
		for q := 1; q < count; q++ {
			largest = max(largest, room[q*pageRows+i])
		}
		out[first+i] = largest
	}
}

// cosine is the largest of one row with one of the vectors.
func (s *snapshot) cosine(at int32, vectors [][]float32) float32 {
	if !s.rows[at].vector {
		return unknown
	}
	row := s.vectorOf(int(at))
	largest := float32(-1)
	for _, v := range vectors {
		var product float32
		for i, x := range v {
			product += x * row[i]
		}
		largest = max(largest, product)
	}
	return largest
}

// nearestCount is how many neighbours of each vector are asked for.
const nearestCount = 200

// nearby does what cosines does for the rows that others name as near, and for
// those with the most words of the query. Of those, one without a vector here gets the
// smallest cosine that was named: it was not among the nearest.
func (s *snapshot) nearby(ctx context.Context, by Neighbours, vectors [][]float32, lexical []float32) (cosine []float32, guessed map[int32]bool, err error) {
	out := make([]float32, len(s.rows))
	for i := range out {
		out[i] = unknown
	}
	least := float32(1)
	for _, v := range vectors {
		near, err := by.Nearest(ctx, v, nearestCount)
		if err != nil {
			return nil, nil, fmt.Errorf("find nearest: %w", err)
		}
		for _, n := range near {
			least = min(least, n.Cosine)
			if at, ok := s.ids.get(n.ID); ok && (isUnknown(out[at]) || out[at] < n.Cosine) {
				out[at] = n.Cosine
			}
		}
	}
	guessed = map[int32]bool{}
	for _, at := range s.best(lexical, nearestCount) {
		switch {
		case lexical[at] <= 0 || !isUnknown(out[at]):
		case s.rows[at].vector:
			out[at] = s.cosine(at, vectors)
		default:
			out[at], guessed[at] = least, true
		}
	}
	return out, guessed, nil
}
