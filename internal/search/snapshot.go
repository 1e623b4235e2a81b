package search

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/pml-run/pml/internal/fault"
)

const (
	// pageRows is how many vectors lie together: what one changed vector copies.
	pageRows = 256
	// shardCount is in how many parts a map is kept that changes by copies.
	shardCount = 256
)

// snapshot is one state of an index. It is never changed after it was published;
// what it has in common with the next one is shared, so every part says with which
// version it was made, and a draft changes only parts of its own version.
type snapshot struct {
	version uint64

	rows []row
	free []int32 // rows of no document
	ids  shards[int32]

	terms  shards[*postings]
	length int // of all texts in terms

	dimensions int // 0 without any vector
	pages      []page
	live       int // documents
	vectors    int // documents with a vector
}

// row is the place of one document.
type row struct {
	id          string // empty where no document is
	kind        Kind
	text        string
	length      int32
	reliability float32
	vector      bool
}

// page holds the vectors of pageRows rows one behind the other.
type page struct {
	version uint64
	values  []float32
}

// postings are the rows that have a term, in order.
type postings struct {
	version uint64
	list    []posting
}

// vectorOf is the vector of a row that has one.
func (s *snapshot) vectorOf(at int) []float32 {
	start := at % pageRows * s.stride()
	return s.pages[at/pageRows].values[start : start+s.dimensions : start+s.dimensions]
}

// stride is how far apart the vectors of a page are.
func (s *snapshot) stride() int { return (s.dimensions + lane - 1) / lane * lane }

// draft is a snapshot in the making.
type draft struct{ snapshot }

func newDraft(s *snapshot) *draft {
	w := &draft{*s}
	w.version++
	w.rows, w.free, w.pages = slices.Clone(s.rows), slices.Clone(s.free), slices.Clone(s.pages)
	return w
}

func (w *draft) put(d Document) {
	at, known := w.ids.get(d.ID)
	if known {
		w.unindex(at)
	} else {
		at = w.newRow()
		w.ids.put(w.version, d.ID, at)
		w.live++
		w.rows[at] = row{id: d.ID, reliability: 1}
	}
	r := &w.rows[at]
	r.kind, r.text = d.Kind, d.Lexical
	w.index(at)
}

func (w *draft) newRow() int32 {
	if n := len(w.free); n > 0 {
		at := w.free[n-1]
		w.free = w.free[:n-1]
		return at
	}
	w.rows = append(w.rows, row{})
	return int32(len(w.rows) - 1)
}

func (w *draft) remove(id string) {
	at, known := w.ids.get(id)
	if !known {
		return
	}
	w.unindex(at)
	if w.rows[at].vector {
		w.vectors--
	}
	w.rows[at] = row{}
	w.free = append(w.free, at)
	w.ids.remove(w.version, id)
	w.live--
}

// index adds the terms of a row's text.
func (w *draft) index(at int32) {
	terms, counts, length := countTerms(w.rows[at].text)
	w.rows[at].length = int32(length)
	w.length += length
	for i, term := range terms {
		list := w.postings(term)
		place, _ := slices.BinarySearchFunc(list.list, at, func(p posting, at int32) int { return cmp.Compare(p.row, at) })
		list.list = slices.Insert(list.list, place, posting{row: at, count: counts[i]})
	}
}

// unindex takes them out again.
func (w *draft) unindex(at int32) {
	terms, _, length := countTerms(w.rows[at].text)
	w.length -= length
	for _, term := range terms {
		list := w.postings(term)
		place, _ := slices.BinarySearchFunc(list.list, at, func(p posting, at int32) int { return cmp.Compare(p.row, at) })
		list.list = slices.Delete(list.list, place, place+1)
		if len(list.list) == 0 {
			w.terms.remove(w.version, term)
		}
	}
}

// postings is a term's list to change.
func (w *draft) postings(term string) *postings {
	old, known := w.terms.get(term)
	if known && old.version == w.version {
		return old
	}
	list := &postings{version: w.version}
	if known {
		list.list = append(make([]posting, 0, len(old.list)+1), old.list...)
	}
	w.terms.put(w.version, term, list)
	return list
}

func (w *draft) setVector(id string, v []float32) error {
	at, known := w.ids.get(id)
	if !known {
		return nil
	}
	had := w.rows[at].vector
	w.rows[at].vector = v != nil
	switch {
	case had && v == nil:
		w.vectors--
	case !had && v != nil:
		w.vectors++
	}
	if v == nil {
		return nil
	}
	if w.dimensions == 0 {
		w.dimensions = len(v)
	}
	if len(v) != w.dimensions || len(v) == 0 {
		return fault.New(fault.InvalidInput, "the vector of %s has %d dimensions, the index %d", id, len(v), w.dimensions)
	}
	w.ownPage(int(at) / pageRows)
	copy(w.vectorOf(int(at)), v)
	return nil
}

// ownPage makes a page that may be changed.
func (w *draft) ownPage(at int) {
	for len(w.pages) <= at {
		w.pages = append(w.pages, page{})
	}
	p := &w.pages[at]
	if p.values != nil && p.version == w.version {
		return
	}
	values := make([]float32, pageRows*w.stride())
	copy(values, p.values)
	*p = page{version: w.version, values: values}
}

// shards is a map in parts. A copy of it is cheap and shares the parts with the
// original; a part is copied when it is first changed in a version.
type shards[V any] struct{ parts [shardCount]shard[V] }

type shard[V any] struct {
	version uint64
	values  map[string]V
}

// seed spreads keys over the shards; which one a key is in shows nowhere.
var seed = maphash.MakeSeed()

func (m *shards[V]) of(key string) *shard[V] {
	return &m.parts[maphash.String(seed, key)%shardCount]
}

func (m *shards[V]) get(key string) (V, bool) {
	v, ok := m.of(key).values[key]
	return v, ok
}

func (m *shards[V]) put(version uint64, key string, value V) { m.own(version, key)[key] = value }

func (m *shards[V]) remove(version uint64, key string) { delete(m.own(version, key), key) }

func (m *shards[V]) own(version uint64, key string) map[string]V {
	s := m.of(key)
	if s.version != version {
		s.version = version
		s.values = maps.Clone(s.values)
	}
	if s.values == nil {
		s.values = map[string]V{}
	}
	return s.values
}
