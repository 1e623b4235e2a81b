package execute

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/fault"
)

// browsed is what the tests of paths look at.
const browsed = ` {"items": [{"id": 9007199254740993, "name": "a"}, {"id": 2.50, "tags": []}, {"id": 3, "name": "c\u00e9"}],
	"odd key": {"it's": 1, "a\\b": 2}, "": 5, "none": null, "twice": 1, "twice": 2, "*": "star", "big": [[1, 2], [3]]} `

func TestPathLeadsTo(t *testing.T) {
	for path, want := range map[string]string{
		"$.items[0].id":             "9007199254740993",
		"items[1].id":               "2.50",
		"items[-1].name":            `"c\u00e9"`,
		".items[ 0 ]['name']":       `"a"`,
		"$[\"odd key\"]['it\\'s']":  "1",
		`['odd key']["a\\b"]`:       "2",
		`odd key.it's`:              "",
		"$['']":                     "5",
		"none":                      "null",
		"twice":                     "2",
		"['*']":                     `"star"`,
		"items[*].id":               "[9007199254740993,2.50,3]",
		"items[*].name":             `["a","c\u00e9"]`,
		"items[1:].id":              "[2.50,3]",
		"items[:2].id":              "[9007199254740993,2.50]",
		"items[-2:-1].id":           "[2.50]",
		"items[5:9]":                "[]",
		"items[2:1]":                "[]",
		"big[*][*]":                 "[1,2,3]",
		"big[*][0]":                 "[1,3]",
		"['odd key'].*":             "[1,2]",
		"items[1].tags[*].anything": "[]",
	} {
		t.Run(path, func(t *testing.T) {
			steps, err := parsePath(path)
			if want == "" {
				if fault.CodeOf(err) != fault.InvalidInput {
					t.Errorf("got %v, %v", steps, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := follow(strings.TrimSpace(browsed), steps); err != nil || got != want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
	if got, err := follow("5", nil); err != nil || got != "5" {
		t.Errorf("no path: %s, %v", got, err)
	}
}

func TestPathSaysWhereItEnds(t *testing.T) {
	for path, want := range map[string]string{
		"items[7]":           "$.items has 3 entries, there is no [7]",
		"items[-4]":          "$.items has 3 entries, there is no [-4]",
		"items[1].tags[0]":   "$.items[1].tags has 0 entries, there is no [0]",
		"items[0].nme":       `$.items[0] has no key "nme"; its keys are id, name`,
		"items.name":         "$.items is a list with 3 entries; use an index like [0], or [*]",
		"['odd key'][0]":     "$['odd key'] is an object, there is no [0]; its keys are it's, a\\b",
		"none.x":             "$.none is null, the path ends there",
		"items[0].id.x":      "$.items[0].id is a number, the path ends there",
		"items[2].name[0:1]": "$.items[2].name is a string of 2 characters, the path ends there",
		"items[*].nme":       `$.items[*] has no key "nme"; its keys are id, name`,
		"items[0:2].nme":     `$.items[0:2] has no key "nme"; its keys are id, name`,
		"big[1:][5]":         "$.big[1:] has 1 entry, there is no [5]",
	} {
		t.Run(path, func(t *testing.T) {
			steps, err := parsePath(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = follow(strings.TrimSpace(browsed), steps)
			if fault.CodeOf(err) != fault.NotFound || err.Error() != "not_found: "+want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestMalformedPathSaysWhere(t *testing.T) {
	for path, want := range map[string]string{
		"items[":                  `behind "items[": the bracket is not closed`,
		"items[0":                 "the bracket is not closed",
		"a..b":                    "'..' is not known",
		"a.":                      "here must be a key",
		".":                       "here must be a key",
		"a[0]b":                   `behind "a[0]": here must be '.' or '['`,
		"a[?(@.x>1)]":             "filters and scripts are not known",
		"a[(@.n-1)]":              "filters and scripts are not known",
		"a[0,1]":                  "one index at a time",
		"a[0:9:2]":                "no stride",
		"a[b]":                    "a key stands in quotes",
		"a[]":                     "is no index",
		"a['b]":                   "the quote is not closed",
		"a['b'":                   "must be followed by ']'",
		`a['b\n']`:                "a backslash stands before",
		"a]":                      "must be written ['so']",
		"a[1e3]":                  "is no index",
		"a[1:2x]":                 "is no index",
		"a[9999999999999999999]":  "is no index",
		strings.Repeat("a", 1001): "more than 1000",
		strings.Repeat("[0]", 51): "more than 50 steps",
	} {
		t.Run(Preview(path, 30), func(t *testing.T) {
			_, err := parsePath(path)
			if fault.CodeOf(err) != fault.InvalidInput || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// FuzzPath: a path that can be read can be written and means the same; what it leads to
// is what decoding the whole value would give; nothing panics, whatever the text.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"$", "items[0].id", "['odd key']", "a[-1][1:2][*].b", `["\""]`, ".*", "a..b"} {
		f.Add(path, browsed)
	}
	f.Add("[0].a", `[{"a":"\ud83d\ude00"}`)
	f.Fuzz(func(t *testing.T, path, text string) {
		steps, err := parsePath(path)
		if err != nil {
			if fault.CodeOf(err) != fault.InvalidInput {
				t.Fatalf("error %v", err)
			}
			return
		}
		written := "$"
		for _, s := range steps {
			written += s.String()
		}
		if again, err := parsePath(written); len(written) <= maxPath && (err != nil || !cmp.Equal(again, steps, cmp.AllowUnexported(step{}))) {
			t.Fatalf("%q was written as %q: %v, %v", path, written, again, err)
		}
		text = strings.TrimSpace(text)
		got, err := follow(text, steps)
		if !json.Valid([]byte(text)) {
			return
		}
		if err == nil && !json.Valid([]byte(got)) {
			t.Fatalf("%q in %q leads to %q", path, text, got)
		}
		var whole any
		if json.Unmarshal([]byte(text), &whole) != nil {
			return
		}
		want, ok := decoded(whole, steps)
		if plain := !strings.Contains(path, ":") && !strings.Contains(path, "*"); plain && ok != (err == nil) {
			t.Fatalf("%q in %q: found %v, %v", path, text, ok, err)
		} else if plain && ok {
			var have any
			if err := json.Unmarshal([]byte(got), &have); err != nil || !cmp.Equal(have, want) {
				t.Fatalf("%q in %q leads to %q", path, text, got)
			}
		}
	})
}

// decoded follows keys and indexes in a decoded value.
func decoded(v any, steps []step) (any, bool) {
	for _, s := range steps {
		switch from := v.(type) {
		case map[string]any:
			part, ok := from[s.name]
			if s.kind != keyStep || !ok {
				return nil, false
			}
			v = part
		case []any:
			i := s.from
			if i < 0 {
				i += len(from)
			}
			if s.kind != indexStep || i < 0 || i >= len(from) {
				return nil, false
			}
			v = from[i]
		default:
			return nil, false
		}
	}
	return v, true
}
