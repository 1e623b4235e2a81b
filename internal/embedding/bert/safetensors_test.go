package bert

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/pml-run/pml/internal/embedding/kernel"
)

func TestParseTensorsRefuses(t *testing.T) {
	t.Parallel()
	entry := func(kind string, shape []int, offsets ...int) []byte {
		return join(map[string]any{"x": map[string]any{"dtype": kind, "shape": shape, "data_offsets": offsets}}, make([]byte, 8))
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "only 0 bytes"},
		{"short", make([]byte, 7), "only 7 bytes"},
		{"no header", make([]byte, 8), "header is damaged"},
		{"endless header", append([]byte{255, 255, 255, 255, 255, 255, 255, 255}, make([]byte, 100)...), "cut off"},
		{"header beyond the end", binary.LittleEndian.AppendUint64(nil, 1), "cut off"},
		{"not an object", join([]int{1}, nil), "header is damaged"},
		{"not a tensor", join(map[string]any{"x": 1}, nil), `tensor "x"`},
		{"no place", entry("F16", []int{1}), "its place"},
		{"beyond the data", entry("F16", []int{5}, 0, 10), "its place [0 10]"},
		{"backwards", entry("F16", []int{1}, 4, 2), "its place [4 2]"},
		{"negative", entry("F16", []int{1}, -4, 2), "x"},
		{"wrong size", entry("F16", []int{2, 3}, 0, 8), "8 bytes do not make the shape [2 3]"},
		{"negative side", entry("F16", []int{-2, -2}, 0, 8), "impossible"},
		{"overflow", entry("F32", []int{1 << 31, 1 << 31, 1 << 31}, 0, 8), "impossible"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := parseTensors(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	if list, _, err := parseTensors(entry("I64", []int{9}, 0, 8)); err != nil || list["x"].kind != "I64" {
		t.Errorf("a type that is not read: %v, %v", list, err)
	}
}

func FuzzParseTensors(f *testing.F) {
	f.Add(tensorsFile(map[string][]int{"a": {2, 3}, "b": {1}}, "F16"))
	f.Add(tensorsFile(map[string][]int{"a": {0}}, "F32"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, _, err := parseTensors(data)
		if err != nil {
			return
		}
		for name, x := range list {
			r := reader{tensors: list}
			if half := r.take(name, x.shape...); r.err() == nil {
				n := len(half) / 2
				for _, side := range x.shape {
					if side > 0 && n%side != 0 {
						t.Fatalf("%d numbers for the shape %v", n, x.shape)
					}
				}
			}
		}
	})
}

func TestToHalf(t *testing.T) {
	t.Parallel()
	var all []byte
	for h := range 1 << 16 {
		all = binary.LittleEndian.AppendUint16(all, uint16(h))
	}
	wide := make([]float32, 1<<16)
	kernel.Portable().Widen(wide, all)
	for h, v := range wide {
		if got := toHalf(math.Float32bits(v)); int(got) != h && v == v {
			t.Fatalf("%v is %#x, not %#x", v, got, h)
		}
	}
	for v, want := range map[float64]uint16{
		1 + 0x1p-11: 0x3c00, 1 + 0x1p-10 + 0x1p-11: 0x3c02, 1 + 0x1.8p-11: 0x3c01, // to the nearest, ties to even
		0x1p-25: 0, 0x1.8p-25: 1, 0x1p-14 - 0x1p-26: 0x400, 65519: 0x7bff, 65520: 0x7c00, 1e9: 0x7c00,
	} {
		if got := toHalf(math.Float32bits(float32(v))); got != want {
			t.Errorf("%v is %#x, want %#x", v, got, want)
		}
	}
	if got := toHalf(math.Float32bits(float32(math.NaN()))); got&0x7fff <= 0x7c00 {
		t.Errorf("NaN is %#x", got)
	}
}
