package kernel

import "math"

// panelColumns is how many outputs share a panel of packed int8 weights.
const panelColumns = Block

// Packed is a linear layer with int8 weights. Data holds panels of 32 outputs; in a
// panel, four inputs of each output lie together, which is what VNNI takes at once.
type Packed struct {
	Data            []byte
	Scale, Sum      []float32 // of each output: the size of a step, and the sum of its weights in steps
	Bias            []float32
	Inputs, Outputs int
}

// panel is the part of a Packed that belongs to 32 outputs.
type panel struct {
	data             []byte
	scale, sum, bias []float32
	inputs           int
}

// PackRow rounds the weights of output j to int8 and puts them where they belong in
// data.
func PackRow(data []byte, j int, row []float32) (scale, sum float32) {
	scale, q := RoundRow(row)
	base := data[j/panelColumns*panelColumns*len(row):]
	for x, v := range q {
		sum += float32(v) // exact: below 2^24 for any row that config allows
		base[x/4*4*panelColumns+j%panelColumns*4+x%4] = byte(v)
	}
	return scale, sum
}

// RoundRow rounds numbers to int8, the largest to ±127; scale is the size of one step.
func RoundRow(row []float32) (scale float32, q []int8) {
	var top float32
	for _, v := range row {
		top = max(top, v, -v)
	}
	q = make([]int8, len(row))
	if top == 0 {
		return 0, q
	}
	for i, v := range row {
		q[i] = int8(math.RoundToEven(float64(v * (127 / top))))
	}
	return top / 127, q
}

// Activations is room for rows of bytes: a byte b of row i stands for low[i] + b·step[i].
// That they begin at the lowest number, not at zero in the middle, halves the error:
// GELU gives next to nothing below zero.
type Activations struct {
	bytes     []byte
	step, low []float32
}

// grow makes room for m rows of k bytes, and those that fill the last tile.
func (a *Activations) grow(m, k int) {
	m = roundUp(m, Tile)
	if len(a.step) < m {
		a.step, a.low = make([]float32, m), make([]float32, m)
	}
	if len(a.bytes) < m*k {
		a.bytes = make([]byte, m*k)
	}
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// MulInt8 fills dst[i][j] = bias[j] + Σ a[i][x]·w[j][x] for i < m, with each row of a
// rounded to int8 on the way. dst must have room for three rows more.
func (s Set) MulInt8(dst, a View, m int, w Packed, room *Activations) {
	k := w.Inputs
	room.grow(m, k)
	for i := range m {
		room.step[i], room.low[i] = s.quantize(room.bytes[i*k:][:k], a.Row(i, k))
	}
	for j := 0; j < w.Outputs; j += panelColumns {
		to := j + panelColumns
		s.panel(dst.From(0, j), room, m, panel{w.Data[j*k : to*k], w.Scale[j:to], w.Sum[j:to], w.Bias[j:to], k})
	}
}
