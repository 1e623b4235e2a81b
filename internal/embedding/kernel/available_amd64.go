package kernel

import "golang.org/x/sys/cpu"

const wordSize = 4 // bytes of a number

// Available lists the sets that this processor has, fastest first. Every processor
// with AVX2 and FMA has F16C too, which is older than both.
func Available() []Set {
	sets := []Set{Portable()}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		sets = append([]Set{avx2()}, sets...)
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VNNI {
		sets = append([]Set{vnni()}, sets...)
	}
	return sets
}

func avx2() Set {
	s := Portable()
	s.name = AVX2
	s.dot = dotAVX2
	s.widen = func(dst []float32, src []byte) { widen(&dst[0], &src[:2*len(dst)][0], len(dst)) }
	s.softmax = func(x []float32, scale float32) { softmax(&x[0], len(x), scale) }
	s.gelu = func(x []float32) { gelu(&x[0], len(x)) }
	s.addNorm = func(x, t, gain, bias []float32, eps float32) {
		n := len(x)
		addNorm(&x[0], &t[:n][0], &gain[:n][0], &bias[:n][0], n, eps)
	}
	return s
}

func vnni() Set {
	s := avx2()
	s.name, s.int8 = VNNI, true
	s.quantize = func(dst []byte, x []float32) (step, low float32) {
		quantize(&x[0], len(x), &dst[:len(x)][0], &step, &low)
		return step, low
	}
	s.panel = panelVNNI
	return s
}

func dotAVX2(c, a View, m int, b View, bias []float32, k int) {
	_, _, _ = a.Row(m-1, k), b.Row(Tile-1, k), c.Row(m-1, Tile) // what the assembly touches is there
	_ = bias[Tile-1]
	lda, ldb, ldc := uintptr(a.Stride*wordSize), uintptr(b.Stride*wordSize), uintptr(c.Stride*wordSize)
	if m >= 3 {
		dot3x4(&a.Data[0], lda, &b.Data[0], ldb, &c.Data[0], ldc, &bias[0], k, m/3)
	}
	i := m / 3 * 3
	switch m - i {
	case 2:
		dot2x4(&a.Data[i*a.Stride], lda, &b.Data[0], ldb, &c.Data[i*c.Stride], ldc, &bias[0], k, 1)
	case 1:
		dot1x4(&a.Data[i*a.Stride], lda, &b.Data[0], ldb, &c.Data[i*c.Stride], ldc, &bias[0], k, 1)
	}
}

// mulRows is what the larger tile of the int8 kernels has.
const mulRows = 12

func panelVNNI(c View, a *Activations, m int, w panel) {
	padded := roundUp(m, Tile)
	_, _, _, _ = c.Row(padded-1, panelColumns), a.bytes[padded*w.inputs-1], a.step[padded-1], a.low[padded-1]
	_, _, _, _ = w.data[w.inputs*panelColumns-1], w.scale[panelColumns-1], w.sum[panelColumns-1], w.bias[panelColumns-1]
	ldc := uintptr(c.Stride * wordSize)
	for i := 0; i < padded; {
		mul, rows := mulInt8x12, mulRows
		if padded-i < mulRows {
			mul, rows = mulInt8x4, Tile
		}
		mul(&a.bytes[i*w.inputs], uintptr(w.inputs), &w.data[0], &c.Data[i*c.Stride], ldc, w.inputs/4,
			&w.sum[0], &w.scale[0], &w.bias[0], &a.step[i], &a.low[i])
		i += rows
	}
}
