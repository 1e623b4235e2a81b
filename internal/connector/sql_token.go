package connector

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// What of a statement is read.
const (
	maxStatement = 64 << 10 // bytes
	maxTokens    = 4000
	maxColumns   = 50 // also of a row
)

// kind says what a token is.
type kind byte

const (
	word   kind = iota // a name or a keyword
	quoted             // a name in quotes
	str                // a text
	num                // a number
	mark               // one character of anything else
)

// token is a part of a statement. Its depth is the number of brackets around it.
type token struct {
	kind     kind
	text     string // without quotes
	from, to int    // in the statement
	depth    int
}

// is reports whether a token is a keyword or a mark.
func (t token) is(texts ...string) bool {
	if t.kind != word && t.kind != mark {
		return false
	}
	for _, s := range texts {
		if strings.EqualFold(t.text, s) {
			return true
		}
	}
	return false
}

// names reports whether a token may be the name of something.
func (t token) names() bool { return t.kind == word || t.kind == quoted }

// tokens splits a statement. Comments and spaces are left out; a quote that is never
// closed goes to the end.
func tokens(s string) []token {
	var out []token
	depth := 0
	for at := 0; at < len(s) && len(out) < maxTokens; {
		next, t, ok := scan(s, at)
		if ok {
			if t.kind == mark && t.text == ")" {
				depth = max(depth-1, 0)
			}
			t.depth = depth
			if t.kind == mark && t.text == "(" {
				depth++
			}
			out = append(out, t)
		}
		at = next
	}
	return out
}

// scan reads what begins at a place: a token, or false for a space or a comment.
func scan(s string, at int) (next int, t token, ok bool) {
	r, size := utf8.DecodeRuneInString(s[at:])
	rest := s[at:]
	switch {
	case unicode.IsSpace(r):
		return at + size, t, false
	case strings.HasPrefix(rest, "--"):
		return at + upTo(rest, "\n"), t, false
	case strings.HasPrefix(rest, "/*"):
		return at + upTo(rest, "*/"), t, false
	case r == '\'':
		return quote(s, at, '\'', str)
	case r == '"' || r == '`':
		return quote(s, at, byte(r), quoted)
	case unicode.IsDigit(r):
		return run(s, at, num, func(r rune) bool { return unicode.IsDigit(r) || r == '.' })
	case unicode.IsLetter(r) || r == '_':
		return run(s, at, word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '$' })
	}
	return at + size, token{kind: mark, text: s[at : at+size], from: at, to: at + size}, true
}

// upTo is the length of a text with its first end, or all of it.
func upTo(s, end string) int {
	if i := strings.Index(s, end); i >= 0 {
		return i + len(end)
	}
	return len(s)
}

func run(s string, at int, k kind, belongs func(r rune) bool) (int, token, bool) {
	end := at + strings.IndexFunc(s[at:], func(r rune) bool { return !belongs(r) })
	if end < at {
		end = len(s)
	}
	return end, token{kind: k, text: s[at:end], from: at, to: end}, true
}

// quote reads to the closing quote; a doubled one stands for itself.
func quote(s string, at int, q byte, k kind) (int, token, bool) {
	var b strings.Builder
	i := at + 1
	for ; i < len(s); i++ {
		if s[i] != q {
			b.WriteByte(s[i])
			continue
		}
		if i+1 >= len(s) || s[i+1] != q {
			i++
			break
		}
		b.WriteByte(q)
		i++
	}
	return i, token{kind: k, text: b.String(), from: at, to: i}, true
}
