package kernel

import (
	"fmt"
	"strings"
)

// The names of the sets.
const (
	VNNI = "vnni" // int8 weights, AVX-512 VNNI; the rest as AVX2
	AVX2 = "avx2" // fp16 weights, fp32 arithmetic with AVX2 and FMA
	Go   = "go"   // fp16 weights, fp32 arithmetic in plain Go
)

// Block is what the sides of matrices must be multiples of: inner sides of 16, the
// outputs of int8 products of 32. Buffers that Products reads or writes must have
// room for the next multiple of Tile rows or columns.
const (
	Block = 32
	Tile  = 4
)

// View is a matrix within a slice: row i begins at Data[i*Stride].
type View struct {
	Data   []float32
	Stride int
}

// From is the part of v that begins at a row and a column.
func (v View) From(row, column int) View { return View{v.Data[row*v.Stride+column:], v.Stride} }

// Row returns n numbers of a row.
func (v View) Row(i, n int) []float32 { return v.Data[i*v.Stride:][:n:n] }

// Set is one implementation of the arithmetic. It is a value without state, safe
// for use by many goroutines.
type Set struct {
	name string
	int8 bool

	// dot fills Tile columns of c: c[i][j] = bias[j] + Σ a[i][x]·b[j][x], i < m, x < k.
	dot func(c, a View, m int, b View, bias []float32, k int)
	// widen turns little-endian fp16 into fp32, len(dst) numbers, a multiple of 8.
	widen   func(dst []float32, src []byte)
	softmax func(x []float32, scale float32)
	gelu    func(x []float32)
	addNorm func(x, t, gain, bias []float32, eps float32)
	// quantize writes x as bytes above the lowest number, in steps.
	quantize func(dst []byte, x []float32) (step, low float32)
	// panel fills one panel of columns of c from m rows of bytes; it may write up to
	// three rows more.
	panel func(c View, a *Activations, m int, w panel)
}

// Name is one of VNNI, AVX2 and Go.
func (s Set) Name() string { return s.name }

// Int8 reports whether the set multiplies int8 weights, with MulInt8; otherwise
// they are fp16, and MulHalf does it.
func (s Set) Int8() bool { return s.int8 }

// Select returns the named set, or with an empty name the fastest that this
// processor has.
func Select(name string) (Set, error) {
	sets := Available()
	if name == "" {
		return sets[0], nil
	}
	names := make([]string, len(sets))
	for i, s := range sets {
		if s.name == name {
			return s, nil
		}
		names[i] = s.name
	}
	return Set{}, fmt.Errorf("this processor has no kernels %q, only %s", name, strings.Join(names, ", "))
}

// Portable is the set in plain Go, for fp16 weights.
func Portable() Set {
	return Set{
		name: Go, dot: dotGo, widen: widenGo, softmax: softmaxGo, gelu: geluGo, addNorm: addNormGo,
		quantize: quantizeGo, panel: panelGo,
	}
}

// WithInt8 is s multiplying int8 weights. For a set that is made for fp16 that is
// slower, and the same to the bit as VNNI: it is how tests reach int8 everywhere.
func (s Set) WithInt8() Set {
	s.int8 = true
	return s
}

// none is the bias of Products.
var none [Tile]float32

// Products fills dst[i][j] = Σ a[i][x]·b[j][x] for i < m and j < n. k is a multiple of 8.
func (s Set) Products(dst, a View, m int, b View, n, k int) {
	for j := 0; j < n; j += Tile {
		s.dot(dst.From(0, j), a, m, b.From(j, 0), none[:], k)
	}
}

// Half is a linear layer with fp16 weights, one row of Inputs numbers for each output.
type Half struct {
	Data            []byte
	Bias            []float32
	Inputs, Outputs int
}

// MulHalf fills dst[i][j] = bias[j] + Σ a[i][x]·w[j][x] for i < m. wide is room for
// Tile·Inputs numbers.
func (s Set) MulHalf(dst, a View, m int, w Half, wide []float32) {
	wide = wide[:Tile*w.Inputs]
	for j := 0; j < w.Outputs; j += Tile {
		s.widen(wide, w.Data[2*j*w.Inputs:])
		s.dot(dst.From(0, j), a, m, View{wide, w.Inputs}, w.Bias[j:], w.Inputs)
	}
}

// Widen turns little-endian fp16 into fp32; len(dst) is a multiple of 8.
func (s Set) Widen(dst []float32, src []byte) { s.widen(dst, src) }

// Softmax replaces x by e^(scale·x) over their sum; len(x) is a multiple of 8.
func (s Set) Softmax(x []float32, scale float32) { s.softmax(x, scale) }

// GELU replaces each number by x·(1+erf(x/√2))/2; len(x) is a multiple of 8
// (Hendrycks and Gimpel, Gaussian Error Linear Units, 2016, §2).
func (s Set) GELU(x []float32) { s.gelu(x) }

// AddNorm adds t to x and normalises the sum to mean 0 and variance 1, then scales
// by gain and adds bias (Ba, Kiros and Hinton, Layer Normalization, 2016, eq. 4).
func (s Set) AddNorm(x, t, gain, bias []float32, eps float32) { s.addNorm(x, t, gain, bias, eps) }
