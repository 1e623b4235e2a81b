package kernel_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/pml-run/pml/internal/embedding/kernel"
)

// put appends numbers to the machine's memory and returns where they are. Between
// what is put there is a gap, so that nothing is right by being next to it.
func (m *machine) put(list []float32) int {
	at := len(m.memory)
	for _, v := range list {
		m.memory = binary.LittleEndian.AppendUint32(m.memory, math.Float32bits(v))
	}
	m.memory = append(m.memory, make([]byte, 20)...)
	return at
}

func (m *machine) bytes(b []byte) int {
	m.put(nil) // the gap
	m.memory = append(m.memory, b...)
	return len(m.memory) - len(b)
}

func (m *machine) floats(at, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(m.memory[at+4*i:]))
	}
	return out
}

// TestGeneratedInt8 multiplies with the generated code, by the machine, what plain Go
// multiplies too.
func TestGeneratedInt8(t *testing.T) {
	t.Parallel()
	const n, k = 32, 48
	s := readSource(t)
	for name, rows := range map[string]int{"mulInt8x12": 12, "mulInt8x4": 4} {
		x, bias := numbers(rows*k, uint64(rows)), numbers(n, 2)
		for i := range x[:k] {
			x[i] = 0.25 // a row of one number only
		}
		w := pack(numbers(n*k, 3), n, k, bias)
		want := kernel.View{Data: make([]float32, (rows+3)*n), Stride: n}
		kernel.Portable().MulInt8(want, kernel.View{Data: x, Stride: k}, rows, w, new(kernel.Activations))

		m := &machine{t: t}
		steps, lows, room := m.put(make([]float32, rows)), m.put(make([]float32, rows)), m.bytes(make([]byte, rows*k))
		for i := range rows {
			m.arguments = map[string]int{"x": m.put(x[i*k:][:k]), "n": k, "dst": room + i*k, "step": steps + 4*i, "low": lows + 4*i}
			m.run(s, "quantize")
		}
		c := m.put(make([]float32, rows*(n+5)))
		m.arguments = map[string]int{
			"a": room, "lda": k, "w": m.bytes(w.Data), "c": c, "ldc": 4 * (n + 5), "groups": k / 4,
			"sum": m.put(w.Sum), "scale": m.put(w.Scale), "bias": m.put(bias), "step": steps, "low": lows,
		}
		m.run(s, name)
		for i := range rows {
			got := m.floats(c+i*4*(n+5), n+5)
			near(t, name, got[:n], want.Row(i, n), 1e-6)
			for _, v := range got[n:] {
				if v != 0 {
					t.Fatalf("%s wrote beyond its columns", name)
				}
			}
		}
	}
}
