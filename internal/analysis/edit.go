package analysis

import (
	"cmp"
	"slices"
	"strings"
)

// edit replaces the source from start to end by text; an insertion has start == end.
type edit struct {
	start, end uint32
	text       string

	// What follows orders insertions at the same place.
	opens bool   // before an expression; what closes one comes first
	first bool   // before everything that opens
	reach uint32 // the other end of what is wrapped
	layer int
	node  node
}

// compareEdits orders edits so that what is wrapped stays nested.
func compareEdits(x, y edit) int {
	if c := cmp.Compare(x.start, y.start); c != 0 {
		return c
	}
	if x.opens != y.opens {
		return cmp.Compare(rankOf(x.opens), rankOf(y.opens))
	}
	if x.first != y.first {
		return cmp.Compare(rankOf(y.first), rankOf(x.first))
	}
	if x.opens { // the outer one first
		return cmp.Or(cmp.Compare(y.reach, x.reach), cmp.Compare(x.layer, y.layer), cmp.Compare(x.node, y.node))
	}
	return cmp.Or(cmp.Compare(y.reach, x.reach), cmp.Compare(y.layer, x.layer), cmp.Compare(y.node, x.node))
}

func rankOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// piece is a part of a line that was copied: where it is in the text and in the
// source, in UTF-16 units.
type piece struct{ generated, original, length int }

// text is what edits made of a source, with the way back.
type text struct {
	out   string
	lines [][]piece
}

// apply carries the edits out.
func apply(src string, edits []edit) text {
	slices.SortStableFunc(edits, compareEdits)
	c := composer{}
	at := uint32(0)
	for _, e := range edits {
		c.copy(src[at:e.start])
		c.replace(src[e.start:e.end], e.text)
		at = e.end
	}
	c.copy(src[at:])
	return text{c.out.String(), append(c.lines, c.line)}
}

// composer writes a text beside its source, line by line.
type composer struct {
	out                 strings.Builder
	lines               [][]piece
	line                []piece
	generated, original int // columns
}

// copy takes a part of the source over.
func (c *composer) copy(s string) {
	c.out.WriteString(s)
	for s != "" {
		rest, end := splitLine(s)
		n := utf16Length(rest)
		if n > 0 || end > 0 {
			c.line = append(c.line, piece{c.generated, c.original, n})
		}
		c.generated += n
		c.original += n
		s = s[len(rest)+end:]
		if end > 0 {
			c.breakLine()
			c.original = 0
		}
	}
}

// replace writes text instead of a part of the source, behind that part's line breaks.
func (c *composer) replace(old, with string) {
	for old != "" {
		rest, end := splitLine(old)
		c.original += utf16Length(rest)
		if end > 0 {
			c.out.WriteString(old[len(rest) : len(rest)+end])
			c.breakLine()
			c.original = 0
		}
		old = old[len(rest)+end:]
	}
	c.out.WriteString(with)
	c.generated += utf16Length(with)
}

func (c *composer) breakLine() {
	c.lines, c.line, c.generated = append(c.lines, c.line), nil, 0
}

// position maps a one-based place in the text to the source. What is inside an
// insertion maps to where that is.
func (t text) position(line, column int) (int, int) {
	if line < 1 || line > len(t.lines) || len(t.lines[line-1]) == 0 {
		return line, column
	}
	pieces := t.lines[line-1]
	i, _ := slices.BinarySearchFunc(pieces, column-1, func(p piece, c int) int {
		if p.generated <= c {
			return -1
		}
		return 1
	})
	if i == 0 {
		return line, pieces[0].original + 1
	}
	p := pieces[i-1]
	return line, p.original + min(column-1-p.generated, p.length) + 1
}
