package store

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
)

// jsonb makes raw fit for a jsonb column; nil for nothing. What is not JSON is kept
// as a string: a run must not become impossible to store by what a tool has said.
func jsonb(raw json.RawMessage) *string {
	if len(raw) == 0 {
		return nil
	}
	var s string
	if json.Valid(raw) {
		s = string(mend(raw))
	} else {
		quoted, err := json.Marshal(text(string(raw)))
		if err != nil {
			return nil // cannot be: it is a string
		}
		s = string(quoted)
	}
	return &s
}

// mend replaces what is valid JSON but refused by PostgreSQL: \u0000, halves of
// surrogate pairs, invalid UTF-8, and numbers with an exponent beyond numeric's.
func mend(raw []byte) []byte {
	raw = []byte(text(string(raw)))
	if !bytes.Contains(raw, []byte(`\u`)) && !bytes.ContainsAny(raw, "eE") {
		return raw
	}
	out := make([]byte, 0, len(raw))
	inString := false
	for i := 0; i < len(raw); {
		n := 1
		switch c := raw[i]; {
		case c == '"':
			inString = !inString
			out = append(out, c)
		case inString && c == '\\':
			n = escapeLength(raw[i:])
			out = appendEscape(out, raw[i:i+n])
		case !inString && (c == '-' || c >= '0' && c <= '9'):
			n = numberLength(raw[i:])
			out = appendNumber(out, raw[i:i+n])
		default:
			out = append(out, c)
		}
		i += n
	}
	return out
}

// escapeLength is the length of the escape that b begins with; a surrogate pair
// counts as one.
func escapeLength(b []byte) int {
	const single, pair = 6, 12
	if b[1] != 'u' {
		return 2
	}
	if len(b) >= pair && b[6] == '\\' && b[7] == 'u' && utf16.DecodeRune(unit16(b), unit16(b[6:])) != '\uFFFD' {
		return pair
	}
	return single
}

func unit16(b []byte) rune {
	v, _ := strconv.ParseUint(string(b[2:6]), 16, 16) // valid JSON has four hexadecimal digits here
	return rune(v)
}

func appendEscape(out, escape []byte) []byte {
	if len(escape) == 6 {
		if r := unit16(escape); r == 0 || utf16.IsSurrogate(r) {
			return append(out, `\ufffd`...)
		}
	}
	return append(out, escape...)
}

func numberLength(b []byte) int {
	for i, c := range b {
		if (c < '0' || c > '9') && !bytes.ContainsRune([]byte("+-.eE"), rune(c)) {
			return i
		}
	}
	return len(b)
}

// appendNumber quotes a number that numeric cannot hold.
func appendNumber(out, number []byte) []byte {
	const mostDigits = 4 // of an exponent; numeric ends at 131,072 digits
	if i := bytes.IndexAny(number, "eE"); i >= 0 {
		exponent := bytes.TrimLeft(number[i+1:], "+-0")
		if len(exponent) > mostDigits {
			return append(append(append(out, '"'), number...), '"')
		}
	}
	return append(out, number...)
}
