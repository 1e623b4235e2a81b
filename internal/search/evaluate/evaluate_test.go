package evaluate

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/embedding"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/search"
)

// letters is an encoder whose vectors are how often each letter is in a text.
type letters struct {
	asked []string
	err   error
}

func (*letters) Model() string          { return "letters" }
func (*letters) QueryPrefix() string    { return "" }
func (*letters) DocumentPrefix() string { return "" }
func (e *letters) Encode(_ context.Context, texts []string) ([][]float32, error) {
	e.asked = append(e.asked, texts...)
	out := make([][]float32, len(texts))
	for i, text := range texts {
		v := make([]float32, 26)
		v[25] = 0.01
		for _, r := range strings.ToLower(text) {
			if r >= 'a' && r <= 'z' {
				v[r-'a']++
			}
		}
		var squares float64
		for _, x := range v {
			squares += float64(x * x)
		}
		for j := range v {
			v[j] /= float32(math.Sqrt(squares))
		}
		out[i] = v
	}
	return out, e.err
}

func load(t *testing.T, files Files) *Dataset {
	t.Helper()
	d, err := Load(files)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	d := load(t, In(folder(t, corpus, queries, examples)))
	r, err := Measure(t.Context(), []*Dataset{d}, &letters{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Sets) != 1 || len(r.Sets[0].Scores) != len(Variants(search.ZScore, true)) || r.Model != "letters" {
		t.Fatalf("got %+v", r)
	}
	if s, ok := r.Sets[0].Score(Whole); !ok || s.Recall10 != 100 || s.NDCG10 <= 0 {
		t.Errorf("got %+v", s)
	}
	var out bytes.Buffer
	r.Calibration = &Calibration{}
	r.Print(&out)
	for _, want := range []string{"model letters", "set: 2 tools, 2 queries", Whole, "confidence fitted"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestMeasureWithoutModel(t *testing.T) {
	t.Parallel()
	d := load(t, In(folder(t, corpus, queries, "")))
	r, err := Measure(t.Context(), []*Dataset{d}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Scores{{Variant: "words", NDCG10: 100, Recall5: 100, Recall10: 100}}
	if diff := cmp.Diff(want, r.Sets[0].Scores); diff != "" {
		t.Error(diff)
	}
}

func TestMeasureFails(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	d := load(t, In(folder(t, corpus, queries, examples)))
	if _, err := Measure(t.Context(), []*Dataset{d}, &letters{err: gone}); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestCache(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "vectors")
	first := &letters{}
	c := OpenCache(first, dir)
	want, err := c.Encode(t.Context(), []string{"one", "two", "one"})
	if err != nil || len(first.asked) != 2 {
		t.Fatalf("asked %v, %v", first.asked, err)
	}
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	second := &letters{}
	got, err := OpenCache(second, dir).Encode(t.Context(), []string{"one", "two", "one"})
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(second.asked) != 0 {
		t.Errorf("asked %v, %v\n%s", second.asked, err, diff)
	}
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(list) != 1 {
		t.Fatalf("files %v, %v", list, err)
	}
	if err := os.WriteFile(list[0], []byte("not vectors"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err = OpenCache(second, dir).Encode(t.Context(), []string{"one"}); err != nil || len(second.asked) != 1 || len(got) != 1 {
		t.Errorf("a broken file counts as none: asked %v, %v", second.asked, err)
	}
}

// TestFit: coefficients come back from samples that were drawn with them.
func TestFit(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	truth := search.Logistic{Offset: -3, Cosine: 8, Margin: 5}
	samples := make([]sample, 20_000)
	for i := range samples {
		m := search.Match{Cosine: r.Float64()}
		m.Second = m.Cosine - 0.2*r.Float64()
		samples[i] = sample{match: m, right: r.Float64() < truth.At(m)}
	}
	got := fitLogistic(samples)
	if math.Abs(got.Offset+3) > 0.2 || math.Abs(got.Cosine-8) > 0.4 || math.Abs(got.Margin-5) > 0.8 {
		t.Errorf("got %+v, want %+v", got, truth)
	}
	q := qualityOf(samples, got.At)
	if q.Brier >= q.Base || q.Precision < q.Threshold || q.Intents != len(samples) {
		t.Errorf("got %+v", q)
	}
	for _, b := range q.Bins {
		if b.Count > 500 && math.Abs(b.Said-b.True) > 0.06 {
			t.Errorf("not calibrated: %+v", b)
		}
	}
}

func TestCalibrateNeedsQueriesForOneTool(t *testing.T) {
	t.Parallel()
	d := load(t, In(folder(t, corpus, `{"query":"x","relevant":["zip","s/read"]}`, "")))
	if _, err := Calibrate(t.Context(), []*Dataset{d}, &letters{}); fault.CodeOf(err) != fault.InvalidInput {
		t.Errorf("got %v", err)
	}
}

// model opens the built-in model, which pml setup fetches.
func model(t *testing.T) *embedding.Local {
	t.Helper()
	if testing.Short() {
		t.Skip("encoding the data sets takes minutes")
	}
	tools := os.Getenv("PML_TOOLS")
	if tools == "" {
		tools = filepath.Join("..", "..", "..", ".tools")
	}
	dir := filepath.Join(tools, "runtime")
	if !embedding.Installed(dir) {
		t.Skipf("the model is not below %s: run make bench-search once", tools)
	}
	m, err := embedding.OpenLocal(embedding.LocalOptions{Dir: embedding.Path(dir)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// TestFloors asserts how well tools must be found on the public data sets, before any
// learning. Vectors are kept in the user's cache folder, where pml bench-search keeps
// them too; the first time takes minutes.
func TestFloors(t *testing.T) {
	t.Parallel()
	data := filepath.Join("..", "..", "..", "..", "shared", "data", "retrieval")
	if _, err := os.Stat(data); err != nil {
		t.Skip("the data sets are not beside the checkout, in ../shared/data/retrieval")
	}
	kept, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cache := OpenCache(model(t), filepath.Join(kept, "pml", "vectors"))
	var sets []*Dataset
	floors := map[string]float64{"livemcp": 42, "livemcp-steps": 70, "metatool": 74}
	for name := range floors {
		sets = append(sets, load(t, In(filepath.Join(data, name))))
	}
	r, err := Measure(t.Context(), sets, cache)
	if err = errors.Join(err, cache.Save()); err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Sets {
		if score, _ := s.Score(Whole); score.NDCG10 < floors[s.Name] {
			t.Errorf("%s: nDCG@10 is %.2f, must be %.0f", s.Name, score.NDCG10, floors[s.Name])
		}
	}
}
