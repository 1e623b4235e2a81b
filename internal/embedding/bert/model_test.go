package bert

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/embedding/kernel"
)

var sequences = [][]int32{{1, 2, 3}, {4}, {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}, {49, 0}}

func openTiny(t *testing.T, dir string, opts Options) *Model {
	t.Helper()
	m, err := Open(dir, opts)
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	return m
}

func encode(t *testing.T, m *Model, list [][]int32) [][]float32 {
	t.Helper()
	vectors, err := m.Encode(t.Context(), list)
	must(t, err)
	return vectors
}

// least is the lowest cosine of two lists of unit vectors.
func least(a, b [][]float32) float64 {
	lowest := 1.0
	for i := range a {
		var sum float64
		for j := range a[i] {
			sum += float64(a[i][j]) * float64(b[i][j])
		}
		lowest = min(lowest, sum)
	}
	return lowest
}

func TestKernelsAgree(t *testing.T) {
	t.Parallel()
	dir := tinyFolder(t, "F16")
	want := encode(t, openTiny(t, dir, Options{Kernels: kernel.Portable()}), sequences)
	for _, s := range kernel.Available() {
		for _, s := range []kernel.Set{s, s.WithInt8()} {
			m := openTiny(t, dir, Options{Kernels: s})
			tolerance := 1e-6
			if s.Int8() {
				tolerance = 1e-3
			}
			if got := least(encode(t, m, sequences), want); got < 1-tolerance {
				t.Errorf("%s int8=%v: cosine %v", s.Name(), s.Int8(), got)
			}
		}
	}
	wide := openTiny(t, tinyFolder(t, "F32"), Options{Kernels: kernel.Portable()})
	if got := least(encode(t, wide, sequences), want); got < 1-1e-6 {
		t.Errorf("fp32 weights: cosine %v", got)
	}
}

// TestSequencesAreIndependent: neither neighbours nor earlier use of the memory show.
func TestSequencesAreIndependent(t *testing.T) {
	t.Parallel()
	for _, set := range []kernel.Set{kernel.Available()[0], kernel.Portable().WithInt8()} {
		m := openTiny(t, tinyFolder(t, "F16"), Options{Kernels: set})
		together := encode(t, m, sequences)
		for i, ids := range sequences {
			if diff := cmp.Diff(together[i:i+1], encode(t, m, [][]int32{ids})); diff != "" {
				t.Errorf("%s, sequence %d: %s", set.Name(), i, diff)
			}
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	m := openTiny(t, tinyFolder(t, "F16"), Options{Kernels: kernel.Portable()})
	for name, ids := range map[string][]int32{"empty": {}, "too long": make([]int32, 21), "unknown id": {50}, "negative id": {-1}} {
		if _, err := m.Encode(t.Context(), [][]int32{{1}, ids}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if v := encode(t, m, nil); len(v) != 0 {
		t.Errorf("nothing gives %v", v)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Encode(ctx, sequences); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestCopy(t *testing.T) {
	t.Parallel()
	dir, cache := tinyFolder(t, "F16"), filepath.Join(t.TempDir(), "new", "folder")
	path := filepath.Join(cache, CopyName)
	opts := Options{Kernels: kernel.Portable().WithInt8(), Cache: cache}
	want := encode(t, openTiny(t, dir, Options{Kernels: opts.Kernels}), sequences)
	good := func(what string) []byte {
		t.Helper()
		m := openTiny(t, dir, opts)
		if m.Problem() != nil || len(m.files) != 1 {
			t.Errorf("%s: %v, %d files", what, m.Problem(), len(m.files))
		}
		if diff := cmp.Diff(want, encode(t, m, sequences)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		data, err := os.ReadFile(path)
		must(t, err)
		return data
	}
	data := good("made")
	before, err := os.Stat(path)
	must(t, err)
	good("used again")
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("a good copy was made again: %v", err)
	}
	for name, at := range map[string]int{"version": 7, "source": 9, "size": 41, "sum": 49, "rest of header": 60, "words": 70, "end": len(data) - 1} {
		damaged := append([]byte(nil), data...)
		damaged[at] ^= 1
		must(t, os.WriteFile(path, damaged, 0o600))
		if diff := cmp.Diff(data, good(name)); diff != "" {
			t.Errorf("%s: was not made again", name)
		}
	}
	for _, n := range []int{0, 10, headerSize, len(data) - 1} {
		must(t, os.WriteFile(path, data[:n], 0o600))
		good("cut off")
	}
	left, err := os.ReadDir(cache)
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestCopyOfAnotherModel(t *testing.T) {
	t.Parallel()
	opts := Options{Kernels: kernel.Portable().WithInt8(), Cache: t.TempDir()}
	openTiny(t, tinyFolder(t, "F16"), opts)
	first, err := os.ReadFile(filepath.Join(opts.Cache, CopyName))
	must(t, err)
	openTiny(t, tinyFolder(t, "F32"), opts)
	second, err := os.ReadFile(filepath.Join(opts.Cache, CopyName))
	must(t, err)
	if string(first[:headerSize]) == string(second[:headerSize]) {
		t.Error("the copy of the first model was taken for the second's")
	}
}

func TestCopyThatCannotBeKept(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	m := openTiny(t, tinyFolder(t, "F16"), Options{Kernels: kernel.Portable().WithInt8(), Cache: filepath.Join(file, "below")})
	if m.Problem() == nil {
		t.Error("no problem is named")
	}
	encode(t, m, sequences)
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, old, new, want string }{
		{"no configuration", "config.json", "", "-", "config.json"},
		{"bad configuration", "config.json", "{", "", "not a model's configuration"},
		{"no heads", "config.json", `"num_attention_heads":4`, `"num_attention_heads":0`, "0 attention heads"},
		{"odd size", "config.json", `"hidden_size":64`, `"hidden_size":65`, "hidden_size 65"},
		{"other activation", "config.json", "{", `{"hidden_act":"relu",`, `"relu"`},
		{"other kind", "config.json", "{", `{"model_type":"roberta",`, `"roberta"`},
		{"more words", "config.json", `"vocab_size":50`, `"vocab_size":51`, "word_embeddings.weight\" has the shape [50 64], not [51 64]"},
		{"no weights", "model.safetensors", "", "-", "model.safetensors"},
		{"empty weights", "model.safetensors", "", "", "only 0 bytes"},
		{"tensor missing", "model.safetensors", "encoder.layer.1.output.dense.bias", "encoder.layer.1.output.dense.tail", `no tensor "encoder.layer.1.output.dense.bias"`},
		{"type", "model.safetensors", "F16", "I16", "is of type I16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := tinyFolder(t, "F16")
			path := filepath.Join(dir, c.file)
			data, err := os.ReadFile(path)
			must(t, err)
			switch {
			case c.new == "-":
				must(t, os.Remove(path))
			case c.old == "":
				must(t, os.WriteFile(path, nil, 0o600))
			default:
				must(t, os.WriteFile(path, []byte(strings.Replace(string(data), c.old, c.new, 1)), 0o600))
			}
			if _, err := Open(dir, Options{Kernels: kernel.Portable()}); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) && c.file != "config.json" {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	v := []float32{3, 0, -4}
	if !Normalize(v) || v[0] != 0.6 || v[2] != -0.8 {
		t.Error(v)
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, v := range [][]float32{{}, {0, 0}, {1, nan}, {inf, 1}, {-inf}} {
		if Normalize(v) {
			t.Errorf("%v was normalised", v)
		}
	}
}
