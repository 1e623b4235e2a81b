package bert

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// maxHeader bounds the header of a safetensors file, in bytes; that of a model with
// 64 layers has about 150,000.
const maxHeader = 8 << 20

// tensor is one array of a safetensors file.
type tensor struct {
	kind  string // F16, F32 or another that is not used
	shape []int
	data  []byte
}

// parseTensors decodes a file in the safetensors format: the length of the header in
// eight bytes, the header as JSON, the data. Every tensor is known to lie within the
// data and to have the size that its shape says.
func parseTensors(file []byte) (tensors map[string]tensor, header []byte, err error) {
	if len(file) < 8 {
		return nil, nil, fmt.Errorf("not a safetensors file: only %d bytes", len(file))
	}
	n := binary.LittleEndian.Uint64(file)
	if n > maxHeader || n > uint64(len(file)-8) {
		return nil, nil, fmt.Errorf("not a safetensors file, or cut off: a header of %d bytes in a file of %d", n, len(file))
	}
	header, data := file[8:8+n], file[8+n:]
	var list map[string]json.RawMessage
	if err := json.Unmarshal(header, &list); err != nil {
		return nil, nil, fmt.Errorf("the header is damaged: %w", err)
	}
	tensors = make(map[string]tensor, len(list))
	for name, raw := range list {
		if name == "__metadata__" {
			continue
		}
		t, err := parseTensor(raw, data)
		if err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		tensors[name] = t
	}
	return tensors, header, nil
}

func parseTensor(raw json.RawMessage, data []byte) (tensor, error) {
	var h struct {
		Kind  string   `json:"dtype"`
		Shape []int    `json:"shape"`
		Range []uint64 `json:"data_offsets"`
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		return tensor{}, err
	}
	if len(h.Range) != 2 || h.Range[0] > h.Range[1] || h.Range[1] > uint64(len(data)) {
		return tensor{}, fmt.Errorf("its place %v is not within the %d bytes of data", h.Range, len(data))
	}
	t := tensor{h.Kind, h.Shape, data[h.Range[0]:h.Range[1]]}
	size := map[string]int{"F16": 2, "F32": 4}[h.Kind]
	if size == 0 {
		return t, nil // nothing that is read has another type
	}
	for _, n := range h.Shape {
		if n < 0 || n > 0 && size > math.MaxInt/n {
			return tensor{}, fmt.Errorf("the shape %v is impossible", h.Shape)
		}
		size *= n
	}
	if size != len(t.data) {
		return tensor{}, fmt.Errorf("%d bytes do not make the shape %v of %s", len(t.data), h.Shape, h.Kind)
	}
	return t, nil
}

// reader takes tensors by name and remembers what was wrong.
type reader struct {
	tensors map[string]tensor
	errs    []error
}

// take returns a tensor as little-endian fp16. One in fp32 is rounded.
func (r *reader) take(name string, shape ...int) []byte {
	t, ok := r.tensors[name]
	size := 2
	for _, n := range shape {
		size *= n
	}
	switch {
	case !ok:
		r.errs = append(r.errs, fmt.Errorf("no tensor %q", name))
	case !slices.Equal(t.shape, shape):
		r.errs = append(r.errs, fmt.Errorf("tensor %q has the shape %v, not %v", name, t.shape, shape))
	case t.kind == "F16":
		return t.data
	case t.kind == "F32":
		return narrow(t.data)
	default:
		r.errs = append(r.errs, fmt.Errorf("tensor %q is of type %s, not F16 or F32", name, t.kind))
	}
	return nil
}

// err joins what was wrong; with one missing tensor there are usually many.
func (r *reader) err() error {
	const most = 3
	if n := len(r.errs); n > most {
		return errors.Join(append(r.errs[:most:most], fmt.Errorf("and %d problems more", n-most))...)
	}
	return errors.Join(r.errs...)
}

// narrow rounds fp32 numbers to fp16, to the nearest and ties to even.
func narrow(data []byte) []byte {
	out := make([]byte, 0, len(data)/2)
	for i := 0; i < len(data); i += 4 {
		out = binary.LittleEndian.AppendUint16(out, toHalf(binary.LittleEndian.Uint32(data[i:])))
	}
	return out
}

// toHalf rounds the bits of a binary32 number to binary16 (IEEE 754-2008, §3.4).
func toHalf(bits uint32) uint16 {
	sign := uint16(bits >> 16 & 0x8000)
	abs := math.Float32frombits(bits & 0x7fffffff)
	switch {
	case abs != abs:
		return sign | 0x7e00
	case abs >= 65520: // half a step above the largest
		return sign | 0x7c00
	case abs < 0x1p-14: // subnormal: steps of 2^-24
		return sign | uint16(math.RoundToEven(float64(abs)*0x1p24))
	}
	u := bits & 0x7fffffff
	u += 0xfff + u>>13&1 // a carry goes into the exponent, as it should
	return sign | uint16(u>>13-(127-15)<<10)
}
