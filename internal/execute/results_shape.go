package execute

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pml-run/pml/internal/tool"
)

// Limits of what a shape shows.
const (
	maxShape      = 1500 // bytes, as JSON
	maxShapeType  = 600  // bytes of the type
	maxShapeDepth = 6
	maxShapeKeys  = 24  // of one object; the rest is taken together as "*"
	maxShapeParts = 300 // places that are told apart
	maxShapeKey   = 60  // characters of a key
	longString    = 100 // characters from which a string's size is told
)

// shapeOf tells the structure of a value: its type as TypeScript has it, then each
// place with a list, an object or a long string, with how many there are and how big.
// The outer places come first; what finds no room in maxShape is counted.
func shapeOf(value string) *view {
	d := drawing{}
	root := d.add("$", 0)
	root.see(value, &d)
	root.mark(false)
	slices.SortStableFunc(d.parts, func(a, b *part) int { return a.depth - b.depth })
	text := root.typeText()
	rest := 0
	for _, p := range d.parts {
		line := p.line()
		switch {
		case p.one || line == "":
		case rest > 0 || encodedSize(text)+encodedSize(line) > maxShape:
			rest++
		default:
			text += "\n" + line
		}
	}
	if rest > 0 {
		text += fmt.Sprintf("\n… and %d more places", rest)
	}
	return newView(text, kindOf(value), false)
}

// encodedSize is the length of a text in an answer.
func encodedSize(text string) int {
	b, err := json.Marshal(text)
	if err != nil {
		return maxShape // a string always can
	}
	return len(b)
}

// drawing gathers the places of a value.
type drawing struct{ parts []*part }

// part is what is known of all values at one place.
type part struct {
	path  string
	depth int
	types []string // as JSON Schema names them
	// seen are the values at the place, objects those that are objects, bytes their
	// size as JSON.
	seen, objects, bytes int
	// The least and the most of the items of lists, the keys of objects and the
	// characters of strings.
	items, keys, chars span

	order    []string // of the keys
	children map[string]*part
	others   *part // the values of further keys
	one      bool  // it is, or is in, the value of one of too many keys
	list     *part // the items of lists
}

// span is between which numbers sizes were.
type span struct {
	least, most int
	any         bool
}

func (s *span) add(n int) {
	if !s.any {
		s.least, s.any = n, true
	}
	s.least, s.most = min(s.least, n), max(s.most, n)
}

func (s span) String() string {
	if s.least == s.most {
		return strconv.Itoa(s.most)
	}
	return fmt.Sprintf("%d to %d", s.least, s.most)
}

// add makes a place; nil where there are enough.
func (d *drawing) add(path string, depth int) *part {
	if len(d.parts) == maxShapeParts || depth > maxShapeDepth {
		return nil
	}
	p := &part{path: path, depth: depth, children: map[string]*part{}}
	d.parts = append(d.parts, p)
	return p
}

// see takes one more value at the place into account.
func (p *part) see(value string, d *drawing) {
	if p == nil {
		return
	}
	p.seen++
	p.bytes += len(value)
	if t := schemaType(value); !slices.Contains(p.types, t) {
		p.types = append(p.types, t)
	}
	switch kindOf(value) {
	case "object":
		p.seeObject(value, d)
	case "list":
		n := 0
		for _, item := range items(value) {
			if n == 0 && p.list == nil {
				p.list = d.add(p.path+"[*]", p.depth+1)
			}
			p.list.see(item, d)
			n++
		}
		p.items.add(n)
	case "string":
		p.chars.add(utf8.RuneCountInString(unquote(value)))
	}
}

func (p *part) seeObject(object string, d *drawing) {
	p.objects++
	n := 0
	for key, value := range members(object) {
		n++
		p.child(key, d).see(value, d)
	}
	p.keys.add(n)
}

// child is the place of a key's value.
func (p *part) child(key string, d *drawing) *part {
	child, known := p.children[key]
	switch {
	case known:
		return child
	case len(p.order) < maxShapeKeys:
		child = d.add(p.path+keyText(Preview(key, maxShapeKey)), p.depth+1)
		p.children[key], p.order = child, append(p.order, key)
		return child
	case p.others == nil:
		p.others = d.add(p.path+".*", p.depth+1)
	}
	return p.others
}

// mark finds the places that are not told: those of single keys of an object that has
// too many.
func (p *part) mark(one bool) {
	if p == nil {
		return
	}
	p.one = one
	for _, child := range p.children {
		child.mark(one || p.others != nil)
	}
	p.others.mark(one)
	p.list.mark(one)
}

// schemaType is the name that JSON Schema has for the type of a value.
func schemaType(value string) string {
	switch kind := kindOf(value); {
	case kind == "list":
		return "array"
	case kind == "number" && !strings.ContainsAny(value, ".eE"):
		return "integer"
	default:
		return kind
	}
}

// typeText is the type of the values at the place, as TypeScript has it.
func (p *part) typeText() string {
	schema, err := json.Marshal(p.shape())
	if err != nil {
		return "unknown"
	}
	text := tool.TypeOf(schema, maxShapeType)
	if encodedSize(text) > maxShape {
		return "unknown"
	}
	return text
}

// shape is the place as a schema.
func (p *part) shape() tool.Shape {
	if p == nil {
		return tool.Shape{}
	}
	s := tool.Shape{Types: p.types}
	for _, key := range p.shown() {
		child := p.children[key]
		if child == nil {
			continue
		}
		if s.Properties == nil {
			s.Properties = map[string]tool.Shape{}
		}
		s.Properties[key] = child.shape()
		if child.seen == p.objects {
			s.Required = append(s.Required, key)
		}
	}
	if p.list != nil {
		items := p.list.shape()
		s.Items = &items
	}
	return s
}

// shown are the keys that are named: all, or some where there are too many.
func (p *part) shown() []string {
	const some = 3
	if p.others == nil {
		return p.order
	}
	return p.order[:some]
}

// line tells how many and how big the values at the place are; empty where the type
// says it all.
func (p *part) line() string {
	var about []string
	if p.items.any {
		about = append(about, "list of "+p.items.String())
	}
	if p.keys.any {
		about = append(about, "object with "+p.keys.String()+" keys"+p.examples())
	}
	if p.chars.most >= longString {
		about = append(about, "string of "+p.chars.String()+" characters")
	}
	if len(about) == 0 {
		return ""
	}
	times := ""
	if p.seen > 1 {
		times = fmt.Sprintf("%d times ", p.seen)
	}
	return fmt.Sprintf("%s: %s%s; %d bytes", p.path, times, strings.Join(about, " or "), p.bytes)
}

// examples names some keys of an object that has too many for its type.
func (p *part) examples() string {
	if p.others == nil {
		return ""
	}
	var names []string
	for _, key := range p.shown() {
		names = append(names, fmt.Sprintf("%q", Preview(key, maxShapeKey)))
	}
	return ", e.g. " + strings.Join(names, ", ")
}
