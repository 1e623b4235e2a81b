package execute

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pml-run/pml/internal/fault"
)

// Limits of a path.
const (
	maxPath     = 1000 // bytes
	maxSteps    = 50
	maxKeyHint  = 300 // characters of the keys that an error names
	maxPathHint = 120 // characters of the place that an error names
)

// pathHint is what a path may be.
const pathHint = "write a path like $.items[0].name, items[*].id, items[-1], items[0:10] or ['odd key']; filters and scripts are not known"

// step is one step of a path from a value to a part of it.
type step struct {
	kind stepKind
	name string // of a key
	// from is an index, or where a slice begins; to is where a slice ends. Negative
	// ones count from the end.
	from, to int
	open     bool // the slice goes to the end
}

type stepKind int

const (
	keyStep stepKind = iota
	indexStep
	sliceStep
	everyStep
)

// many reports whether the step may lead to several values.
func (s step) many() bool { return s.kind == sliceStep || s.kind == everyStep }

// String writes the step as a path has it.
func (s step) String() string {
	switch s.kind {
	case keyStep:
		return keyText(s.name)
	case indexStep:
		return "[" + strconv.Itoa(s.from) + "]"
	case sliceStep:
		if s.open {
			return fmt.Sprintf("[%d:]", s.from)
		}
		return fmt.Sprintf("[%d:%d]", s.from, s.to)
	case everyStep:
	}
	return "[*]"
}

// keyText writes the step to a key: behind a dot where it can stand there.
func keyText(name string) string {
	if name != "" && name != "*" && !strings.ContainsAny(name, ".[]'\"\\ \n\t\r") {
		return "." + name
	}
	return "['" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name) + "']"
}

