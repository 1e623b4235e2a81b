package graph

import (
	"fmt"
	"math"
)

// Link says how often something (a row) uses another thing (a column).
type Link struct {
	Row, Column string
	// Count is up to 1e100; below 1e-100 it is as if there were none.
	Count float64
}

// SpectralOptions set how a matrix is clustered; zero values are the defaults.
type SpectralOptions struct {
	// Clusters is their number; 0 takes it from the largest gap between the singular values.
	Clusters int
	// MaxClusters bounds the number that is chosen so; default 10.
	MaxClusters int
	// LogCounts weighs a link with log2(count+1); otherwise each counts 1.
	LogCounts bool
}

// Clusters is a division of a matrix's rows and columns into common clusters.
type Clusters struct {
	// Rows and Columns are the clusters by id, numbered in the order of the ids' first
	// appearance: rows first, then columns.
	Rows, Columns map[string]int
	Count         int
	// Values are the largest singular values of the scaled matrix, from 1 down: as
	// many are near 1 as there are clusters with few links between them.
	Values []float64
}

// extraVectors are computed beside the wanted ones: they make the others converge.
const extraVectors = 6

// Spectral clusters the rows and columns of a sparse matrix together: the singular
// vectors of D1^(-1/2)·A·D2^(-1/2), each node's part scaled to length 1, clustered by
// k-means (Dhillon, 2001; Ng, Jordan and Weiss, 2002). Links with the same ends are
// added up. A count that is negative, no number or too large is an error. There are
// at most as many clusters as the smaller side has ids.
func Spectral(links []Link, o SpectralOptions) (Clusters, error) {
	m, err := newMatrix(links, o.LogCounts)
	if err != nil {
		return Clusters{}, err
	}
	side := min(len(m.rows), len(m.columns))
	if side == 0 {
		return Clusters{Rows: map[string]int{}, Columns: map[string]int{}}, nil
	}
	most := min(side, max(o.MaxClusters, 0))
	if o.MaxClusters <= 0 {
		most = min(side, 10)
	}
	if o.Clusters > 0 {
		most = min(side, o.Clusters)
	}
	vectors, values := m.singular(min(side, most+1))
	k := most
	if o.Clusters <= 0 {
		k = eigengap(values, most)
	}
	of := kMeans(m.embed(vectors[:k]), k)
	count := renumber(of)
	c := Clusters{Rows: map[string]int{}, Columns: map[string]int{}, Count: count, Values: values}
	for i, id := range m.rows {
		c.Rows[id] = of[i]
	}
	for i, id := range m.columns {
		c.Columns[id] = of[len(m.rows)+i]
	}
	return c, nil
}

// eigengap returns how many values lie before the largest drop; of equal ones the
// first. Behind all values comes 0 when there is no further one.
func eigengap(values []float64, most int) int {
	best, gap := 1, -1.0
	for k := 1; k <= most; k++ {
		next := 0.0
		if k < len(values) {
			next = values[k]
		}
		if drop := values[k-1] - next; drop > gap+1e-9 {
			best, gap = k, drop
		}
	}
	return best
}

// matrix is a sparse matrix scaled by its rows' and columns' sums.
type matrix struct {
	rows, columns []string
	byRow         adjacency // columns of rows
	byColumn      adjacency // rows of columns
}

func newMatrix(links []Link, logCounts bool) (*matrix, error) {
	var rows, columns []string
	for _, l := range links {
		if err := checkWeight(l.Count); err != nil {
			return nil, fmt.Errorf("link from %q to %q: %w", l.Row, l.Column, err)
		}
		if l.Count >= minWeight {
			rows, columns = append(rows, l.Row), append(columns, l.Column)
		}
	}
	m := &matrix{}
	var rowOf, columnOf map[string]int
	m.rows, rowOf = number(rows)
	m.columns, columnOf = number(columns)
	var arcs []arc
	for _, l := range links {
		if l.Count >= minWeight {
			arcs = append(arcs, arc{rowOf[l.Row], columnOf[l.Column], l.Count})
		}
	}
	arcs = merge(arcs)
	for i := range arcs {
		if logCounts {
			arcs[i].weight = math.Log1p(arcs[i].weight) / math.Ln2
		} else {
			arcs[i].weight = 1
		}
	}
	turned := merge(turn(arcs))
	rowSum, columnSum := compress(len(m.rows), arcs).strength, compress(len(m.columns), turned).strength
	for i, a := range arcs {
		arcs[i].weight /= math.Sqrt(rowSum[a.from] * columnSum[a.to])
	}
	m.byRow, m.byColumn = compress(len(m.rows), arcs), compress(len(m.columns), merge(turn(arcs)))
	return m, nil
}

// apply multiplies the matrix that the rows of a make with a vector.
func (a adjacency) apply(x, out []float64) {
	for i := range out {
		to, weights := a.row(i)
		sum := 0.0
		for k, j := range to {
			sum += weights[k] * x[j]
		}
		out[i] = sum
	}
}

// embed gives each row and then each column the coordinates that the right singular
// vectors assign to it, scaled to length 1.
func (m *matrix) embed(vectors [][]float64) [][]float64 {
	points := make([][]float64, len(m.rows)+len(m.columns))
	for i := range points {
		points[i] = make([]float64, len(vectors))
	}
	left := make([]float64, len(m.rows))
	for k, v := range vectors {
		m.byRow.apply(v, left) // the left vector, but for its length
		scale := 1.0
		if n := norm(left); n > 0 {
			scale = 1 / n
		}
		for i, x := range left {
			points[i][k] = x * scale
		}
		for j, x := range v {
			points[len(m.rows)+j][k] = x
		}
	}
	for _, p := range points {
		if n := norm(p); n > 1e-12 {
			for k := range p {
				p[k] /= n
			}
		}
	}
	return points
}
