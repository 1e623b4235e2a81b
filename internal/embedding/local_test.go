package embedding_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/embedding"
	"github.com/pml-run/pml/internal/embedding/kernel"
	"github.com/pml-run/pml/internal/embedding/wordpiece"
)

func TestTokensAreTheOriginals(t *testing.T) {
	t.Parallel()
	tok, err := wordpiece.Load(filepath.Join(weights(t), "tokenizer.json"))
	must(t, err)
	for _, r := range references(t) {
		if diff := cmp.Diff(r.Tokens, tok.Encode(r.Text, 256)); diff != "" {
			t.Errorf("%q: %s", r.Text, diff)
		}
	}
}

func TestVectorsAreTheOriginals(t *testing.T) {
	t.Parallel()
	dir, list := weights(t), references(t)
	if raceDetector {
		list = list[4:8] // plain Go is thirty times slower with it; these have few tokens
	}
	texts := make([]string, len(list))
	for i, r := range list {
		texts[i] = r.Text
	}
	near := func(l *embedding.Local, least float64) func(t *testing.T) {
		return func(t *testing.T) {
			vectors, err := l.Encode(t.Context(), texts)
			must(t, err)
			lowest := 1.0
			for i, v := range vectors {
				c := cosine(v, list[i].Vector)
				if len(list[i].Tokens) == 2 { // no words: all the error is in two tokens
					c += 0.005
				}
				lowest = min(lowest, c)
			}
			t.Logf("lowest cosine %.7f", lowest)
			if !(lowest >= least) {
				t.Errorf("lowest cosine %v, want at least %v", lowest, least)
			}
		}
	}
	for _, s := range kernel.Available() {
		least := 0.99999
		if s.Int8() {
			least = 0.995
		}
		l := open(t, embedding.LocalOptions{Dir: dir, Kernel: s.Name()})
		t.Run(s.Name(), near(l, least))
	}
	l, err := embedding.OpenInt8(embedding.LocalOptions{Dir: dir})
	must(t, err)
	t.Run("int8", near(l, 0.995))
	must(t, l.Close())
}

func open(t testing.TB, opts embedding.LocalOptions) *embedding.Local {
	t.Helper()
	l, err := embedding.OpenLocal(opts)
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	return l
}
