package graph

// kMeans divides points into at most k clusters. It starts with the first point and
// then always the one farthest from the centres so far, and goes on as Lloyd (1982).
// There is no chance in it: the first of equals is taken.
func kMeans(points [][]float64, k int) []int {
	centres := farthest(points, k)
	of := make([]int, len(points))
	for range 100 {
		changed := false
		for i, p := range points {
			if c := closest(p, centres); c != of[i] {
				of[i], changed = c, true
			}
		}
		if !changed {
			break
		}
		centres = means(points, of, centres)
	}
	return of
}

// farthest picks starting centres; fewer than k when no other points are left.
func farthest(points [][]float64, k int) [][]float64 {
	centres := [][]float64{points[0]}
	for len(centres) < k {
		best, far := -1, 1e-18
		for i, p := range points {
			if d := distance(p, centres[closest(p, centres)]); d > far {
				best, far = i, d
			}
		}
		if best < 0 {
			break
		}
		centres = append(centres, points[best])
	}
	return centres
}

// tied is the difference of squared distances that is rounding.
const tied = 1e-12

func closest(p []float64, centres [][]float64) int {
	best := 0
	near := distance(p, centres[0])
	for c := 1; c < len(centres); c++ {
		if d := distance(p, centres[c]); d < near-tied {
			best, near = c, d
		}
	}
	return best
}

// means are the clusters' centres; one without points keeps its centre.
func means(points [][]float64, of []int, centres [][]float64) [][]float64 {
	out := make([][]float64, len(centres))
	count := make([]int, len(centres))
	for i, p := range points {
		c := of[i]
		if out[c] == nil {
			out[c] = make([]float64, len(p))
		}
		count[c]++
		for k, x := range p {
			out[c][k] += x
		}
	}
	for c := range out {
		if count[c] == 0 {
			out[c] = centres[c]
			continue
		}
		for k := range out[c] {
			out[c][k] /= float64(count[c])
		}
	}
	return out
}

// distance is the squared Euclidean distance.
func distance(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += (x - b[i]) * (x - b[i])
	}
	return sum
}
