package tool

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// nameOf makes a type's name of the last step of a reference, other than the names
// of the types before it.
func (r *schemaReader) nameOf(ref string) string {
	if name, ok := r.names[ref]; ok {
		return name
	}
	last := unescape(ref[strings.LastIndex(ref, "/")+1:])
	if ref == "#" {
		last = "Self"
		if root, ok := r.root.(*fields); ok && root.text("title") != "" {
			last = root.text("title")
		}
	}
	plain := r.prefix + typeName(last)
	name := plain
	for n := 2; slices.Contains(slices.Collect(maps.Values(r.names)), name); n++ {
		name = plain + strconv.Itoa(n)
	}
	if r.names == nil {
		r.names = map[string]string{}
	}
	r.names[ref] = name
	return name
}

// typeName makes an identifier of any text that is no word of the language: it
// starts with a capital.
func typeName(text string) string {
	camel := []byte(Camel(text))
	camel = slices.DeleteFunc(camel, func(b byte) bool { return b >= utf8.RuneSelf || b == '_' })
	if len(camel) == 0 {
		return "Type"
	}
	if camel[0] >= '0' && camel[0] <= '9' {
		return "Type" + string(camel)
	}
	return strings.ToUpper(string(camel[:1])) + string(camel[1:])
}
