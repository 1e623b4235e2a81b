// Package wordpiece turns text into the token ids of an uncased BERT model. It reads
// the vocabulary from a tokenizer.json and does what that file's BertNormalizer,
// BertPreTokenizer and WordPiece model do. Names of special tokens within a text are
// ordinary text. Package embedding is its caller.
package wordpiece

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxFile bounds tokenizer.json, in bytes; that of a model with 250,000 tokens is
// about 17 MB.
const maxFile = 64 << 20

// Tokenizer is a vocabulary. It does not change and may be used by many goroutines.
type Tokenizer struct {
	pieces     map[string]int32 // at the start of a word
	inner      map[string]int32 // within a word, without the prefix
	longest    int              // bytes of the longest piece
	maxRunes   int              // of a word; longer ones are unknown
	start, end int32
	unknown    int32
	size       int
}

// file is what is read of a tokenizer.json.
type file struct {
	Normalizer struct {
		Type         string `json:"type"`
		Lowercase    *bool  `json:"lowercase"`
		StripAccents *bool  `json:"strip_accents"`
	} `json:"normalizer"`
	Model struct {
		Type     string           `json:"type"`
		Unknown  string           `json:"unk_token"`
		Prefix   string           `json:"continuing_subword_prefix"`
		MaxRunes int              `json:"max_input_chars_per_word"`
		Vocab    map[string]int32 `json:"vocab"`
	} `json:"model"`
}

// Load reads a tokenizer.json.
func Load(path string) (*Tokenizer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s: %d bytes are more than the %d of any tokenizer", path, info.Size(), maxFile)
	}
	data, err := os.ReadFile(path) //nolint:gosec // the model's folder is configuration
	if err != nil {
		return nil, err
	}
	t, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// Parse reads the content of a tokenizer.json. It refuses those that work otherwise
// than an uncased BERT's.
func Parse(data []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("not a tokenizer: %w", err)
	}
	if f.Model.Type != "" && f.Model.Type != "WordPiece" {
		return nil, fmt.Errorf("the tokenizer is of type %q, not WordPiece", f.Model.Type)
	}
	if n := f.Normalizer; n.Type != "BertNormalizer" || n.Lowercase != nil && !*n.Lowercase || n.StripAccents != nil && !*n.StripAccents {
		return nil, errors.New("the normalizer is not that of an uncased BERT")
	}
	return fromVocabulary(f)
}

func fromVocabulary(f file) (*Tokenizer, error) {
	m := f.Model
	prefix := orElse(m.Prefix, "##")
	t := &Tokenizer{pieces: make(map[string]int32, len(m.Vocab)), inner: map[string]int32{}, maxRunes: m.MaxRunes}
	if t.maxRunes <= 0 {
		t.maxRunes = 100
	}
	for piece, id := range m.Vocab {
		if id < 0 || int(id) >= len(m.Vocab) {
			return nil, fmt.Errorf("token %q has the id %d in a vocabulary of %d", piece, id, len(m.Vocab))
		}
		if len(piece) > len(prefix) && piece[:len(prefix)] == prefix {
			t.inner[piece[len(prefix):]] = id
		}
		t.pieces[piece] = id
		t.longest = max(t.longest, len(piece))
	}
	t.size = len(m.Vocab)
	for name, id := range map[string]*int32{"[CLS]": &t.start, "[SEP]": &t.end, orElse(m.Unknown, "[UNK]"): &t.unknown} {
		known, ok := m.Vocab[name]
		if !ok {
			return nil, fmt.Errorf("the vocabulary has no %s", name)
		}
		*id = known
	}
	return t, nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// Size is the number of tokens; ids are below it.
func (t *Tokenizer) Size() int { return t.size }

// Encode returns the ids of text between those of [CLS] and [SEP], at most limit in
// all, which is at least 2. What comes behind is not looked at, so that a long text
// costs no more than a short one. Invalid UTF-8 is left out.
func (t *Tokenizer) Encode(text string, limit int) []int32 {
	w := writer{t: t, ids: append(make([]int32, 0, min(limit, 64)), t.start), limit: limit - 1}
	w.text(text)
	return append(w.ids, t.end)
}

// writer splits one text into words and those into pieces.
type writer struct {
	t     *Tokenizer
	ids   []int32
	limit int
	word  []byte
	runes int // in word, which stops growing when there are too many
}

// text goes through the decomposed text, a character with its accents at a time.
func (w *writer) text(s string) {
	var parts norm.Iter
	parts.InitString(norm.NFD, s)
	for !parts.Done() {
		for part := parts.Next(); len(part) > 0; {
			r, size := utf8.DecodeRune(part)
			part = part[size:]
			w.rune(r)
		}
		if len(w.ids) >= w.limit {
			return
		}
	}
	w.flush()
}

func (w *writer) rune(r rune) {
	switch {
	case r == '\t' || r == '\n' || r == '\r' || r == ' ':
		w.flush()
	case r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Mn):
	case unicode.IsSpace(r):
		w.flush()
	case isPunctuation(r) || isIdeograph(r):
		w.flush()
		w.add(r)
		w.flush()
	default:
		w.add(unicode.ToLower(r))
	}
}

func (w *writer) add(r rune) {
	w.runes++
	if w.runes <= w.t.maxRunes {
		w.word = utf8.AppendRune(w.word, r)
	}
}

// flush ends a word.
func (w *writer) flush() {
	switch {
	case w.runes == 0 || len(w.ids) >= w.limit:
	case w.runes > w.t.maxRunes:
		w.ids = append(w.ids, w.t.unknown)
	default:
		w.pieces()
	}
	w.word, w.runes = w.word[:0], 0
	w.ids = w.ids[:min(len(w.ids), w.limit)]
}

// pieces takes the longest piece that fits, again and again; a word with a rest that
// no piece begins is unknown as a whole.
func (w *writer) pieces() {
	from := len(w.ids)
	known := w.t.pieces
	for rest := w.word; len(rest) > 0; known = w.t.inner {
		n := min(len(rest), w.t.longest)
		for ; n > 0; n-- {
			if id, ok := known[string(rest[:n])]; ok {
				w.ids = append(w.ids, id)
				break
			}
		}
		if n == 0 {
			w.ids = append(w.ids[:from], w.t.unknown)
			return
		}
		rest = rest[n:]
	}
}

// isPunctuation counts every ASCII sign, which Unicode does not.
func isPunctuation(r rune) bool {
	if r < unicode.MaxASCII {
		return r > ' ' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}
	return unicode.IsPunct(r)
}

// isIdeograph names the blocks that BERT puts spaces around.
func isIdeograph(r rune) bool {
	return r >= 0x3400 && (r <= 0x4DBF || r >= 0x4E00 && r <= 0x9FFF || r >= 0xF900 && r <= 0xFAFF ||
		r >= 0x20000 && r <= 0x2A6DF || r >= 0x2A700 && r <= 0x2CEAF || r >= 0x2F800 && r <= 0x2FA1F)
}
