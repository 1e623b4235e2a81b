package execute

import (
	"encoding/json"
	"iter"
	"strings"
)

// The functions here find their way in valid JSON text without decoding it: a value
// is a part of the text, so that numbers, the order of keys and spaces stay as they
// were stored, and looking at one value of a large result makes no copy of the rest.
// Text that is no JSON gives nonsense, but never a panic.

// kindOf names the JSON type of a value: object, list, string, number, boolean or null.
func kindOf(value string) string {
	if value == "" {
		return "null"
	}
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "list"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// withoutSpace is the index of the first byte from i on that is no white space.
func withoutSpace(text string, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

// valueEnd is the index behind the value that begins at i.
func valueEnd(text string, i int) int {
	depth := 0
	for i < len(text) {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			i++
		default:
			i = wordEnd(text, i)
		}
		if depth <= 0 {
			return i
		}
	}
	return i
}

// stringEnd is the index behind the string whose opening quote is at i.
func stringEnd(text string, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// wordEnd is the index behind the number or the word that begins at i.
func wordEnd(text string, i int) int {
	if n := strings.IndexAny(text[i:min(i+8, len(text))], ",:]} \n\t\r"); n > 0 {
		return i + n // most are short
	}
	if n := strings.IndexAny(text[i:], ",:]} \n\t\r"); n > 0 {
		return i + n
	}
	return len(text)
}

// items are the values of a list, in order, with their indexes.
func items(list string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		at := withoutSpace(list, 1)
		for n := 0; at < len(list) && list[at] != ']'; n++ {
			end := valueEnd(list, at)
			if end <= at || !yield(n, list[at:end]) {
				return
			}
			at = nextValue(list, end)
		}
	}
}

// members are the keys of an object with their values, in order.
func members(object string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		at := withoutSpace(object, 1)
		for at < len(object) && object[at] == '"' {
			end := stringEnd(object, at)
			key := unquote(object[at:end])
			at = withoutSpace(object, end)
			if at >= len(object) || object[at] != ':' {
				return
			}
			at = withoutSpace(object, at+1)
			end = valueEnd(object, at)
			if end <= at || !yield(key, object[at:end]) {
				return
			}
			at = nextValue(object, end)
		}
	}
}

// nextValue is where the value after the comma begins; without one, where the end is.
func nextValue(text string, end int) int {
	at := withoutSpace(text, end)
	if at < len(text) && text[at] == ',' {
		at = withoutSpace(text, at+1)
	}
	return at
}

// unquote is the text of a JSON string.
func unquote(value string) string {
	if len(value) >= 2 && !strings.Contains(value, `\`) {
		return value[1 : len(value)-1]
	}
	var text string
	if json.Unmarshal([]byte(value), &text) != nil {
		return value
	}
	return text
}

// count is the number of items of a list.
func count(list string) int {
	n := 0
	for range items(list) {
		n++
	}
	return n
}
