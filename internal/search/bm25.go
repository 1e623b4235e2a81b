package search

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/kljensen/snowball/english"
)

// BM25's parameters (Robertson and Zaragoza, The Probabilistic Relevance Framework:
// BM25 and Beyond, 2009, §3): how fast a repeated word stops counting, and how much
// a long text is held against it.
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

const (
	// maxToken bounds a token in runes; what is longer is data and not a word.
	maxToken = 40
	// maxTerms bounds the different terms of a query.
	maxTerms = 256
)

// stop are words that say nothing about what a tool does. The list is small: "up",
// "off" and "not" may be what tells two tools apart.
var stop = words(`a an and are as at be been by can could do does for from had has have how i if in into
	is it its me my of on or our please shall should so some such t that the their them then there these they
	this those to us was we were what when where which will with would you your s`)

func words(list string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		out[w] = true
	}
	return out
}

// tokens are the terms of a text: its words without the stop words, split like
// identifiers are, in lower case and stemmed. Scripts without spaces between words
// become pairs of characters.
func tokens(text string) []string {
	var out []string
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		out = appendWord(out, []rune(word))
	}
	return out
}

func appendWord(out []string, word []rune) []string {
	start := 0
	for i := 1; i < len(word); i++ {
		if boundary(word, i) {
			out = appendPart(out, word[start:i])
			start = i
		}
	}
	out = appendPart(out, word[start:])
	if start > 0 && len(word) <= maxToken && !slices.ContainsFunc(word, ideographic) {
		out = append(out, english.Stem(strings.ToLower(string(word)), true)) // who writes GitHub is found by github
	}
	return out
}

// boundary reports whether a new part of an identifier begins at i.
func boundary(word []rune, i int) bool {
	if ideographic(word[i]) != ideographic(word[i-1]) {
		return true
	}
	if !unicode.IsUpper(word[i]) {
		return false
	}
	return unicode.IsLower(word[i-1]) || i+1 < len(word) && unicode.IsUpper(word[i-1]) && unicode.IsLower(word[i+1])
}

func appendPart(out []string, part []rune) []string {
	if ideographic(part[0]) {
		for i := range max(len(part)-1, 1) {
			out = append(out, string(part[i:min(i+2, len(part))]))
		}
		return out
	}
	if len(part) > maxToken {
		return out
	}
	word := strings.ToLower(string(part))
	if stop[word] {
		return out
	}
	return append(out, english.Stem(word, true))
}

func ideographic(r rune) bool {
	return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

// posting says how often a document has a term.
type posting struct {
	row   int32
	count float32
}

// countTerms are the different terms of a text with their counts, in order of
// first occurrence, and the text's length in terms.
func countTerms(text string) (terms []string, counts []float32, length int) {
	all := tokens(text)
	at := make(map[string]int, len(all))
	for _, t := range all {
		i, known := at[t]
		if !known {
			i = len(terms)
			at[t] = i
			terms, counts = append(terms, t), append(counts, 0)
		}
		counts[i]++
	}
	return terms, counts, len(all)
}

// lexical returns the BM25 of every row for a query, and nil if no row has any of
// its terms. A term that is repeated in the query counts once: long intents repeat
// what is not important.
func (s *snapshot) lexical(query string) []float32 {
	terms, _, _ := countTerms(query)
	terms = terms[:min(len(terms), maxTerms)]
	slices.Sort(terms) // sums must not depend on the order of words
	var out []float32
	offset, slope := float32(bm25K1*(1-bm25B)), float32(0)
	if s.length > 0 {
		slope = float32(bm25K1 * bm25B * float64(s.live) / float64(s.length))
	}
	for _, term := range terms {
		list, _ := s.terms.get(term)
		if list == nil {
			continue
		}
		if out == nil {
			out = make([]float32, len(s.rows))
		}
		weight := float32(inverseFrequency(s.live, len(list.list)) * (bm25K1 + 1))
		for _, p := range list.list {
			out[p.row] += weight * p.count / (p.count + offset + slope*float32(s.rows[p.row].length))
		}
	}
	return out
}

// inverseFrequency weighs a term by how few of the documents have it; never negative.
func inverseFrequency(documents, having int) float64 {
	return math.Log1p((float64(documents-having) + 0.5) / (float64(having) + 0.5))
}
