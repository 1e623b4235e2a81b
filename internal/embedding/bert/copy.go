package bert

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/pml-run/pml/internal/embedding/kernel"
)

// CopyName is the file of the int8 copy in its folder.
const CopyName = "embedding-int8.bin"

// The header of a copy is copyMagic (whose last byte is the version of the format),
// the fingerprint of what it was made from, the length of the rest and its CRC-32C.
const (
	copyMagic  = "PMLINT8\x01"
	headerSize = align
	align      = 64 // every section begins at a multiple of it
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header returns the first bytes of a copy.
func copyHeader(source [sha256.Size]byte, size uint64, sum uint32) []byte {
	h := append(make([]byte, 0, headerSize), copyMagic...)
	h = append(h, source[:]...)
	h = binary.LittleEndian.AppendUint64(h, size)
	h = binary.LittleEndian.AppendUint32(h, sum)
	return h[:headerSize]
}

// rounded returns m with int8 weights, from the copy in the cache folder, which is
// made when it is not there, is damaged or was made from another model.
func rounded(m *Model, opts Options, source [sha256.Size]byte) *Model {
	path := filepath.Join(opts.Cache, CopyName)
	if opts.Cache != "" {
		if small, err := openCopy(m, path, source); err == nil {
			return small
		}
	}
	body := writeSections(m)
	var problem error
	if opts.Cache != "" {
		small, err := storeCopy(m, path, source, body)
		if err == nil {
			return small
		}
		problem = fmt.Errorf("keep the int8 copy: %w", err)
	}
	small, err := readSections(m, body)
	if err != nil {
		panic(err) // the two halves of this file disagree
	}
	small.problem = problem
	return small
}

// storeCopy writes a copy under another name, gives it its own, and opens it.
func storeCopy(m *Model, path string, source [sha256.Size]byte, body []byte) (*Model, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+CopyName+"-")
	if err != nil {
		return nil, err
	}
	_, err = f.Write(copyHeader(source, uint64(len(body)), crc32.Checksum(body, castagnoli)))
	if err == nil {
		_, err = f.Write(body)
	}
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(f.Name()))
	}
	return openCopy(m, path, source)
}

// openCopy maps a copy after it was read through once and found whole.
func openCopy(m *Model, path string, source [sha256.Size]byte) (*Model, error) {
	if err := verify(path, source); err != nil {
		return nil, err
	}
	file, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	small, err := readSections(m, file.data[headerSize:])
	if err != nil {
		return nil, errors.Join(err, file.close())
	}
	small.files = []mapping{file}
	return small, nil
}

// verify reads instead of touching mapped pages, which would then stay resident.
func verify(path string, source [sha256.Size]byte) error {
	f, err := os.Open(path) //nolint:gosec // below our own data directory
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	head := make([]byte, headerSize)
	if _, err := io.ReadFull(f, head); err != nil {
		return err
	}
	sum := crc32.New(castagnoli)
	n, err := io.Copy(sum, f)
	if err != nil {
		return err
	}
	if !bytes.Equal(head, copyHeader(source, uint64(n), sum.Sum32())) {
		return fmt.Errorf("%s is damaged or was made from another model", path)
	}
	return nil
}

// writeSections rounds m, whose weights are fp16. It pairs with readSections.
func writeSections(m *Model) []byte {
	c := m.config
	weights := c.Hidden * (c.Vocabulary + c.Layers*(4*c.Hidden+2*c.Inner))
	w := sectionWriter{out: make([]byte, 0, weights+weights/10)} // the rest is less than a tenth
	steps, row := make([]float32, c.Vocabulary), make([]float32, c.Hidden)
	for i := range steps {
		m.set.Widen(row, m.words[2*i*c.Hidden:][:2*c.Hidden])
		step, q := kernel.RoundRow(row)
		steps[i] = step
		for _, v := range q {
			w.out = append(w.out, byte(v))
		}
	}
	w.bytes(nil) // up to the next section
	w.floats(steps)
	w.floats(m.positions)
	w.norm(m.norm)
	for i := range m.layers {
		l := &m.layers[i]
		for _, lin := range []linear{l.query, l.key, l.value, l.output, l.up, l.down} {
			w.linear(m.set, lin.half)
		}
		w.norm(l.attended)
		w.norm(l.finished)
	}
	return w.out
}

type sectionWriter struct{ out []byte }

func (w *sectionWriter) bytes(b []byte) {
	w.out = append(w.out, b...)
	w.out = append(w.out, make([]byte, -len(w.out)&(align-1))...)
}

func (w *sectionWriter) floats(list []float32) {
	b := make([]byte, 0, 4*len(list))
	for _, v := range list {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	w.bytes(b)
}

func (w *sectionWriter) norm(n norm) {
	w.floats(n.gain)
	w.floats(n.bias)
}

func (w *sectionWriter) linear(set kernel.Set, h kernel.Half) {
	data, row := make([]byte, h.Inputs*h.Outputs), make([]float32, h.Inputs)
	scale, sum := make([]float32, h.Outputs), make([]float32, h.Outputs)
	for j := range scale {
		set.Widen(row, h.Data[2*j*h.Inputs:][:2*h.Inputs])
		scale[j], sum[j] = kernel.PackRow(data, j, row)
	}
	w.bytes(data)
	w.floats(scale)
	w.floats(sum)
	w.floats(h.Bias)
}

// readSections returns a model whose large parts are within body.
func readSections(m *Model, body []byte) (*Model, error) {
	r, c := sectionReader{rest: body}, m.config
	small := &Model{config: c, set: m.set}
	small.words = r.bytes(c.Vocabulary * c.Hidden)
	small.steps = r.floats(c.Vocabulary)
	small.positions = r.floats(c.tokens() * c.Hidden)
	small.norm = r.norm(c.Hidden)
	for range c.Layers {
		var l layer
		for _, lin := range []*linear{&l.query, &l.key, &l.value, &l.output} {
			lin.packed = r.linear(c.Hidden, c.Hidden)
		}
		l.up.packed, l.down.packed = r.linear(c.Hidden, c.Inner), r.linear(c.Inner, c.Hidden)
		l.attended, l.finished = r.norm(c.Hidden), r.norm(c.Hidden)
		small.layers = append(small.layers, l)
	}
	if r.short || len(r.rest) > 0 {
		return nil, errors.New("the int8 copy has not the size of its model")
	}
	return small, nil
}

// sectionReader takes sections in order; what is missing is zero.
type sectionReader struct {
	rest  []byte
	short bool
}

func (r *sectionReader) bytes(n int) []byte {
	padded := n + -n&(align-1)
	if padded > len(r.rest) {
		r.short = true
		return make([]byte, n)
	}
	out := r.rest[:n:n]
	r.rest = r.rest[padded:]
	return out
}

func (r *sectionReader) floats(n int) []float32 {
	b, out := r.bytes(4*n), make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func (r *sectionReader) norm(n int) norm { return norm{r.floats(n), r.floats(n)} }

func (r *sectionReader) linear(inputs, outputs int) kernel.Packed {
	return kernel.Packed{
		Inputs: inputs, Outputs: outputs, Data: r.bytes(inputs * outputs),
		Scale: r.floats(outputs), Sum: r.floats(outputs), Bias: r.floats(outputs),
	}
}
