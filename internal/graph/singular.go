package graph

import (
	"cmp"
	"math"
	"slices"
)

const (
	// maxRounds bounds the subspace iteration, and settled is the change of the singular
	// values at which it ends.
	maxRounds = 120
	settled   = 1e-9
	// powers is how often a round multiplies; making vectors orthogonal costs more.
	powers = 4
)

// singular returns the want largest singular values of the matrix, the largest
// first, with their right vectors, by subspace iteration with Rayleigh-Ritz
// projection (Golub and Van Loan, Matrix Computations, 4th ed., §8.2.4).
func (m *matrix) singular(want int) (vectors [][]float64, values []float64) {
	n := len(m.columns)
	basis := startVectors(min(n, want+extraVectors), n)
	image := startVectors(len(basis), n)
	middle := make([]float64, len(m.rows))
	multiply := func() {
		for i, v := range basis {
			m.byRow.apply(v, middle)
			m.byColumn.apply(middle, image[i])
		}
	}
	values = make([]float64, want)
	for range maxRounds {
		for range powers - 1 {
			multiply()
			basis, image = image, basis
		}
		orthonormalize(basis)
		multiply()
		squares, turn := symmetric(products(basis, image))
		basis = combine(turn, image)
		change := 0.0
		for i := range values {
			value := math.Sqrt(max(squares[i], 0))
			change = max(change, math.Abs(value-values[i]))
			values[i] = value
		}
		if change < settled {
			break
		}
	}
	orthonormalize(basis)
	return basis[:want], values
}

// startVectors are arbitrary, but always the same: numbers of the splitmix64 sequence.
func startVectors(count, length int) [][]float64 {
	var state uint64
	out := make([][]float64, count)
	for i := range out {
		out[i] = make([]float64, length)
		for j := range out[i] {
			state += 0x9e3779b97f4a7c15
			z := state
			z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
			z = (z ^ z>>27) * 0x94d049bb133111eb
			out[i][j] = float64(z>>11)/(1<<53) - 0.5
		}
	}
	return out
}

// orthonormalize is the Gram-Schmidt process, twice for its rounding. A vector that
// depends on those before it gives way to the first unit vector that does not.
func orthonormalize(vectors [][]float64) {
	for i, v := range vectors {
		size := norm(v)
		project(v, vectors[:i])
		project(v, vectors[:i])
		for unit := 0; unit < len(v) && norm(v) <= 1e-10*size; unit++ {
			clear(v)
			v[unit], size = 1, 1
			project(v, vectors[:i])
			project(v, vectors[:i])
		}
		scale := 1 / norm(v)
		for k := range v {
			v[k] *= scale
		}
	}
}

// project takes out of v what lies along the vectors.
func project(v []float64, vectors [][]float64) {
	for _, u := range vectors {
		along := dot(u, v)
		for k := range v {
			v[k] -= along * u[k]
		}
	}
}

func products(a, b [][]float64) [][]float64 {
	out := make([][]float64, len(a))
	for i := range a {
		out[i] = make([]float64, len(a))
	}
	for i := range a {
		for j := range i + 1 {
			out[i][j] = dot(a[i], b[j])
			out[j][i] = out[i][j]
		}
	}
	return out
}

// combine returns the vectors' linear combinations with the given coefficients.
func combine(coefficients, vectors [][]float64) [][]float64 {
	out := make([][]float64, len(coefficients))
	for i, row := range coefficients {
		out[i] = make([]float64, len(vectors[0]))
		for j, c := range row {
			for k, x := range vectors[j] {
				out[i][k] += c * x
			}
		}
	}
	return out
}

// symmetric returns the eigenvalues of a small symmetric matrix, the largest first,
// and their vectors, by Jacobi's rotations. The matrix is overwritten.
func symmetric(a [][]float64) (values []float64, vectors [][]float64) {
	n := len(a)
	turned := make([][]float64, n) // rows become the vectors
	for i := range turned {
		turned[i] = make([]float64, n)
		turned[i][i] = 1
	}
	for range 60 { // sweeps; a handful is enough in practice
		off := 0.0
		for i := range a {
			for j := range i {
				off += a[i][j] * a[i][j]
			}
		}
		if off < 1e-30 {
			break
		}
		for p := range n {
			for q := p + 1; q < n; q++ {
				rotate(a, turned, p, q)
			}
		}
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(a[j][j], a[i][i]) })
	for _, i := range order {
		values, vectors = append(values, a[i][i]), append(vectors, turned[i])
	}
	return values, vectors
}

// rotate makes a[p][q] zero.
func rotate(a, turned [][]float64, p, q int) {
	if a[p][q] == 0 {
		return
	}
	theta := (a[q][q] - a[p][p]) / (2 * a[p][q])
	t := math.Copysign(1, theta) / (math.Abs(theta) + math.Sqrt(theta*theta+1))
	c := 1 / math.Sqrt(t*t+1)
	s := t * c
	for k := range a {
		a[k][p], a[k][q] = c*a[k][p]-s*a[k][q], s*a[k][p]+c*a[k][q]
	}
	for k := range a {
		a[p][k], a[q][k] = c*a[p][k]-s*a[q][k], s*a[p][k]+c*a[q][k]
	}
	for k := range a {
		turned[p][k], turned[q][k] = c*turned[p][k]-s*turned[q][k], s*turned[p][k]+c*turned[q][k]
	}
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

func norm(v []float64) float64 { return math.Sqrt(dot(v, v)) }
