package daemon

import (
	"context"
	"fmt"
	"slices"

	"github.com/pml-run/pml/internal/search"
	"github.com/pml-run/pml/internal/store"
)

// mostAttempts is how often a use is tried whose capability has no vector yet: it may
// have been made by that very run.
const mostAttempts = 5

// learn averages the intents of the runs that wait into the vectors of what served
// them. Runs that used the same are learnt with one write.
func (d *discovery) learn(ctx context.Context) error {
	for {
		list := d.waiting(encodeBatch)
		if len(list) == 0 {
			return nil
		}
		if err := d.learnFrom(ctx, list); err != nil {
			for _, u := range list {
				d.wait(u)
			}
			return err
		}
		if list[0].attempts > 0 {
			return nil // it was tried before; others come with the next look
		}
	}
}

// waiting takes uses out of the queue, so many at most.
func (d *discovery) waiting(most int) []use {
	var out []use
	for len(out) < most {
		select {
		case u := <-d.served:
			out = append(out, u)
		default:
			return out
		}
	}
	return out
}

func (d *discovery) learnFrom(ctx context.Context, list []use) error {
	v := d.vectors
	intents := make([]string, len(list))
	served := map[store.EmbeddingKey][]int{}
	for i, u := range list {
		intents[i] = v.model.QueryPrefix() + u.intent
		for _, key := range u.keys {
			if !slices.Contains(served[key], i) {
				served[key] = append(served[key], i)
			}
		}
	}
	made, err := v.model.Encode(ctx, intents)
	if err != nil {
		return fmt.Errorf("embed intents: %w", err)
	}
	keys := make([]store.EmbeddingKey, 0, len(served))
	for key := range served {
		keys = append(keys, key)
	}
	missing := map[store.EmbeddingKey]bool{}
	for some := range slices.Chunk(keys, storeBatch) {
		err := d.store.ChangeEmbeddings(ctx, v.space, some, func(present map[store.EmbeddingKey]store.Embedding) []store.Embedding {
			var out []store.Embedding
			for _, key := range some {
				e, there := present[key]
				if !there {
					missing[key] = true
					continue
				}
				out = append(out, taught(e, made, served[key]))
			}
			return out
		})
		if err != nil {
			return fmt.Errorf("learn from use: %w", err)
		}
	}
	d.retry(list, missing)
	return nil
}

// taught is an embedding after it has served some of the intents.
func taught(e store.Embedding, intents [][]float32, served []int) store.Embedding {
	own := e.Vector
	if e.Uses > 0 {
		own = e.Text
	}
	uses := search.Restore(e.Used, e.Uses)
	for _, i := range served {
		uses = uses.Add(intents[i])
	}
	return combined(e, own, uses)
}

// retry lets the uses wait whose things had no vector yet.
func (d *discovery) retry(list []use, missing map[store.EmbeddingKey]bool) {
	for _, u := range list {
		u.keys = slices.DeleteFunc(slices.Clone(u.keys), func(k store.EmbeddingKey) bool { return !missing[k] })
		if u.attempts++; len(u.keys) > 0 && u.attempts < mostAttempts {
			d.wait(u)
		}
	}
}
