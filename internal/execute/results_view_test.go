package execute

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pml-run/pml/internal/fault"
)

// pages reads a whole view in pages of a size.
func pages(t *testing.T, v *view, limit int) []string {
	t.Helper()
	var out []string
	for offset := 0; offset < v.total; {
		content, from, to, err := v.page(offset, limit)
		if err != nil || from != offset || to <= from || utf8.RuneCountInString(content) != to-from {
			t.Fatalf("page at %d: %q from %d to %d, %v", offset, content, from, to, err)
		}
		out = append(out, content)
		offset = to
	}
	return out
}

func TestPagesAreTheWholeAndTearNothing(t *testing.T) {
	long := strings.Repeat("aé😀\n", pageMarks) // several marks
	for name, v := range map[string]*view{
		"text":           newView("aé😀b", "string", false),
		"long text":      newView(long, "string", false),
		"ascii":          newView(strings.Repeat("x", 1000), "string", false),
		"escapes":        newView(`["a\nb\\n\\\"","\u00e9x\ud83d\ude00\ud83d\u0041\\u0041"]`, "list", true),
		"only backslash": newView(`"`+strings.Repeat(`\\`, 50)+`"`, "string", true),
		"broken utf-8":   newView("a\xffb\xc3", "string", false),
		"empty":          newView("", "string", false),
	} {
		t.Run(name, func(t *testing.T) {
			for _, limit := range []int{1, 2, 3, 5, 7, 4096, 10_000} {
				if limit < 5 && len(v.text) > 10_000 {
					continue
				}
				parts := pages(t, v, limit)
				if strings.Join(parts, "") != v.text {
					t.Errorf("limit %d: the pages are not the whole: %q", limit, parts)
				}
				for _, part := range parts {
					if v.json && !json.Valid([]byte(`"`+strings.NewReplacer(`\"`, "q", `"`, "", `\\`, "b").Replace(part)+`"`)) {
						t.Errorf("limit %d: %q tears an escape", limit, part)
					}
				}
			}
		})
	}
}

func TestPageMovesOutOfAnEscape(t *testing.T) {
	v := newView(`"a\ud83d\ude00b"`, "string", true)
	for _, c := range []struct{ offset, limit, from, to int }{
		{0, 5, 0, 2},    // stops before the escape
		{2, 1, 2, 14},   // has at least the whole of it
		{8, 20, 2, 16},  // the middle of it, between its halves
		{5, 2, 2, 14},   // both ends inside
		{14, 1, 14, 15}, // behind it
	} {
		content, from, to, err := v.page(c.offset, c.limit)
		if err != nil || from != c.from || to != c.to || content != v.text[from:to] {
			t.Errorf("%+v: %q from %d to %d, %v", c, content, from, to, err)
		}
	}
	if _, _, _, err := v.page(17, 1); fault.CodeOf(err) != fault.InvalidInput {
		t.Errorf("behind the end: %v", err)
	}
	if content, _, to, err := v.page(16, 1); content != "" || to != 16 || err != nil {
		t.Errorf("at the end: %q to %d, %v", content, to, err)
	}
}

func TestFormats(t *testing.T) {
	for _, c := range []struct{ value, format, want, kind string }{
		{`"line\n\"two\""`, formatRaw, "line\n\"two\"", "string"},
		{`"line\ntwo"`, formatPretty, `"line\ntwo"`, "string"},
		{`{"a":  1.0}`, formatRaw, `{"a":  1.0}`, "object"},
		{`{"a":[1]}`, formatPretty, "{\n  \"a\": [\n    1\n  ]\n}", "object"},
		{`true`, formatRaw, "true", "boolean"},
		{`-1`, formatRaw, "-1", "number"},
	} {
		if v := render(c.value, c.format); v.text != c.want || v.kind != c.kind {
			t.Errorf("%s as %s: %q, a %s", c.value, c.format, v.text, v.kind)
		}
	}
}

func FuzzPage(f *testing.F) {
	f.Add(`"\ud83d\ude00\\u0041é"`, 3, 4)
	f.Fuzz(func(t *testing.T, text string, offset, limit int) {
		v := newView(text, "string", json.Valid([]byte(text)))
		if offset < 0 || limit < 1 || offset > v.total {
			return
		}
		limit = min(limit, maxPage)
		content, from, to, err := v.page(offset, limit)
		if err != nil || from > offset || to < from || utf8.RuneCountInString(content) != to-from || !strings.Contains(text, content) {
			t.Fatalf("%q from %d to %d, %v", content, from, to, err)
		}
		if offset < v.total && to <= offset {
			t.Fatalf("the page at %d ends at %d", offset, to)
		}
	})
}

// large is a list of objects with a text each, of about n bytes.
func large(n int) string {
	var b strings.Builder
	b.WriteString(`{"items":[`)
	for i := 0; b.Len() < n; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"item %d","text":"caf\u00e9 %s é","tags":["a","b"]}`, i, i, strings.Repeat("lorem ipsum ", 80))
	}
	b.WriteString(`]}`)
	return b.String()
}

const benchSize = 12 << 20

func BenchmarkPage(b *testing.B) {
	v := render(large(benchSize), formatRaw)
	n := 0
	for b.Loop() {
		n += defaultPage * 7
		if _, _, _, err := v.page(n%v.total, defaultPage); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	value := large(benchSize)
	for b.Loop() {
		render(value, formatRaw)
	}
}

func BenchmarkPath(b *testing.B) {
	value := large(benchSize)
	for _, path := range []string{"items[-1].name", "items[*].id"} {
		b.Run(path, func(b *testing.B) {
			steps, err := parsePath(path)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := follow(value, steps); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkShape(b *testing.B) {
	value := large(benchSize)
	for b.Loop() {
		shapeOf(value)
	}
}

func BenchmarkGrep(b *testing.B) {
	value := large(benchSize)
	re, err := compilePattern(`item 5\d\d"`)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if v, err := grep(b.Context(), value, re); err != nil || v.matches != 100 {
			b.Fatal(v, err)
		}
	}
}
