package execute

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/pml-run/pml/internal/fault"
)

// pageMarks is the distance in characters of the places whose index a view knows.
const pageMarks = 4096

// view is a result as it is read: a text that is given out in pages. Making one costs
// as much as the text is long; a page of it costs as much as the page.
type view struct {
	text  string
	kind  string // the JSON type of what was chosen
	json  bool   // the text is JSON: its escapes are not cut
	total int    // characters of text
	marks []int  // marks[i] is the index of the character i*pageMarks; nil where each has one byte

	// matches are the lines that grep has found, listed those that the text has.
	matches, listed int
}

// newView makes a text ready to be paged.
func newView(text, kind string, isJSON bool) *view {
	v := &view{text: text, kind: kind, json: isJSON, total: utf8.RuneCountInString(text)}
	if v.total == len(text) {
		return v
	}
	n := 0
	for i := range text {
		if n%pageMarks == 0 {
			v.marks = append(v.marks, i)
		}
		n++
	}
	return v
}

// render shows a JSON value in one of the formats raw and pretty. Raw is the value as
// it was stored, and of a string its text.
func render(value, format string) *view {
	kind := kindOf(value)
	switch {
	case format == formatPretty:
		return newView(indented(value), kind, true)
	case kind == "string":
		return newView(unquote(value), kind, false)
	}
	return newView(value, kind, true)
}

// indented is a value over several lines; what is no JSON stays as it is.
func indented(value string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(value), "", "  ") != nil {
		return value
	}
	return b.String()
}

// index is where character n begins; the length of the text for one behind its end.
func (v *view) index(n int) int {
	switch {
	case n >= v.total:
		return len(v.text)
	case v.marks == nil:
		return n
	}
	at := v.marks[n/pageMarks]
	for range n % pageMarks {
		_, size := utf8.DecodeRuneInString(v.text[at:])
		at += size
	}
	return at
}

// page returns at most limit characters from offset on, and the offsets where they
// begin and end. Neither end is inside an escape of a JSON string: such a page begins
// or ends before the escape, and has at least the whole of one.
func (v *view) page(offset, limit int) (content string, from, to int, err error) {
	if offset > v.total {
		return "", 0, 0, fault.New(fault.InvalidInput, "offset is %d, but there are %d characters", offset, v.total).
			WithHint("use 0 or the last answer's next_offset")
	}
	from, to = offset, min(offset+limit, v.total)
	begin, end := v.index(from), v.index(to)
	if !v.json {
		return v.text[begin:end], from, to, nil
	}
	first, _ := escapeAround(v.text, begin)
	last, behind := escapeAround(v.text, end)
	if last <= first && begin < end {
		last = behind // the limit is shorter than the escape
	}
	// Escapes have one byte a character.
	return v.text[first:max(first, last)], from - (begin - first), to + (last - end), nil
}

// maxEscape is the length of the longest escape: a character of two halves.
const maxEscape = len(`\ud83d\ude00`)

// escapeAround returns where the escape of a JSON text begins and ends that a cut at i
// would tear; i twice where there is none.
func escapeAround(text string, i int) (from, to int) {
	if i >= len(text) {
		return i, i
	}
	for start := max(0, i-maxEscape+1); start < i; start++ {
		if text[start] != '\\' || !begins(text, start) {
			continue
		}
		if end := start + escapeLength(text[start:]); end > i {
			return start, end
		}
	}
	return i, i
}

// begins reports whether the backslash at i begins an escape: whether it is not the
// second of a pair.
func begins(text string, i int) bool {
	before := 0
	for i-before > 0 && text[i-before-1] == '\\' {
		before++
	}
	return before%2 == 0
}

// escapeLength is the length of the escape that a text begins with. Two halves of one
// character are one escape.
func escapeLength(text string) int {
	const half = len(`\u0000`)
	switch {
	case len(text) < half || text[1] != 'u':
		return min(2, len(text))
	case len(text) >= 2*half && isHalf(text[2:half], "89abAB") && text[half:half+2] == `\u` && isHalf(text[half+2:], "cdefCDEF"):
		return 2 * half
	}
	return half
}

// isHalf reports whether hexadecimal digits are those of half a character: D, and one
// of the given.
func isHalf(digits, second string) bool {
	return (digits[0] == 'd' || digits[0] == 'D') && bytes.IndexByte([]byte(second), digits[1]) >= 0
}
