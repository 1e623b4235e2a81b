package embedding_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/embedding"
	"github.com/pml-run/pml/internal/fault"
)

func TestLocal(t *testing.T) {
	t.Parallel()
	l := open(t, embedding.LocalOptions{Dir: weights(t)})
	if l.Model() != embedding.MiniLM || l.Dimensions() != 384 || l.QueryPrefix() != "I need a tool to " || l.DocumentPrefix() != "" {
		t.Errorf("%q %d %q %q", l.Model(), l.Dimensions(), l.QueryPrefix(), l.DocumentPrefix())
	}
	v, err := l.Encode(t.Context(), []string{"read a file from disk", "open a document and return its contents", "book a flight to Lisbon"})
	must(t, err)
	if near, far := cosine(v[0], v[1]), cosine(v[0], v[2]); near < far+0.2 {
		t.Errorf("meaning: %.2f to the like, %.2f to the other", near, far)
	}
	own := open(t, embedding.LocalOptions{Dir: weights(t), Model: "mine", DocumentPrefix: "d: "})
	if own.Model() != "mine" || own.QueryPrefix() != "" || own.DocumentPrefix() != "d: " {
		t.Errorf("%q %q %q", own.Model(), own.QueryPrefix(), own.DocumentPrefix())
	}
}

// TestOddTexts encodes what nobody should send, together and alone.
func TestOddTexts(t *testing.T) {
	t.Parallel()
	l := open(t, embedding.LocalOptions{Dir: weights(t), Workers: 3})
	texts := []string{"", "\x00", "\xff\xfe", "a\x00b", strings.Repeat("many words ", 100_000), strings.Repeat("x", 1<<20), "\u200d\ufeff", strings.Repeat("\u0301", 1<<16)}
	together, err := l.Encode(t.Context(), texts)
	must(t, err)
	for i, text := range texts {
		alone, err := l.Encode(t.Context(), []string{text})
		must(t, err)
		if diff := cmp.Diff(alone[0], together[i]); diff != "" || cosine(alone[0], alone[0]) < 0.9999 {
			t.Errorf("text %d: %s", i, diff)
		}
	}
	for _, none := range [][]string{nil, {}} {
		if v, err := l.Encode(t.Context(), none); err != nil || v == nil || len(v) != 0 {
			t.Errorf("no texts: %v, %v", v, err)
		}
	}
}

func TestLocalFromManyGoroutines(t *testing.T) {
	t.Parallel()
	l, list := open(t, embedding.LocalOptions{Dir: weights(t)}), references(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for _, r := range list {
				v, err := l.Encode(t.Context(), []string{r.Text, "other"})
				if err != nil || cosine(v[0], r.Vector) < 0.98 {
					t.Errorf("%q: %v", r.Text, err)
				}
			}
		})
	}
	group.Wait()
}

func TestLocalStops(t *testing.T) {
	t.Parallel()
	l := open(t, embedding.LocalOptions{Dir: weights(t)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Encode(ctx, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	must(t, l.Close())
	must(t, l.Close())
	if _, err := l.Encode(t.Context(), []string{"a"}); fault.CodeOf(err) != fault.Unavailable || l.Dimensions() != 0 {
		t.Errorf("closed: %v", err)
	}
}

func TestOpenLocalSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	whole := weights(t)
	for file, content := range map[string]string{"tokenizer.json": `{"model":{}}`, "model.safetensors": "\x00", "config.json": "["} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, name := range []string{"tokenizer.json", "model.safetensors", "config.json"} {
				if name == file {
					must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
					continue
				}
				path, err := filepath.Abs(filepath.Join(whole, name))
				must(t, err)
				must(t, os.Symlink(path, filepath.Join(dir, name)))
			}
			_, err := embedding.OpenLocal(embedding.LocalOptions{Dir: dir})
			if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), filepath.Join(dir, file)) {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := embedding.OpenLocal(embedding.LocalOptions{Dir: whole, Kernel: "abacus"}); fault.CodeOf(err) != fault.InvalidInput {
		t.Errorf("kernel: %v", err)
	}
}

func TestEmptyFolder(t *testing.T) {
	t.Parallel()
	_, err := embedding.OpenLocal(embedding.LocalOptions{Dir: t.TempDir()})
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "tokenizer.json") {
		t.Errorf("%v", err)
	}
}
