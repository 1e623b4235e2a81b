package tool

import (
	"slices"
	"strings"
	"unicode"
)

// Snake writes a name as a snake_case identifier: "Get-CurrentTime" becomes
// "get_current_time".
func Snake(name string) string { return guardDigit(strings.Join(lowerWords(name), "_")) }

// Camel writes a name as a camelCase identifier: "get-current-time" becomes
// "getCurrentTime".
func Camel(name string) string {
	var b strings.Builder
	for i, w := range lowerWords(name) {
		if i == 0 {
			b.WriteString(w)
			continue
		}
		r := []rune(w)
		r[0] = unicode.ToUpper(r[0])
		b.WriteString(string(r))
	}
	return guardDigit(b.String())
}

// guardDigit makes an identifier of what starts with a digit.
func guardDigit(s string) string {
	if s != "" && unicode.IsDigit([]rune(s)[0]) {
		return "_" + s
	}
	return s
}

// lowerWords splits a name where an identifier of another style would: at
// characters that no identifier has, and where lower case turns into upper case.
func lowerWords(name string) []string {
	var words []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			flush()
			continue
		}
		if unicode.IsUpper(r) && i > 0 {
			afterLower := unicode.IsLower(runes[i-1]) || unicode.IsDigit(runes[i-1])
			endsAcronym := unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterLower || endsAcronym {
				flush()
			}
		}
		word = append(word, r)
	}
	flush()
	return words
}

// nearest returns the up to n names most like want, best first; ties in order of name.
func nearest(want string, names []string, n int) []string {
	type scored struct {
		name string
		dist int
	}
	all := make([]scored, len(names))
	key := Snake(want)
	for i, name := range names {
		all[i] = scored{name, distance(key, Snake(name))}
	}
	slices.SortFunc(all, func(a, b scored) int {
		if a.dist != b.dist {
			return a.dist - b.dist
		}
		return strings.Compare(a.name, b.name)
	})
	out := make([]string, 0, n)
	for _, s := range all[:min(n, len(all))] {
		out = append(out, s.name)
	}
	return out
}

// maxCompared bounds the work of one comparison: names may be hostile.
const maxCompared = 64

// distance is the Levenshtein distance of the first maxCompared bytes, less a
// bonus when one name holds the other.
func distance(a, b string) int {
	a, b = a[:min(len(a), maxCompared)], b[:min(len(b), maxCompared)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	d := 2 * row[len(b)]
	if a != "" && b != "" && (strings.Contains(a, b) || strings.Contains(b, a)) {
		d /= 2
	}
	return d
}
