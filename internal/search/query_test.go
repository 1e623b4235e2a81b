package search

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// encoder gives each text the vector of how many it has seen.
type encoder struct {
	texts []string
	less  int // vectors that are left out
	err   error
}

func (*encoder) Model() string       { return "test" }
func (*encoder) QueryPrefix() string { return "find " }
func (e *encoder) Encode(_ context.Context, texts []string) ([][]float32, error) {
	e.texts = append(e.texts, texts...)
	out := make([][]float32, len(texts)-e.less)
	for i := range out {
		out[i] = unit(1, float32(i))
	}
	return out, e.err
}

func TestAsk(t *testing.T) {
	t.Parallel()
	e := &encoder{}
	q, err := Ask(t.Context(), e, "Read one long file. Mail that summary home.")
	if err != nil || len(q.Vectors) != 3 || q.Text != "Read one long file. Mail that summary home." {
		t.Fatalf("got %+v, %v", q, err)
	}
	want := []string{"find Read one long file. Mail that summary home.", "find Read one long file.", "find Mail that summary home."}
	if diff := cmp.Diff(want, e.texts); diff != "" {
		t.Error(diff)
	}
}

func TestAskWithout(t *testing.T) {
	t.Parallel()
	if q, err := Ask(t.Context(), nil, "read"); err != nil || q.Vectors != nil || q.Text != "read" {
		t.Errorf("no encoder: %+v, %v", q, err)
	}
	e := &encoder{}
	if q, err := Ask(t.Context(), e, "  "); err != nil || q.Vectors != nil || len(e.texts) != 0 {
		t.Errorf("no intent: %+v, %v", q, err)
	}
	gone := errors.New("gone")
	if q, err := Ask(t.Context(), &encoder{err: gone}, "read"); !errors.Is(err, gone) || q.Text != "read" || q.Vectors != nil {
		t.Errorf("a failing encoder must leave a query by words: %+v, %v", q, err)
	}
	if _, err := Ask(t.Context(), &encoder{less: 1}, "read"); err == nil {
		t.Error("too few vectors were taken")
	}
}
