package analysis

import "strings"

// maxCondition is how many bytes of a condition are kept.
const maxCondition = 200

// normal is the source of an expression without comments, types and outer
// parentheses, white space between tokens as one space.
func (t *tree) normal(n node) string {
	for t.kind(n) == "parenthesized_expression" {
		c := t.children(n)
		if len(c) != 1 {
			break
		}
		n = c[0]
	}
	if n < 0 {
		return ""
	}
	w := normalizer{tree: t, last: t.at[n].start}
	w.write(n)
	return cut(w.out.String())
}

// cut shortens a text to maxCondition bytes without breaking a character.
func cut(s string) string {
	if len(s) <= maxCondition {
		return s
	}
	end := maxCondition - len("...")
	for end > 0 && s[end]&0xC0 == 0x80 {
		end--
	}
	return s[:end] + "..."
}

type normalizer struct {
	*tree
	out  strings.Builder
	last uint32 // end of what was written or left out
}

func (w *normalizer) write(n node) {
	if w.out.Len() > maxCondition {
		return
	}
	switch kind := w.kind(n); kind {
	case "comment":
		return
	case "as_expression", "satisfies_expression", "non_null_expression":
		w.write(w.first(n))
		w.last = w.realEnd(n)
		return
	case "type_assertion":
		c := w.children(n)
		w.last = w.at[c[len(c)-1]].start
		w.write(c[len(c)-1])
		return
	default:
		if isType(kind) {
			w.last = w.at[n].end
			return
		}
		if w.at[n].child >= 0 && !isText(kind) {
			for c := range w.tokens(n) {
				w.write(c)
			}
			return
		}
	}
	s := w.at[n]
	if s.end == s.start {
		return
	}
	if s.start > w.last && w.out.Len() > 0 {
		w.out.WriteByte(' ')
	}
	w.out.WriteString(w.src[s.start:s.end])
	w.last = s.end
}
