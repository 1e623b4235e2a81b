package tool

import (
	"encoding/json"
	"unicode"
)

// Expression is how a program names the tool: mcp.fs.read_file, with brackets
// where a name can be written as an identifier in no style.
func (id ID) Expression() string {
	return "mcp" + member(id.Server()) + member(id.Name())
}

func member(name string) string {
	for _, style := range []string{name, Snake(name)} {
		if isIdentifier(style) {
			return "." + style
		}
	}
	quoted, _ := json.Marshal(name) // a string always encodes
	return "[" + string(quoted) + "]"
}

// isIdentifier reports whether a property of this name can be written behind a dot.
func isIdentifier(name string) bool {
	for i, r := range name {
		if r != '_' && r != '$' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return name != ""
}
