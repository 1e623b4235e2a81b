package search

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/tool"
)

const (
	// maxSentences is how many sentences of an intent are looked for by themselves.
	maxSentences = 8
	// minSentence is how many words, without stop words, make a sentence worth looking for.
	minSentence = 3
	// maxOpening is how much of a description goes before the parameters, in bytes: the
	// model reads 256 tokens, and the parameters must be among them.
	maxOpening = 300
	// maxText bounds the text of one document in bytes: descriptions come from
	// servers, and a model reads a few hundred words at most.
	maxText = 32 << 10
)

// Text is what a document is found by.
type Text struct {
	Dense   string // what the model reads
	Lexical string // what words are matched with: the same, and the rest of the descriptions
}

// ToolText writes down a tool: the words of its name, what it says about itself
// and what it takes.
func ToolText(t tool.Tool) Text {
	parameters := schemaProperties(t.InputSchema)
	return describe(spell(t.ID.Server())+" "+spell(t.ID.Name()), t.Description, parameters)
}

// CapabilityText writes down a capability: its name, the intent it was made for,
// its description, its tools and its parameters.
func CapabilityText(c capability.Capability) Text {
	about := []string{c.Intent}
	if c.Description != "" && c.Description != c.Intent {
		about = append(about, c.Description)
	}
	if len(c.ToolsUsed) > 0 {
		names := make([]string, len(c.ToolsUsed))
		for i, id := range c.ToolsUsed {
			names[i] = strings.TrimSpace(spell(id.Server()) + " " + spell(id.Name()))
		}
		about = append(about, "Tools: "+strings.Join(names, ", ")+".")
	}
	parameters := make([]property, len(c.Parameters))
	for i, p := range c.Parameters {
		parameters[i] = property{name: p.Name, description: schemaDescription(p.Schema)}
	}
	return describe(spell(c.Name), strings.Join(about, " "), parameters)
}

// describe puts a text together. Of a parameter's description the first sentence
// counts, which says what it is; formats, defaults and examples come after, and their
// words are those of every other tool.
func describe(name, about string, parameters []property) Text {
	var dense, arguments strings.Builder
	summary, more := opening(about)
	dense.WriteString(strings.TrimSpace(name) + ": " + summary)
	for i, p := range parameters {
		separator := ", "
		if i == 0 {
			separator = " Parameters: "
		}
		dense.WriteString(separator + p.name)
		if p.description != "" {
			arguments.WriteString(" " + p.description[:sentenceEnd(p.description)])
		}
	}
	if len(parameters) > 0 {
		dense.WriteString(".")
	}
	return Text{Dense: cut(dense.String()), Lexical: cut(dense.String() + " " + more + arguments.String())}
}

// opening divides a description behind the last word that ends in its first
// maxOpening bytes.
func opening(about string) (first, rest string) {
	if len(about) <= maxOpening {
		return about, ""
	}
	end := strings.LastIndexFunc(about[:maxOpening], unicode.IsSpace)
	if end <= 0 {
		return about, ""
	}
	return about[:end], about[end:]
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "")
}

// spell writes an identifier as words.
func spell(identifier string) string {
	return strings.TrimSpace(strings.ReplaceAll(tool.Snake(identifier), "_", " "))
}

type property struct{ name, description string }

// schemaProperties are those that an object's schema names, in order of name: the
// text of a tool must not depend on how a server orders its keys. A schema that
// cannot be read has none.
func schemaProperties(schema json.RawMessage) []property {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	out := make([]property, 0, len(s.Properties))
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		out = append(out, property{name: name, description: schemaDescription(s.Properties[name])})
	}
	return out
}

func schemaDescription(schema json.RawMessage) string {
	var s struct {
		Description string `json:"description"`
	}
	if json.Unmarshal(schema, &s) != nil { // true and false are schemas too
		return ""
	}
	return s.Description
}

// sentences are the first eight sentences of three or more words (stop words do not
// count), for a text that has several; a text of one sentence has none besides itself.
func sentences(text string) []string {
	var out []string
	count := 0
	rest := text
	for rest != "" {
		end := sentenceEnd(rest)
		sentence := strings.TrimSpace(rest[:end])
		rest = rest[end:]
		if sentence == "" {
			continue
		}
		count++
		if len(out) < maxSentences && len(tokens(sentence)) >= minSentence {
			out = append(out, sentence)
		}
	}
	if count < 2 {
		return nil
	}
	return out
}

// sentenceEnd is the offset behind the first sentence: behind a full stop and the
// like that white space follows (a file name has stops too), at the end of a line,
// or behind an ideographic one.
func sentenceEnd(s string) int {
	for i, r := range s {
		next := i + len(string(r))
		switch r {
		case '\n', '。', '！', '？':
			return next
		case '.', '!', '?', ';':
			if next < len(s) && unicode.IsSpace(rune(s[next])) {
				return next
			}
		}
	}
	return len(s)
}
