package store_test

import (
	"encoding/json"
	"testing"

	"github.com/pml-run/pml/internal/store"
)

func TestMend(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a":1e5}`:            `{"a":1e5}`,
		`"\u0000"`:             `"\ufffd"`,
		`"\\u0000"`:            `"\\u0000"`,
		`"\ud83d\ude00"`:       `"\ud83d\ude00"`,
		`"\ud83d"`:             `"\ufffd"`,
		`"\ude00\ud83d"`:       `"\ufffd\ufffd"`,
		`[1e99999, "1e99999"]`: `["1e99999", "1e99999"]`,
		`-1E-00099999`:         `"-1E-00099999"`,
	} {
		if got := string(store.Mend([]byte(in))); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}

// FuzzMend: valid JSON stays valid, and mending twice changes nothing more.
func FuzzMend(f *testing.F) {
	f.Add([]byte(`{"a\u0000":["\ud800\udc00", 1e99999, "x\\"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return
		}
		once := store.Mend(data)
		if !json.Valid(once) {
			t.Fatalf("%q becomes %q", data, once)
		}
		if twice := store.Mend(once); string(twice) != string(once) {
			t.Fatalf("%q, then %q", once, twice)
		}
	})
}

func TestShape(t *testing.T) {
	t.Parallel()
	pad := make([]byte, 11<<10)
	for i := range pad {
		pad[i] = ' '
	}
	in := `{"id":1,"tags":["a","b"],"deep":{"a":{"b":{"c":{"d":1}}}},"none":null,"ok":true,"empty":[]` + string(pad) + `}`
	want := `{"deep":{"a":{"b":{"c":"object"}}},"empty":{"array":0},"id":"number","none":"null","ok":"boolean","tags":{"array":2,"of":"string"}}`
	if got := string(store.Shape([]byte(in))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := store.Shape([]byte(`{"id":1}`)); got != nil {
		t.Errorf("a small value was cut: %s", got)
	}
}
