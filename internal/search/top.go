package search

import (
	"cmp"
	"slices"
)

// best are the rows with the n largest values, in no order; unknown values are left
// out. Of equal values those with the first ids stay, so that an answer does not
// depend on the order in which documents came.
func (s *snapshot) best(values []float32, n int) []int32 {
	h := heap{rows: s.rows, values: values, at: make([]int32, 0, min(n, len(values)))}
	for i, v := range values {
		at := int32(i)
		switch {
		case isUnknown(v) || s.rows[i].id == "":
		case len(h.at) < n:
			h.at = append(h.at, at)
			h.up()
		case n > 0 && v >= values[h.at[0]] && h.worse(h.at[0], at):
			h.at[0] = at
			h.down()
		}
	}
	return h.at
}

// heap has the worst of its rows at the root.
type heap struct {
	rows   []row
	values []float32
	at     []int32
}

func (h *heap) worse(a, b int32) bool {
	if h.values[a] != h.values[b] {
		return h.values[a] < h.values[b]
	}
	return h.rows[a].id > h.rows[b].id
}

func (h *heap) up() {
	for i := len(h.at) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.worse(h.at[i], h.at[parent]) {
			return
		}
		h.at[parent], h.at[i] = h.at[i], h.at[parent]
		i = parent
	}
}

func (h *heap) down() {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(h.at) {
			return
		}
		if child+1 < len(h.at) && h.worse(h.at[child+1], h.at[child]) {
			child++
		}
		if !h.worse(h.at[child], h.at[i]) {
			return
		}
		h.at[i], h.at[child] = h.at[child], h.at[i]
		i = child
	}
}

// sortHits puts the highest rank first, and of equals the first id.
func sortHits(hits []Hit) {
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Rank, a.Rank), cmp.Compare(a.ID, b.ID))
	})
}
