package search

import (
	"context"
	"fmt"
	"strings"
)

// Encoder makes vectors of texts. All are of length one.
type Encoder interface {
	// Model names the model; vectors of different models do not compare.
	Model() string
	// Encode returns one vector for each text.
	Encode(ctx context.Context, texts []string) ([][]float32, error)
	// QueryPrefix is what the model wants to see before a query.
	QueryPrefix() string
}

// Query is what to search for.
type Query struct {
	Text string
	// Vectors are those of the whole text, first, and of its sentences. Without any
	// the search goes by words only.
	Vectors [][]float32
}

// Ask makes a query of an intent. With several sentences in it, each of the first
// eight is looked for too: a task of many steps is like none of the tools that it
// needs. A nil encoder gives a query by words.
func Ask(ctx context.Context, e Encoder, intent string) (Query, error) {
	q := Query{Text: intent}
	if e == nil || strings.TrimSpace(intent) == "" {
		return q, nil
	}
	texts := QueryTexts(e, intent)
	vectors, err := e.Encode(ctx, texts)
	if err != nil {
		return q, fmt.Errorf("encode intent: %w", err)
	}
	if len(vectors) != len(texts) {
		return q, fmt.Errorf("encode intent: %d vectors for %d texts", len(vectors), len(texts))
	}
	q.Vectors = vectors
	return q, nil
}

// QueryTexts are the texts that Ask encodes, the whole intent first.
func QueryTexts(e Encoder, intent string) []string {
	texts := []string{e.QueryPrefix() + intent}
	for _, s := range sentences(intent) {
		texts = append(texts, e.QueryPrefix()+s)
	}
	return texts
}
