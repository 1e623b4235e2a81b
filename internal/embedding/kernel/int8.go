package kernel

// panelColumns is how many outputs share a panel of packed int8 weights.
const panelColumns = Block

// Packed is a linear layer with int8 weights. Data holds panels of 32 outputs; in a
// panel, four inputs of each output lie together, which is what VNNI takes at once.
type Packed struct {
	Data            []byte
	Scale, Bias     []float32
	Correction      []int32 // −128 times the sum of each output's weights
	Inputs, Outputs int
}

// panel is the part of a Packed that belongs to 32 outputs.
type panel struct {
	data        []byte
	scale, bias []float32
	correction  []int32
	inputs      int
}

// PackRow rounds the weights of output j to int8 and puts them where they belong in
// data. The largest becomes ±127; scale is the size of one step.
func PackRow(data []byte, j int, row []float32) (scale float32, correction int32) {
	scale, q := RoundRow(row)
	base := data[j/panelColumns*panelColumns*len(row):]
	for x, v := range q {
		correction -= 128 * int32(v)
		base[x/4*4*panelColumns+j%panelColumns*4+x%4] = byte(v)
	}
	return scale, correction
}

// RoundRow rounds numbers to int8, the largest to ±127; scale is the size of one step.
func RoundRow(row []float32) (scale float32, q []int8) {
	bytes := make([]byte, len(row))
	scale = quantizeGo(bytes, row)
	q = make([]int8, len(row))
	for i, b := range bytes {
		q[i] = int8(int(b) - 128)
	}
	return scale, q
}

// Activations is room for rows of bytes and the sizes of their steps.
type Activations struct {
	bytes []byte
	steps []float32
}

// Grow makes room for m rows of k bytes.
func (a *Activations) Grow(m, k int) {
	m = roundUp(m, mulRows)
	if len(a.steps) < m {
		a.steps = make([]float32, m)
	}
	if len(a.bytes) < m*k {
		a.bytes = make([]byte, m*k)
	}
}

// mulRows is what the largest tile of the int8 kernels has.
const mulRows = 12

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// MulInt8 fills dst[i][j] = bias[j] + Σ a[i][x]·w[j][x] for i < m, with each row of a
// rounded to int8 on the way. dst must have room for three rows more.
func (s Set) MulInt8(dst, a View, m int, w Packed, room *Activations) {
	k := w.Inputs
	room.Grow(m, k)
	for i := range m {
		room.steps[i] = s.quantize(room.bytes[i*k:][:k], a.Row(i, k))
	}
	for j := 0; j < w.Outputs; j += panelColumns {
		to := j + panelColumns
		p := panel{w.Data[j*k : to*k], w.Scale[j:to], w.Bias[j:to], w.Correction[j:to], k}
		s.panel(dst.From(0, j), room.bytes, m, p, room.steps)
	}
}
