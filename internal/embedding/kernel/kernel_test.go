package kernel_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/pml-run/pml/internal/embedding/kernel"
)

// sets runs a test for every set of this processor, and for int8 weights in plain Go.
func sets(t *testing.T, test func(t *testing.T, s kernel.Set)) {
	t.Helper()
	for _, s := range kernel.Available() {
		t.Run(s.Name(), func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

func numbers(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	return out
}

// near fails unless the numbers agree to tolerance times the largest one.
func near(t *testing.T, what string, got, want []float32, tolerance float64) {
	t.Helper()
	var top float64
	for _, v := range want {
		top = max(top, math.Abs(float64(v)))
	}
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= tolerance*top) {
			t.Fatalf("%s: number %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// exact is the product in float64.
func exact(a, b kernel.View, m, n, k int, bias []float32) []float32 {
	out := make([]float32, 0, m*n)
	for i := range m {
		for j := range n {
			var sum float64
			for x := range k {
				sum += float64(a.Row(i, k)[x]) * float64(b.Row(j, k)[x])
			}
			if bias != nil {
				sum += float64(bias[j])
			}
			out = append(out, float32(sum))
		}
	}
	return out
}

func flat(v kernel.View, m, n int) []float32 {
	var out []float32
	for i := range m {
		out = append(out, v.Row(i, n)...)
	}
	return out
}

func TestProducts(t *testing.T) {
	t.Parallel()
	sets(t, func(t *testing.T, s kernel.Set) {
		for m := 1; m <= 14; m++ {
			for _, k := range []int{8, 16, 32, 72} {
				for _, n := range []int{4, 7, 9} {
					a := kernel.View{Data: numbers(m*(k+5), 1), Stride: k + 5}
					b := kernel.View{Data: numbers((n+3)*(k+8), 2), Stride: k + 8}
					c := kernel.View{Data: make([]float32, m*20), Stride: 20}
					s.Products(c, a, m, b, n, k)
					near(t, strconv.Itoa(m), flat(c, m, n), exact(a, b, m, n, k, nil), 1e-5)
					if c.Data[19] != 0 {
						t.Fatal("wrote beyond its columns")
					}
				}
			}
		}
	})
}

// fp16 is numbers as binary16, cut off, and what they became.
func fp16(n int, seed uint64) (data []byte, values []float32) {
	r := rand.New(rand.NewPCG(seed, 2))
	for range n {
		bits := uint16(r.Uint32())
		bits = bits&0x83ff | uint16(10+r.IntN(6))<<10
		data = binary.LittleEndian.AppendUint16(data, bits)
	}
	values = make([]float32, n)
	kernel.Portable().Widen(values, data)
	return data, values
}

func TestWiden(t *testing.T) {
	t.Parallel()
	var data []byte
	for h := range 1 << 16 {
		data = binary.LittleEndian.AppendUint16(data, uint16(h))
	}
	for h, want := range map[int]float32{
		0: 0, 1: 0x1p-24, 0x3ff: 0x3ffp-24, 0x400: 0x1p-14, 0x3c00: 1, 0xc000: -2, 0x3555: 0x555p-12, 0x7bff: 65504,
		0x7c00: float32(math.Inf(1)), 0xfc00: float32(math.Inf(-1)),
	} {
		got := make([]float32, 8)
		kernel.Portable().Widen(got, data[2*h&^15:])
		if got[h%8] != want {
			t.Errorf("fp16 %#x is %v, want %v", h, got[h%8], want)
		}
	}
	want := make([]float32, 1<<16)
	kernel.Portable().Widen(want, data)
	sets(t, func(t *testing.T, s kernel.Set) {
		got := make([]float32, 1<<16)
		s.Widen(got, data)
		for h := range got {
			if got[h] != want[h] && !(got[h] != got[h] && want[h] != want[h]) {
				t.Fatalf("fp16 %#x is %v, want %v", h, got[h], want[h])
			}
		}
	})
}

func TestMulHalf(t *testing.T) {
	t.Parallel()
	const n, k = 64, 96
	data, values := fp16(n*k, 3)
	bias := numbers(n, 4)
	sets(t, func(t *testing.T, s kernel.Set) {
		for _, m := range []int{1, 2, 3, 4, 5, 66} {
			a := kernel.View{Data: numbers(m*k, 5), Stride: k}
			c := kernel.View{Data: make([]float32, m*n), Stride: n}
			s.MulHalf(c, a, m, kernel.Half{Data: data, Bias: bias, Inputs: k, Outputs: n}, make([]float32, kernel.Tile*k))
			near(t, strconv.Itoa(m), c.Data, exact(a, kernel.View{Data: values, Stride: k}, m, n, k, bias), 1e-5)
		}
	})
}

func pack(w []float32, n, k int, bias []float32) kernel.Packed {
	p := kernel.Packed{Data: make([]byte, n*k), Scale: make([]float32, n), Sum: make([]float32, n), Bias: bias, Inputs: k, Outputs: n}
	for j := range n {
		p.Scale[j], p.Sum[j] = kernel.PackRow(p.Data, j, w[j*k:][:k])
	}
	return p
}

func TestMulInt8(t *testing.T) {
	t.Parallel()
	const n, k = 64, 96
	weights, bias := numbers(n*k, 6), numbers(n, 7)
	w := pack(weights, n, k, bias)
	for m := 1; m <= 30; m++ {
		x := numbers(m*k, uint64(m))
		clear(x[:k]) // of one number only
		a := kernel.View{Data: x, Stride: k}
		wide := func() kernel.View { return kernel.View{Data: make([]float32, (m+3)*n), Stride: n} }
		want := wide()
		kernel.Portable().MulInt8(want, a, m, w, new(kernel.Activations))
		near(t, "rounded "+strconv.Itoa(m), want.Data, exact(a, kernel.View{Data: weights, Stride: k}, m, n, k, bias), 0.02)
		for _, s := range kernel.Available() {
			if got := wide(); s.Int8() {
				s.MulInt8(got, a, m, w, new(kernel.Activations))
				near(t, s.Name()+strconv.Itoa(m), got.Data[:m*n], want.Data[:m*n], 1e-6)
			}
		}
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	const n = 64
	portable := kernel.Portable()
	inputs := map[string][]float32{"normal": numbers(n, 8), "zero": make([]float32, n), "wide": numbers(n, 9)}
	for i := range inputs["wide"] {
		inputs["wide"][i] *= 40
	}
	inputs["wide"][n-1] = float32(math.Inf(-1)) // how columns beyond a sequence are marked
	sets(t, func(t *testing.T, s kernel.Set) {
		for name, in := range inputs {
			want, got := append([]float32(nil), in...), append([]float32(nil), in...)
			portable.Softmax(want, 0.3)
			s.Softmax(got, 0.3)
			near(t, name+" softmax", got, want, 1e-6)
			if name == "wide" {
				continue
			}
			want, got = append([]float32(nil), in...), append([]float32(nil), in...)
			portable.GELU(want)
			s.GELU(got)
			near(t, name+" gelu", got, want, 1e-6)
			portable.AddNorm(want, numbers(n, 10), numbers(n, 11), numbers(n, 12), 1e-12)
			s.AddNorm(got, numbers(n, 10), numbers(n, 11), numbers(n, 12), 1e-12)
			near(t, name+" norm", got, want, 1e-5)
		}
	})
}

// TestFormulas holds plain Go against known values.
func TestFormulas(t *testing.T) {
	t.Parallel()
	s := kernel.Portable()
	x := []float32{0, float32(math.Log(2)), 0, 0, 0, 0, 0, 0}
	s.Softmax(x, 1)
	near(t, "softmax", x, []float32{1. / 9, 2. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9}, 1e-6)
	x = []float32{0, 1, -1, 2, -2, 3, -3, 10}
	s.GELU(x)
	near(t, "gelu", x, []float32{0, 0.8413447, -0.1586553, 1.9544997, -0.0455003, 2.9959502, -0.0040498, 10}, 1e-6)
	x = []float32{1, 2, 1, 2, 1, 2, 1, 2}
	one, zero := []float32{1, 1, 1, 1, 1, 1, 1, 1}, make([]float32, 8)
	s.AddNorm(x, zero, one, one, 0)
	near(t, "norm", x, []float32{0, 2, 0, 2, 0, 2, 0, 2}, 1e-6)
}

func TestSelect(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", kernel.Go} {
		if s, err := kernel.Select(name); err != nil || name != "" && s.Name() != name {
			t.Errorf("Select(%q): %q, %v", name, s.Name(), err)
		}
	}
	if _, err := kernel.Select("sse"); err == nil {
		t.Error("an unknown name was taken")
	}
}

// BenchmarkMul multiplies 66 tokens by the weights of a feed-forward layer.
func BenchmarkMul(b *testing.B) {
	const m, n, k = 66, 1536, 384
	data, values := fp16(n*k, 1)
	packed := pack(values, n, k, make([]float32, n))
	half := kernel.Half{Data: data, Bias: make([]float32, n), Inputs: k, Outputs: n}
	a := kernel.View{Data: numbers(m*k, 2), Stride: k}
	c := kernel.View{Data: make([]float32, (m+3)*n), Stride: n}
	for _, s := range kernel.Available() {
		b.Run(s.Name(), func(b *testing.B) {
			wide, room := make([]float32, kernel.Tile*k), new(kernel.Activations)
			for b.Loop() {
				if s.Int8() {
					s.MulInt8(c, a, m, packed, room)
				} else {
					s.MulHalf(c, a, m, half, wide)
				}
			}
			b.ReportMetric(2*m*n*k*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gflop/s")
		})
	}
}
