package search

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pml-run/pml/internal/fault"
)

// Kind tells what a document describes.
type Kind string

// The kinds of documents.
const (
	Tools        Kind = "tool"
	Capabilities Kind = "capability"
)

// Document is something that can be found.
type Document struct {
	ID      string
	Kind    Kind
	Lexical string // Text.Lexical; the index does not need Text.Dense
}

// Index finds documents by their words and vectors. It is safe for concurrent use:
// a search reads an immutable snapshot and holds no lock, and a change makes the
// next snapshot, which shares what did not change with the one before. One change
// of many documents costs little more than one of a single document, so callers
// hand over what they have together.
type Index struct {
	now atomic.Pointer[snapshot]

	mu sync.Mutex // held by the one that makes the next snapshot
}

// NewIndex makes an empty index.
func NewIndex() *Index {
	x := &Index{}
	x.now.Store(&snapshot{})
	return x
}

// Len is the number of documents.
func (x *Index) Len() int { return x.now.Load().live }

// Put adds documents and replaces those with the same ids. A replaced document
// keeps its vector and its reliability until others are set.
func (x *Index) Put(documents ...Document) error {
	for _, d := range documents {
		if d.ID == "" || d.Kind != Tools && d.Kind != Capabilities {
			return fault.New(fault.InvalidInput, "document %q of kind %q cannot be indexed", d.ID, d.Kind)
		}
	}
	return x.change(func(w *draft) error {
		for _, d := range documents {
			w.put(d)
		}
		return nil
	})
}

// Remove takes documents out; unknown ids are none.
func (x *Index) Remove(ids ...string) error {
	return x.change(func(w *draft) error {
		for _, id := range ids {
			w.remove(id)
		}
		return nil
	})
}

// SetVectors sets the vectors of documents; a nil one takes a document's vector
// away, and unknown ids are passed over: the document was removed while its text
// was encoded. All vectors of an index have one length, that of the first; another
// length is an error and changes nothing.
func (x *Index) SetVectors(vectors map[string][]float32) error {
	return x.change(func(w *draft) error {
		for _, id := range slices.Sorted(maps.Keys(vectors)) {
			if err := w.setVector(id, vectors[id]); err != nil {
				return err
			}
		}
		return nil
	})
}

// ClearVectors takes all vectors away: another model's come.
func (x *Index) ClearVectors() error {
	return x.change(func(w *draft) error {
		w.pages, w.dimensions, w.vectors = nil, 0, 0
		for i := range w.rows {
			w.rows[i].vector = false
		}
		return nil
	})
}

// SetReliability sets by how much documents' scores are multiplied (see
// ToolReliability and CapabilityReliability); at first it is 1. Unknown ids are
// passed over.
func (x *Index) SetReliability(factors map[string]float64) error {
	return x.change(func(w *draft) error {
		for id, f := range factors {
			if f <= 0 || f > maxReliability {
				return fault.New(fault.InvalidInput, "the reliability of %s is %g", id, f)
			}
			if row, ok := w.ids.get(id); ok {
				w.rows[row].reliability = float32(f)
			}
		}
		return nil
	})
}

// change makes the next snapshot; an error leaves the present one in place.
func (x *Index) change(do func(*draft) error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := newDraft(x.now.Load())
	if err := do(w); err != nil {
		return err
	}
	x.now.Store(&w.snapshot)
	return nil
}
