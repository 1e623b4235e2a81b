package analysis

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// splitLine returns the text up to the first line end and the length of that. The
// line ends are those of JavaScript.
func splitLine(s string) (line string, end int) {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\n':
			return s[:i], 1
		case c == '\r':
			if strings.HasPrefix(s[i:], "\r\n") {
				return s[:i], 2
			}
			return s[:i], 1
		case c == 0xE2 && (strings.HasPrefix(s[i:], "\u2028") || strings.HasPrefix(s[i:], "\u2029")):
			return s[:i], 3
		}
	}
	return s, 0
}

// utf16Length is the length of a text in UTF-16 units.
func utf16Length(s string) int {
	n := utf8.RuneCountInString(s)
	for i := range len(s) {
		if s[i] >= 0xF0 {
			n++
		}
	}
	return n
}

// lines knows where each line of a source begins.
type lines struct {
	src    string
	starts []int
}

func newLines(src string) lines {
	l := lines{src: src}
	for at := 0; ; {
		l.starts = append(l.starts, at)
		text, end := splitLine(src[at:])
		if end == 0 {
			return l
		}
		at += len(text) + end
	}
}

// place is the one-based line and UTF-16 column of an offset.
func (l lines) place(offset int) (line, column int) {
	i, found := slices.BinarySearch(l.starts, offset)
	if !found {
		i--
	}
	return i + 1, utf16Length(l.src[l.starts[i]:offset]) + 1
}

// text is a one-based line.
func (l lines) text(line int) string {
	text, _ := splitLine(l.src[l.starts[line-1]:])
	return text
}

// offset is where a one-based line and a zero-based byte column are; the end of the
// source for what is behind it.
func (l lines) offset(line, column int) int {
	if line > len(l.starts) {
		return len(l.src)
	}
	return l.starts[line-1] + max(0, min(column, len(l.text(line))))
}
