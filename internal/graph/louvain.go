package graph

// LouvainOptions set how communities are found; zero values are the defaults.
type LouvainOptions struct {
	Resolution float64 // above 1 finds more and smaller communities; default 1
}

// Communities is a division of a graph's nodes.
type Communities struct {
	// Of is the number of each node's community, by the node's number. Communities
	// are numbered in the order of their first nodes.
	Of []int
	// Count is the number of communities.
	Count int
	// Modularity says how much more weight lies within communities than chance would
	// put there, from -0.5 to 1; 0 for a graph without edges.
	Modularity float64
}

// Louvain divides the graph into communities by the method of Blondel, Guillaume,
// Lambiotte and Lefebvre (2008), over the edges of both directions. Nodes are visited
// in order and the first of equal communities is taken, so there is no chance in it.
func (g *Graph) Louvain(o LouvainOptions) Communities {
	if o.Resolution <= 0 {
		o.Resolution = 1
	}
	of := make([]int, g.Len())
	for i := range of {
		of[i] = i
	}
	if g.Len() == 0 {
		return Communities{Of: of}
	}
	level := newCoarse(g.both)
	for level.total > 0 {
		moved, changed := level.moveNodes(o.Resolution)
		if !changed {
			break
		}
		count := renumber(moved)
		for i := range of {
			of[i] = moved[of[i]]
		}
		level = level.merge(moved, count)
	}
	count := renumber(of)
	return Communities{Of: of, Count: count, Modularity: g.modularity(of, count, o.Resolution)}
}

// modularity is that of Newman and Girvan (2004) with a resolution (Reichardt and
// Bornholdt, 2006).
func (g *Graph) modularity(of []int, count int, resolution float64) float64 {
	inside, strength := make([]float64, count), make([]float64, count)
	total := 0.0
	for i, c := range of {
		strength[c] += g.both.strength[i]
		total += g.both.strength[i]
		near, weights := g.both.row(i)
		for k, j := range near {
			if of[j] == c {
				inside[c] += weights[k]
			}
		}
	}
	if total == 0 {
		return 0
	}
	q := 0.0
	for c := range inside {
		share := strength[c] / total
		q += inside[c]/total - resolution*share*share
	}
	return q
}

// renumber gives communities the numbers from 0 in the order of their first nodes
// and returns how many they are.
func renumber(of []int) int {
	numbers := make([]int, len(of))
	count := 0
	for i, c := range of {
		if numbers[c] == 0 {
			count++
			numbers[c] = count
		}
		of[i] = numbers[c] - 1
	}
	return count
}

// coarse is a graph whose nodes are communities of the level below.
type coarse struct {
	adjacency
	// total is the sum of all strengths.
	total float64
}

func newCoarse(a adjacency) *coarse {
	c := &coarse{adjacency: a}
	for _, s := range a.strength {
		c.total += s
	}
	return c
}

// minGain is the share of the total weight below which a gain is rounding.
const minGain = 1e-12

// moveNodes moves nodes to the neighbouring community that gains most, until none
// does.
func (c *coarse) moveNodes(resolution float64) (of []int, changed bool) {
	n := len(c.strength)
	of = make([]int, n)
	strength := make([]float64, n) // of communities
	for i := range of {
		of[i], strength[i] = i, c.strength[i]
	}
	toward := make([]float64, n) // the weight from the node to a community
	var near []int
	for range maxPasses {
		moves := 0
		for i := range n {
			own := of[i]
			near = c.weigh(i, of, toward, near[:0])
			strength[own] -= c.strength[i]
			scale := resolution * c.strength[i] / c.total
			best, gain := own, toward[own]-scale*strength[own]
			for _, k := range near {
				g := toward[k] - scale*strength[k]
				if g > gain+minGain*c.total || g == gain && k < best && best != own {
					best, gain = k, g
				}
			}
			strength[best] += c.strength[i]
			for _, k := range near {
				toward[k] = 0
			}
			if best != own {
				of[i] = best
				moves++
			}
		}
		if moves == 0 {
			return of, changed
		}
		changed = true
	}
	return of, changed
}

// maxPasses bounds the rounds over the nodes of one level.
const maxPasses = 100

// weigh adds up the weights from a node to each community next to it and lists
// these.
func (c *coarse) weigh(node int, of []int, toward []float64, near []int) []int {
	to, weights := c.row(node)
	for k, j := range to {
		if j == node {
			continue
		}
		if toward[of[j]] == 0 {
			near = append(near, of[j])
		}
		toward[of[j]] += weights[k]
	}
	return near
}

// merge makes each community a node. What lies inside becomes an edge to itself.
func (c *coarse) merge(of []int, count int) *coarse {
	arcs := make([]arc, 0, len(c.to))
	for i := range of {
		to, weights := c.row(i)
		for k, j := range to {
			arcs = append(arcs, arc{of[i], of[j], weights[k]})
		}
	}
	return newCoarse(compress(count, merge(arcs)))
}
