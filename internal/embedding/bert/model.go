package bert

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pml-run/pml/internal/embedding/kernel"
)

// Model is a loaded encoder. It does not change and may be used by many goroutines
// until Close.
//
// With fp16 weights, model.safetensors is mapped: of a MiniLM the pages of the layers
// (21 MB) stay resident, and those of the words that occur. With int8 weights the
// copy is mapped likewise (10.6 MB) and model.safetensors is not. On the heap are
// positions, norms and biases, half a megabyte. Pages of mapped files belong to the
// system's cache, which can take them back. The files must not be changed in place.
type Model struct {
	config    config
	set       kernel.Set
	words     []byte    // fp16, or int8
	steps     []float32 // of int8 words, one for each row
	positions []float32 // with the token type added
	norm      norm
	layers    []layer
	files     []mapping
	problem   error
}

type layer struct {
	query, key, value, output linear
	attended                  norm
	up, down                  linear
	finished                  norm
}

// linear has one of its two forms.
type linear struct {
	half   kernel.Half
	packed kernel.Packed
}

type norm struct{ gain, bias []float32 }

// Options are what Open needs besides the folder.
type Options struct {
	// Kernels compute.
	Kernels kernel.Set
	// Cache is the folder of the int8 copy, 23 MB for a MiniLM. Without it, or when it
	// cannot be written, int8 weights are made anew at each start and live on the heap.
	Cache string
}

// Open reads the model of a folder.
func Open(dir string, opts Options) (*Model, error) {
	c, err := readConfig(filepath.Join(dir, "config.json"))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "model.safetensors")
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	file, err := mapFile(path)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	m := &Model{config: c, set: opts.Kernels, files: []mapping{file}}
	header, err := m.read(file.data)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), m.Close())
	}
	if !opts.Kernels.Int8() {
		return m, nil
	}
	small := rounded(m, opts, fingerprint(c, info, header))
	return small, m.Close()
}

// fingerprint tells apart what an int8 copy may have been made from.
func fingerprint(c config, info os.FileInfo, header []byte) [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%+v %d %d ", c, info.Size(), info.ModTime().UnixNano())
	h.Write(header)
	return [sha256.Size]byte(h.Sum(nil))
}

// read takes the model out of a safetensors file.
func (m *Model) read(file []byte) (header []byte, err error) {
	tensors, header, err := parseTensors(file)
	if err != nil {
		return nil, err
	}
	r := reader{tensors: tensors}
	c := m.config
	m.words = r.take("embeddings.word_embeddings.weight", c.Vocabulary, c.Hidden)
	positions := r.take("embeddings.position_embeddings.weight", c.Positions, c.Hidden)
	kinds := 2
	if t, ok := tensors["embeddings.token_type_embeddings.weight"]; ok && len(t.shape) > 0 {
		kinds = max(1, t.shape[0])
	}
	kind := r.take("embeddings.token_type_embeddings.weight", kinds, c.Hidden)
	m.norm = m.readNorm(&r, "embeddings.LayerNorm")
	for i := range c.Layers {
		m.layers = append(m.layers, m.readLayer(&r, fmt.Sprintf("encoder.layer.%d.", i)))
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	m.positions = m.widen(positions[:2*c.tokens()*c.Hidden])
	first := m.widen(kind[:2*c.Hidden])
	for i := range m.positions {
		m.positions[i] += first[i%c.Hidden]
	}
	return header, nil
}

func (m *Model) readLayer(r *reader, prefix string) layer {
	h, inner := m.config.Hidden, m.config.Inner
	linear := func(name string, outputs, inputs int) linear {
		return linear{half: kernel.Half{
			Data: r.take(prefix+name+".weight", outputs, inputs), Bias: m.widen(r.take(prefix+name+".bias", outputs)),
			Inputs: inputs, Outputs: outputs,
		}}
	}
	return layer{
		query: linear("attention.self.query", h, h), key: linear("attention.self.key", h, h),
		value: linear("attention.self.value", h, h), output: linear("attention.output.dense", h, h),
		attended: m.readNorm(r, prefix+"attention.output.LayerNorm"),
		up:       linear("intermediate.dense", inner, h), down: linear("output.dense", h, inner),
		finished: m.readNorm(r, prefix+"output.LayerNorm"),
	}
}

func (m *Model) readNorm(r *reader, name string) norm {
	h := m.config.Hidden
	return norm{m.widen(r.take(name+".weight", h)), m.widen(r.take(name+".bias", h))}
}

// widen copies fp16 to the heap as fp32; nothing stays nothing.
func (m *Model) widen(data []byte) []float32 {
	out := make([]float32, len(data)/2)
	if len(out) > 0 {
		m.set.Widen(out, data)
	}
	return out
}

// Dimensions is the length of the vectors.
func (m *Model) Dimensions() int { return m.config.Hidden }

// Vocabulary is the number of tokens; ids must be below it.
func (m *Model) Vocabulary() int { return m.config.Vocabulary }

// Tokens is the longest sequence that the model takes, at most MaxTokens.
func (m *Model) Tokens() int { return m.config.tokens() }

// Problem says why there is no int8 copy on disk although one was wanted; the model
// works all the same.
func (m *Model) Problem() error { return m.problem }

// Close gives the files back. No Encode may run, and none may follow.
func (m *Model) Close() error {
	var err error
	for _, f := range m.files {
		err = errors.Join(err, f.close())
	}
	m.files = nil
	return err
}
