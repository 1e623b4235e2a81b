package execute

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pml-run/pml/internal/fault"
)

func search(t *testing.T, value, pattern string) *view {
	t.Helper()
	re, err := compilePattern(pattern)
	if err != nil {
		t.Fatal(err)
	}
	v, err := grep(t.Context(), value, re)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestGrepListsLinesWithPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		value, pattern, want string
		matches              int
	}{
		"lines of a text":   {`"é one\r\ntwo\nthree one"`, "one", "1:2:é one\n3:17:three one\n", 2},
		"without a match":   {`"one"`, "two", "", 0},
		"anchors":           {`"a\nba\n"`, "^a$", "1:0:a\n", 1},
		"ignoring case":     {`"A\nb"`, "(?i)a|B", "1:0:A\n2:2:b\n", 2},
		"lines of JSON":     {`{"a":[1,{"b":"x y"}]}`, `"b"`, "5:30:      \"b\": \"x y\"\n", 1},
		"an empty line":     {`"a\n\nb"`, "^$", "2:2:\n", 1},
		"the pattern's own": {`"1+1"`, `1\+1`, "1:0:1+1\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			v := search(t, c.value, c.pattern)
			if v.text != c.want || v.matches != c.matches || v.listed != c.matches || v.json {
				t.Errorf("got %q, %d of %d", v.text, v.listed, v.matches)
			}
		})
	}
}

func TestGrepPlacesCanBeReadOnFrom(t *testing.T) {
	value := `{"log": "` + strings.Repeat(`é line\n`, 3000) + `", "end": "needle"}`
	v := search(t, value, "needle")
	var line, offset int
	if _, err := fmt.Sscanf(v.text, "%d:%d:", &line, &offset); err != nil {
		t.Fatal(err)
	}
	content, _, _, err := render(value, formatPretty).page(offset, 6)
	if err != nil || content != "needle" {
		t.Errorf("%q leads to %q, %v", v.text, content, err)
	}
}

func TestGrepShowsTheMatchOfALongLine(t *testing.T) {
	for _, n := range []int{400, longLine + 1} {
		v := search(t, `"`+strings.Repeat("é", n)+"needle"+strings.Repeat("b", n)+`"`, "need.e")
		if !strings.Contains(v.text, "éneedleb") || utf8.RuneCountInString(v.text) > maxLine+30 || !strings.Contains(v.text, ":…é") || !strings.HasSuffix(v.text, "b…\n") {
			t.Errorf("%d: %q", n, v.text)
		}
	}
}

func TestGrepCountsWhatItDoesNotList(t *testing.T) {
	line := strings.Repeat("x", 250)
	n := maxListed/len(line) + 1000
	v := search(t, `"`+strings.Repeat(line+`\n`, n)+`"`, "x")
	if v.matches != n || v.listed >= n || len(v.text) > maxListed+maxLine+30 {
		t.Errorf("%d of %d, %d bytes", v.listed, v.matches, len(v.text))
	}
}

func TestGrepExplainsItsPattern(t *testing.T) {
	for pattern, want := range map[string]string{
		"a(b":                     "missing closing )",
		"a**":                     "invalid nested repetition",
		"(?=x)":                   "invalid or unsupported Perl syntax",
		"a{1,9999}":               "invalid repeat count",
		strings.Repeat("a", 1001): "more than 1000",
	} {
		_, err := compilePattern(pattern)
		if fault.CodeOf(err) != fault.InvalidInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", Preview(pattern, 20), err)
		}
	}
}

func TestGrepStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	re, err := compilePattern("(x+x+)+y")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"many lines": strings.Repeat(`x\n`, 100), "one line": strings.Repeat("x", 1<<20)} {
		if _, err := grep(ctx, `"`+value+`"`, re); fault.CodeOf(err) != fault.Cancelled {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := stoppableReader{ctx: ctx, text: strings.Repeat("x", 1<<20)}
	read := 0
	for _, _, err := r.ReadRune(); err == nil; _, _, err = r.ReadRune() {
		read++
	}
	if read > 1<<13 {
		t.Errorf("%d characters were read for nobody", read)
	}
	late, done := context.WithTimeout(t.Context(), 0)
	defer done()
	if _, err := grep(late, `"a"`, re); fault.CodeOf(err) != fault.Timeout || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("late: %v", err)
	}
}
