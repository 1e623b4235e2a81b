package kernel

import (
	"encoding/binary"
	"math"
)

// dotGo keeps eight sums at a time, as many as the compiler holds in registers.
func dotGo(c, a View, m int, b View, bias []float32, k int) {
	b0, b1, b2, b3 := b.Row(0, k), b.Row(1, k), b.Row(2, k), b.Row(3, k)
	for i := 0; i < m; i += 2 {
		second := min(i+1, m-1) // the last row of an odd number is done twice
		x0, x1 := a.Row(i, k), a.Row(second, k)
		var s00, s01, s02, s03, s10, s11, s12, s13 float32
		for x := range k {
			p, q := x0[x], x1[x]
			w0, w1, w2, w3 := b0[x], b1[x], b2[x], b3[x]
			s00 += p * w0
			s01 += p * w1
			s02 += p * w2
			s03 += p * w3
			s10 += q * w0
			s11 += q * w1
			s12 += q * w2
			s13 += q * w3
		}
		to0, to1 := c.Row(i, Tile), c.Row(second, Tile)
		to0[0], to0[1], to0[2], to0[3] = s00+bias[0], s01+bias[1], s02+bias[2], s03+bias[3]
		to1[0], to1[1], to1[2], to1[3] = s10+bias[0], s11+bias[1], s12+bias[2], s13+bias[3]
	}
}

func widenGo(dst []float32, src []byte) {
	src = src[:2*len(dst)]
	for i := range dst {
		dst[i] = half(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// half turns a binary16 number into fp32 (IEEE 754-2008, §3.4). The shifted bits are
// the number over 2^112, for subnormal ones too.
func half(h uint16) float32 {
	const rebase = 0x1p112
	bits := uint32(h&0x7fff) << 13
	if h&0x7c00 == 0x7c00 {
		return math.Float32frombits(bits | 0x7f800000 | uint32(h&0x8000)<<16)
	}
	f := math.Float32frombits(bits) * rebase
	return math.Float32frombits(math.Float32bits(f) | uint32(h&0x8000)<<16)
}

func softmaxGo(x []float32, scale float32) {
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	var sum float32
	for i, v := range x {
		x[i] = float32(math.Exp(float64(scale * (v - top))))
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}

func geluGo(x []float32) {
	for i, v := range x {
		x[i] = float32(float64(v) * (1 + math.Erf(float64(v)*math.Sqrt2/2)) / 2)
	}
}

func addNormGo(x, t, gain, bias []float32, eps float32) {
	var mean, variance float32
	for i := range x {
		x[i] += t[i]
		mean += x[i]
	}
	mean /= float32(len(x))
	for _, v := range x {
		variance += (v - mean) * (v - mean)
	}
	factor := float32(1 / math.Sqrt(float64(variance/float32(len(x))+eps)))
	for i, v := range x {
		x[i] = (v-mean)*factor*gain[i] + bias[i]
	}
}

func quantizeGo(dst []byte, x []float32) (step, low float32) {
	low, high := x[0], x[0]
	for _, v := range x {
		low, high = min(low, v), max(high, v)
	}
	if low == high {
		clear(dst)
		return 0, low
	}
	factor := 255 / (high - low)
	for i, v := range x {
		dst[i] = byte(math.RoundToEven(float64((v - low) * factor)))
	}
	return (high - low) / 255, low
}

func panelGo(c View, a *Activations, m int, w panel) {
	for i := range m {
		row := a.bytes[i*w.inputs:][:w.inputs]
		var sums [panelColumns]int32
		for x := 0; x < w.inputs; x += 4 {
			four := w.data[x*panelColumns:][:4*panelColumns]
			for j := range sums {
				at := four[4*j:][:4]
				sums[j] += int32(row[x])*int32(int8(at[0])) + int32(row[x+1])*int32(int8(at[1])) +
					int32(row[x+2])*int32(int8(at[2])) + int32(row[x+3])*int32(int8(at[3]))
			}
		}
		to := c.Row(i, panelColumns)
		for j, sum := range sums {
			to[j] = (float32(sum)*a.step[i]+a.low[i]*w.sum[j])*w.scale[j] + w.bias[j]
		}
	}
}
