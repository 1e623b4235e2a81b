package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pml-run/pml/internal/search"
	"github.com/pml-run/pml/internal/store"
)

const (
	// encodeBatch is how many texts are encoded at once: some 0.2 s of work.
	encodeBatch = 32
	// storeBatch is how many vectors are stored at once: the embedded database takes
	// 7 ms for each, and nothing else meanwhile.
	storeBatch = 8
	// keepVectors is how long the vectors of what is gone are kept: a server that
	// comes back finds what was learnt of its tools.
	keepVectors = 30 * 24 * time.Hour
)

// vectors are those of one model.
type vectors struct {
	model   *model
	space   store.EmbeddingSpace
	version int64             // up to which the store's were read
	stored  map[string]string // the hashes of the texts that they are of, by id
	placed  map[string]bool   // the finder has them
	pruned  bool
}

func newVectors(m *model) *vectors {
	return &vectors{
		model: m, space: store.EmbeddingSpace{Model: m.Model(), Dimensions: m.Dimensions()},
		stored: map[string]string{}, placed: map[string]bool{},
	}
}

// embedAll reads the vectors that the store has, embeds the texts that have none, and
// learns from the runs that wait. Without a model there is nothing to do.
func (d *discovery) embedAll(ctx context.Context) error {
	d.learning.Lock()
	defer d.learning.Unlock()
	v := d.vectors
	if v == nil {
		return nil
	}
	if err := d.place(ctx); err != nil {
		return err
	}
	d.finder.SetEncoder(v.model, "")
	if !v.pruned {
		if _, err := d.store.PruneEmbeddings(ctx, v.space, time.Now().Add(-keepVectors)); err != nil {
			return err
		}
		v.pruned = true
	}
	for {
		missing := v.missing(d.finder.Texts()) // each time: what is new should not wait for thousands
		if err := d.embed(ctx, missing[:min(len(missing), encodeBatch)]); err != nil {
			return err
		}
		if err := d.learn(ctx); err != nil {
			return err
		}
		if err := d.place(ctx); err != nil || len(missing) <= encodeBatch {
			return err
		}
	}
}

// place hands vectors that are new in the store to the finder. What was away and has
// come back has lost its vector here: then all are read again.
func (d *discovery) place(ctx context.Context) error {
	v, texts := d.vectors, d.finder.Texts()
	maps.DeleteFunc(v.placed, func(id string, _ bool) bool { _, there := texts[id]; return !there })
	if d.again.Swap(false) {
		v.forget()
	}
	if err := d.placeNew(ctx, texts); err != nil || !d.finder.Exact() || !v.lost(texts) {
		return err
	}
	v.forget()
	return d.placeNew(ctx, texts)
}

// forget lets all vectors be read again: what was deleted has left no other trace.
func (v *vectors) forget() {
	v.version = 0
	clear(v.stored)
}

// lost reports whether the vector of a text is stored and not at hand.
func (v *vectors) lost(texts map[string]search.DenseText) bool {
	for id := range texts {
		if v.stored[id] != "" && !v.placed[id] {
			return true
		}
	}
	return false
}

// placeNew hands over what was stored since it was read last.
func (d *discovery) placeNew(ctx context.Context, texts map[string]search.DenseText) error {
	v := d.vectors
	list, version, err := d.store.Embeddings(ctx, v.space, v.version)
	if err != nil {
		return err
	}
	fresh := map[string][]float32{}
	for _, e := range list {
		v.stored[e.Ref] = e.TextHash
		if _, there := texts[e.Ref]; there && d.finder.Exact() {
			fresh[e.Ref], v.placed[e.Ref] = e.Vector, true
		}
	}
	v.version = version
	if len(fresh) == 0 {
		return nil
	}
	return d.finder.SetVectors(fresh)
}

// text is one to be embedded.
type text struct {
	store.EmbeddingKey

	text, hash string
}

// missing are the texts without a vector, capabilities first: they are few and worth
// most.
func (v *vectors) missing(texts map[string]search.DenseText) []text {
	var out []text
	for id, t := range texts {
		whole := v.model.DocumentPrefix() + t.Text
		sum := sha256.Sum256([]byte(whole))
		hash := hex.EncodeToString(sum[:16])
		if v.stored[id] != hash {
			out = append(out, text{store.EmbeddingKey{Kind: store.EmbeddingKind(t.Kind), Ref: id}, whole, hash})
		}
	}
	slices.SortFunc(out, func(a, b text) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Ref, b.Ref)) })
	return out
}

// embed makes and stores the vectors of some texts. What the things have learnt from
// use stays with them.
func (d *discovery) embed(ctx context.Context, list []text) error {
	if len(list) == 0 {
		return nil
	}
	v := d.vectors
	texts := make([]string, len(list))
	for i, t := range list {
		texts[i] = t.text
	}
	made, err := v.model.Encode(ctx, texts)
	if err != nil {
		return fmt.Errorf("embed descriptions: %w", err)
	}
	for from := 0; from < len(list); from += storeBatch {
		to := min(from+storeBatch, len(list))
		keys := make([]store.EmbeddingKey, 0, storeBatch)
		for _, t := range list[from:to] {
			keys = append(keys, t.EmbeddingKey)
		}
		change := func(present map[store.EmbeddingKey]store.Embedding) []store.Embedding {
			out := make([]store.Embedding, 0, storeBatch)
			for i, t := range list[from:to] {
				old := present[t.EmbeddingKey]
				old.EmbeddingKey, old.TextHash = t.EmbeddingKey, t.hash
				out = append(out, combined(old, made[from+i], search.Restore(old.Used, old.Uses)))
			}
			return out
		}
		if err := d.store.ChangeEmbeddings(ctx, v.space, keys, change); err != nil {
			return fmt.Errorf("store vectors: %w", err)
		}
		for _, t := range list[from:to] {
			v.stored[t.Ref] = t.hash
		}
	}
	return nil
}

// combined is an embedding with the vector of its text and what it has learnt.
func combined(e store.Embedding, own []float32, uses search.Uses) store.Embedding {
	e.Vector, e.Text, e.Used, e.Uses = uses.Vector(own), nil, nil, 0
	if len(uses.Mean) == len(own) && uses.Count > 0 {
		e.Text, e.Used, e.Uses = own, uses.Mean, uses.Count
	}
	return e
}
