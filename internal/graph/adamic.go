package graph

import "math"

// AdamicAdar returns the nodes that share neighbours with a node, whatever the
// edges' directions, the most alike first; ties in the order of ids. A shared
// neighbour z counts (w(x,z) + w(z,y)) / ln(1 + s(z)) with s the sum of z's weights:
// one that has edges to everything says little (Adamic and Adar, 2003, in the
// weighted form of Lü and Zhou, 2010). An unknown node has none.
func (g *Graph) AdamicAdar(id string) []Scored {
	x, ok := g.Index(id)
	if !ok {
		return nil
	}
	score := make([]float64, len(g.ids))
	near, weights := g.both.row(x)
	for i, z := range near {
		rarity := 1 / math.Log1p(g.both.strength[z])
		far, onward := g.both.row(z)
		for k, y := range far {
			score[y] += (weights[i] + onward[k]) * rarity
		}
	}
	var out []Scored
	for y, s := range score {
		if s > 0 && y != x {
			out = append(out, Scored{g.ids[y], s})
		}
	}
	sortScored(out)
	return out
}
