package connector

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// What of an argument comes back in an answer.
const (
	maxName = 100     // bytes of a name
	maxText = 20_000  // bytes of a text
	maxList = 20      // items of a list
	maxPage = 1 << 20 // pages, and items of a page
)

// arguments are those of a call. What is not of the wanted type is not there.
type arguments map[string]any

// readArguments reads a JSON object; anything else has no arguments.
func readArguments(raw json.RawMessage) arguments {
	var a arguments
	if json.Unmarshal(raw, &a) != nil {
		return nil
	}
	return a
}

// text is the first of the arguments that is a text and not empty, cut to most bytes.
func (a arguments) text(most int, names ...string) string {
	for _, name := range names {
		if s, ok := a[name].(string); ok && s != "" {
			return cut(s, most)
		}
	}
	return ""
}

// name is the text of an argument that names something, or what stands for it.
func (a arguments) name(otherwise string, names ...string) string {
	if s := a.text(maxName, names...); s != "" {
		return s
	}
	return otherwise
}

// number is the first of the arguments that is a whole number of at least 0, also
// one that is written as text.
func (a arguments) number(names ...string) (int, bool) {
	for _, name := range names {
		v, ok := a[name].(float64)
		if s, isText := a[name].(string); isText {
			n, err := strconv.ParseFloat(s, 64)
			v, ok = n, err == nil
		}
		if ok && v >= 0 && v <= math.MaxInt32 {
			return int(v), true
		}
	}
	return 0, false
}

// list are the texts of an argument that is a list of them; nil where it is none.
func (a arguments) list(name string) []string {
	items, ok := a[name].([]any)
	if !ok {
		return nil
	}
	out := []string{}
	for _, item := range items[:min(len(items), maxList)] {
		if s, ok := item.(string); ok {
			out = append(out, cut(s, maxName))
		}
	}
	return out
}

// flag is an argument that is true.
func (a arguments) flag(name string) bool { v, _ := a[name].(bool); return v }

// page is the part of so many items that the arguments ask for: [from, to).
func (a arguments) page(items, usual int) (from, to int) {
	page, ok := a.number("page")
	if !ok || page < 1 {
		page = 1
	}
	size, ok := a.number("perPage", "per_page")
	if !ok || size < 1 {
		size = usual
	}
	from = min((min(page, maxPage)-1)*min(size, maxPage), items)
	return from, min(from+min(size, maxPage), items)
}

// cursor names the place before an item; after reads it. What is no cursor is the
// place before the first.
func cursor(item int) string {
	return base64.StdEncoding.EncodeToString([]byte("cursor:" + strconv.Itoa(item)))
}

func after(cursor string, items int) int {
	b, err := base64.StdEncoding.DecodeString(cursor)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimPrefix(string(b), "cursor:"))
	if err != nil || n < 0 {
		return 0
	}
	return min(n, items)
}

// cut shortens a text to at most so many bytes, between characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
