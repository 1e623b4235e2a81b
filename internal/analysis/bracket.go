package analysis

import "strings"

// bracket is a bracket without its partner.
type bracket struct {
	text   string
	opened bool // it opens; otherwise it closes
}

var partners = map[byte]byte{')': '(', ']': '[', '}': '{'}

// unbalanced finds the bracket that is most likely wrong: the first that closes
// another one, or the last that stays open.
func unbalanced(src string) (offset int, b bracket, ok bool) {
	type open struct {
		at       int
		char     byte
		template bool // a ${ of a template
	}
	var stack []open
	for i := 0; i < len(src); {
		switch c := src[i]; c {
		case '(', '[', '{':
			stack = append(stack, open{at: i, char: c})
			i++
		case ')', ']', '}':
			if len(stack) == 0 {
				return i, bracket{text: string(c)}, true
			}
			top := stack[len(stack)-1]
			if top.char != partners[c] {
				return top.at, bracket{text: string(top.char), opened: true}, true
			}
			stack = stack[:len(stack)-1]
			i++
			if top.template {
				var inner bool
				if i, inner = skipTemplate(src, i); inner {
					stack = append(stack, open{at: i - 1, char: '{', template: true})
				}
			}
		case '`':
			var inner bool
			if i, inner = skipTemplate(src, i+1); inner {
				stack = append(stack, open{at: i - 1, char: '{', template: true})
			}
		default:
			i = skipToken(src, i)
		}
	}
	if len(stack) == 0 {
		return 0, bracket{}, false
	}
	top := stack[len(stack)-1]
	return top.at, bracket{text: string(top.char), opened: true}, true
}

// skipTemplate skips the text of a template; inner says that it stops behind a ${.
func skipTemplate(src string, i int) (next int, inner bool) {
	for i < len(src) {
		switch {
		case src[i] == '\\':
			i += 2
		case src[i] == '`':
			return i + 1, false
		case strings.HasPrefix(src[i:], "${"):
			return i + 2, true
		default:
			i++
		}
	}
	return len(src), false
}

// skipToken skips a string, a comment, a regular expression, or one byte.
func skipToken(src string, i int) int {
	rest := src[i:]
	switch {
	case rest[0] == '"' || rest[0] == '\'':
		return skipQuoted(src, i+1, rest[0])
	case strings.HasPrefix(rest, "//"):
		line, _ := splitLine(rest)
		return i + len(line)
	case strings.HasPrefix(rest, "/*"):
		if end := strings.Index(rest[2:], "*/"); end >= 0 {
			return i + end + 4
		}
		return len(src)
	case rest[0] == '/' && beginsRegExp(src[:i]):
		return skipRegExp(src, i+1)
	}
	return i + 1
}

// skipQuoted skips to behind the closing quote, or to the end of the line.
func skipQuoted(src string, i int, quote byte) int {
	for ; i < len(src) && src[i] != '\n'; i++ {
		switch src[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		}
	}
	return min(i, len(src))
}

func skipRegExp(src string, i int) int {
	class := false
	for ; i < len(src) && src[i] != '\n'; i++ {
		switch c := src[i]; {
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			return i + 1
		}
	}
	return min(i, len(src))
}

// beginsRegExp reports whether a slash behind before begins a regular expression
// and is no division.
func beginsRegExp(before string) bool {
	before = strings.TrimRight(before, " \t\r\n")
	if before == "" {
		return true
	}
	if !isNameByte(before[len(before)-1]) {
		return !strings.ContainsAny(before[len(before)-1:], ")]}\"'`")
	}
	for _, word := range []string{"return", "typeof", "case", "in", "of", "await", "yield", "throw", "void", "delete", "else", "do"} {
		if strings.HasSuffix(before, word) {
			head := before[:len(before)-len(word)]
			return head == "" || !isNameByte(head[len(head)-1])
		}
	}
	return false
}
