package bert

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/pml-run/pml/internal/embedding/kernel"
)

// slack is how many rows the kernels may read or write behind the last one.
const slack = kernel.Tile - 1

// scratch is the memory of one Encode, about 15 kB for each token of a MiniLM and at
// most 4 MB for 256. It is kept for later ones.
type scratch struct {
	x, joined, attended, change, inner kernel.View
	scores, values, wide               []float32
	bytes                              kernel.Activations
}

var pool = sync.Pool{New: func() any { return new(scratch) }}

func (s *scratch) grow(c config, tokens, longest int) {
	rows, columns := tokens+slack, roundUp(longest)
	s.x = kernel.View{Data: room(s.x.Data, rows*c.Hidden), Stride: c.Hidden}
	s.joined = kernel.View{Data: room(s.joined.Data, rows*3*c.Hidden), Stride: 3 * c.Hidden}
	s.attended = kernel.View{Data: room(s.attended.Data, rows*c.Hidden), Stride: c.Hidden}
	s.change = kernel.View{Data: room(s.change.Data, rows*c.Hidden), Stride: c.Hidden}
	s.inner = kernel.View{Data: room(s.inner.Data, rows*c.Inner), Stride: c.Inner}
	s.scores = room(s.scores, longest*columns)
	s.values = room(s.values, c.Hidden/c.Heads*columns)
	s.wide = room(s.wide, kernel.Tile*max(c.Hidden, c.Inner))
}

// room returns list, or a new one when it has fewer than n numbers.
func room(list []float32, n int) []float32 {
	if len(list) < n {
		return make([]float32, n)
	}
	return list
}

// roundUp gives a row of n scores a length that the kernels take.
func roundUp(n int) int { return (n + 7) &^ 7 }

// Encode returns a unit vector for each sequence of token ids. The sequences are
// computed together, without padding, by the calling goroutine; a few hundred tokens
// at a time suit the caches. It ends early when ctx does, between two layers.
func (m *Model) Encode(ctx context.Context, sequences [][]int32) ([][]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tokens, longest := 0, 0
	for _, ids := range sequences {
		if len(ids) == 0 || len(ids) > m.config.tokens() {
			return nil, fmt.Errorf("a sequence of %d tokens; 1 to %d are possible", len(ids), m.config.tokens())
		}
		tokens, longest = tokens+len(ids), max(longest, len(ids))
	}
	s, _ := pool.Get().(*scratch)
	defer pool.Put(s)
	s.grow(m.config, tokens, longest)
	if err := m.embed(s, sequences); err != nil {
		return nil, err
	}
	for i := range m.layers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m.layer(s, &m.layers[i], sequences, tokens)
	}
	return m.pool(s, sequences)
}

// embed fills s.x with the sums of words, positions and token type, normalised.
func (m *Model) embed(s *scratch, sequences [][]int32) error {
	h, row := m.config.Hidden, 0
	for _, ids := range sequences {
		for i, id := range ids {
			if id < 0 || int(id) >= m.config.Vocabulary {
				return fmt.Errorf("the token id %d is not below %d", id, m.config.Vocabulary)
			}
			x := s.x.Row(row, h)
			if m.steps == nil {
				m.set.Widen(x, m.words[2*int(id)*h:][:2*h])
			} else {
				for j, b := range m.words[int(id)*h:][:h] {
					x[j] = float32(int8(b)) * m.steps[id]
				}
			}
			m.set.AddNorm(x, m.positions[i*h:][:h], m.norm.gain, m.norm.bias, m.config.Epsilon)
			row++
		}
	}
	return nil
}

// layer is one encoder layer (Vaswani et al., Attention Is All You Need, 2017, §3.1,
// with the normalisation behind each half; Devlin et al., BERT, 2019, §3).
func (m *Model) layer(s *scratch, l *layer, sequences [][]int32, tokens int) {
	h := m.config.Hidden
	for i, lin := range []*linear{&l.query, &l.key, &l.value} {
		m.mul(s, s.joined.From(0, i*h), s.x, tokens, lin)
	}
	row := 0
	for _, ids := range sequences {
		for head := range m.config.Heads {
			m.attend(s, row, len(ids), head)
		}
		row += len(ids)
	}
	m.mul(s, s.change, s.attended, tokens, &l.output)
	m.addNorm(s, tokens, l.attended)
	m.mul(s, s.inner, s.x, tokens, &l.up)
	m.set.GELU(s.inner.Data[:tokens*m.config.Inner])
	m.mul(s, s.change, s.inner, tokens, &l.down)
	m.addNorm(s, tokens, l.finished)
}

func (m *Model) mul(s *scratch, to, from kernel.View, rows int, l *linear) {
	if m.set.Int8() {
		m.set.MulInt8(to, from, rows, l.packed, &s.bytes)
		return
	}
	m.set.MulHalf(to, from, rows, l.half, s.wide)
}

// attend is scaled dot-product attention of one head over the n tokens from row on.
func (m *Model) attend(s *scratch, row, n, head int) {
	h := m.config.Hidden
	size := h / m.config.Heads
	columns := roundUp(n)
	scores := kernel.View{Data: s.scores, Stride: columns}
	query, key, value := s.joined.From(row, head*size), s.joined.From(row, h+head*size), s.joined.From(row, 2*h+head*size)
	m.set.Products(scores, query, n, key, n, size)
	scale := float32(1 / math.Sqrt(float64(size)))
	for i := range n {
		line := scores.Row(i, columns)
		for j := n; j < columns; j++ {
			line[j] = float32(math.Inf(-1))
		}
		m.set.Softmax(line, scale)
	}
	values := kernel.View{Data: s.values, Stride: columns}
	transpose(values, value, n, size)
	m.set.Products(s.attended.From(row, head*size), scores, n, values, size, columns)
}

// transpose turns n rows into n columns and fills the rest of each row with zeros.
func transpose(to, from kernel.View, n, size int) {
	for i := range n {
		for j, v := range from.Row(i, size) {
			to.Data[j*to.Stride+i] = v
		}
	}
	for j := range size {
		clear(to.Row(j, to.Stride)[n:])
	}
}

func (m *Model) addNorm(s *scratch, rows int, n norm) {
	h := m.config.Hidden
	for i := range rows {
		m.set.AddNorm(s.x.Row(i, h), s.change.Row(i, h), n.gain, n.bias, m.config.Epsilon)
	}
}

// pool returns the mean over each sequence's tokens, at unit length.
func (m *Model) pool(s *scratch, sequences [][]int32) ([][]float32, error) {
	h, row := m.config.Hidden, 0
	out := make([][]float32, len(sequences))
	for i, ids := range sequences {
		out[i] = make([]float32, h)
		for range ids {
			for j, v := range s.x.Row(row, h) {
				out[i][j] += v
			}
			row++
		}
		if !Normalize(out[i]) {
			return nil, errors.New("the model computes no vector: its weights are damaged")
		}
	}
	return out, nil
}

// Normalize scales v to unit length, in place. It reports false, and leaves v alone,
// when that is impossible: v is zero or has something that is no finite number.
func Normalize(v []float32) bool {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if !(sum > 0) || math.IsInf(sum, 1) {
		return false
	}
	factor := 1 / math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) * factor)
	}
	return true
}