// parsePath reads a path. Its error is a fault.InvalidInput that says where.
func parsePath(path string) ([]step, error) {
	p := pathParser{text: path}
	if len(path) > maxPath {
		return nil, fault.New(fault.InvalidInput, "path has %d bytes, more than %d", len(path), maxPath).WithHint(pathHint)
	}
	if strings.HasPrefix(path, "$") && (len(path) == 1 || path[1] == '.' || path[1] == '[') {
		p.at = 1
	} else if path != "" && path[0] != '[' && path[0] != '.' {
		if err := p.name(); err != nil {
			return nil, err
		}
	}
	for p.at < len(path) {
		if len(p.steps) == maxSteps {
			return nil, p.wrong("has more than %d steps", maxSteps)
		}
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	return p.steps, nil
}

// pathParser reads one path from left to right.
type pathParser struct {
	text  string
	at    int
	steps []step
}

// wrong is an error about the present place.
func (p *pathParser) wrong(format string, args ...any) error {
	return fault.New(fault.InvalidInput, "path, behind %q: %s", Preview(p.text[:p.at], maxPathHint), fmt.Sprintf(format, args...)).WithHint(pathHint)
}

func (p *pathParser) next() error {
	switch rest := p.text[p.at:]; {
	case strings.HasPrefix(rest, ".."):
		return p.wrong("'..' is not known; name every step")
	case rest[0] == '.':
		p.at++
		return p.name()
	case rest[0] == '[':
		p.at++
		return p.bracket()
	}
	return p.wrong("here must be '.' or '['")
}

// name reads a key that stands without quotes.
func (p *pathParser) name() error {
	rest := p.text[p.at:]
	if n := strings.IndexAny(rest, ".["); n >= 0 {
		rest = rest[:n]
	}
	switch {
	case rest == "":
		return p.wrong("here must be a key")
	case rest == "*":
		p.steps = append(p.steps, step{kind: everyStep})
	case strings.ContainsAny(rest, `]'"\`):
		return p.wrong("a key with quotes or brackets must be written ['so']")
	default:
		p.steps = append(p.steps, step{kind: keyStep, name: rest})
	}
	p.at += len(rest)
	return nil
}

// bracket reads what follows an opening bracket, and the closing one.
func (p *pathParser) bracket() error {
	if p.at < len(p.text) && (p.text[p.at] == '\'' || p.text[p.at] == '"') {
		return p.quoted(p.text[p.at])
	}
	inside, _, closed := strings.Cut(p.text[p.at:], "]")
	if !closed {
		return p.wrong("the bracket is not closed")
	}
	s, err := p.subscript(strings.TrimSpace(inside))
	if err != nil {
		return err
	}
	p.steps = append(p.steps, s)
	p.at += len(inside) + 1
	return nil
}

// subscript reads an index, a slice or a star.
func (p *pathParser) subscript(inside string) (step, error) {
	from, to, slice := strings.Cut(inside, ":")
	switch {
	case inside == "*":
		return step{kind: everyStep}, nil
	case strings.HasPrefix(inside, "?") || strings.HasPrefix(inside, "("):
		return step{}, p.wrong("filters and scripts are not known; filter in a program, or use grep")
	case strings.Contains(inside, ","):
		return step{}, p.wrong("%q: one index at a time, or a slice", inside)
	case strings.Contains(to, ":"):
		return step{}, p.wrong("%q: a slice has a beginning and an end, but no stride", inside)
	}
	s := step{kind: indexStep, open: slice && strings.TrimSpace(to) == ""}
	var err error
	if slice {
		s.kind = sliceStep
		if !s.open {
			s.to, err = strconv.Atoi(strings.TrimSpace(to))
		}
	}
	if begin := strings.TrimSpace(from); err == nil && (begin != "" || !slice) {
		s.from, err = strconv.Atoi(begin)
	}
	if err != nil {
		return step{}, p.wrong("%q is no index; a key stands in quotes: ['key']", Preview(inside, maxPathHint))
	}
	return s, nil
}

// quoted reads a key in quotes and the closing bracket.
func (p *pathParser) quoted(quote byte) error {
	var name strings.Builder
	for i := p.at + 1; i < len(p.text); i++ {
		switch c := p.text[i]; c {
		case quote:
			if !strings.HasPrefix(p.text[i+1:], "]") {
				return p.wrong("the key in quotes must be followed by ']'")
			}
			p.at = i + 2
			p.steps = append(p.steps, step{kind: keyStep, name: name.String()})
			return nil
		case '\\':
			i++
			if i == len(p.text) || p.text[i] != quote && p.text[i] != '\\' {
				return p.wrong(`in quotes, a backslash stands before a quote or a backslash`)
			}
			name.WriteByte(p.text[i])
		default:
			name.WriteByte(c)
		}
	}
	return p.wrong("the quote is not closed")
}

// follow returns what a path leads to in a JSON value: one value or, with a step to
// several, the list of them as JSON. Its error is a fault.NotFound that says where the
// path ends.
func follow(value string, path []step) (string, error) {
	for i, s := range path {
		if s.many() {
			return followMany(value, path, i)
		}
		parts, err := s.parts(value, path[:i])
		if err != nil {
			return "", err
		}
		value = parts[0]
	}
	return value, nil
}

// followMany collects the values behind the first step to several, path[from]. Where
// some have no such part they are passed over; where none has, that is an error.
func followMany(value string, path []step, from int) (string, error) {
	c := collector{path: path}
	c.walk(value, from)
	if c.found == 0 && c.missed != nil {
		return "", c.missed
	}
	return "[" + c.out.String() + "]", nil
}

// collector gathers the values that a path leads to.
type collector struct {
	path   []step
	out    strings.Builder
	found  int
	missed error // of the first step that led nowhere
}

func (c *collector) walk(value string, i int) {
	if i == len(c.path) {
		if c.found > 0 {
			c.out.WriteByte(',')
		}
		c.out.WriteString(value)
		c.found++
		return
	}
	parts, err := c.path[i].parts(value, c.path[:i])
	if err != nil && c.missed == nil {
		c.missed = err
	}
	for _, part := range parts {
		c.walk(part, i+1)
	}
}
