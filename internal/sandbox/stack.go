package sandbox

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/sandbox/wire"
)

// frameLine matches one stack frame of a program or capability, as V8 writes frames
// of evaluated code: "at name (pml:program, <anonymous>:3:12)".
var frameLine = regexp.MustCompile(`^\s*at (?:(.+?) \()?pml:(program|capability/[^\s,:]+)(?:, <anonymous>)?:(\d+):(\d+)\)?$`)

// place is a position in what a user wrote; capability is empty for the program.
type place struct {
	function   string
	capability string
	line       int
	column     int
}

// String writes the frame as the user reads it.
func (p place) String() string {
	where := "program"
	if p.capability != "" {
		where = "capability " + p.capability
	}
	if p.function == "" {
		return fmt.Sprintf("at %s:%d:%d", where, p.line, p.column)
	}
	return fmt.Sprintf("at %s (%s:%d:%d)", p.function, where, p.line, p.column)
}

// locate adds the user's own part of the stack to e, and the place of its first
// frame: the first in the program itself if there is one.
func (s *session) locate(e *fault.Error, f wire.Failure) {
	places := s.places(f.Stack)
	e.Message = s.unmark(e.Message, places)
	if len(places) == 0 {
		if f.Kind == wire.FailSyntax {
			s.locateRegExp(e)
		}
		return
	}
	lines := make([]string, len(places))
	for i, p := range places {
		lines[i] = p.String()
	}
	e.Stack = strings.Join(lines, "\n")
	for _, p := range places {
		if p.capability == "" {
			e.Line, e.Column, e.Source = p.line, p.column, sourceLine(s.prog.Original, p.line)
			return
		}
	}
}

// places are the user's own frames of a stack.
func (s *session) places(stack string) []place {
	var out []place
	for text := range strings.SplitSeq(stack, "\n") {
		m := frameLine.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		line, _ := strconv.Atoi(m[3])
		column, _ := strconv.Atoi(m[4])
		name, isCapability := strings.CutPrefix(m[2], "capability/")
		if !isCapability {
			name = ""
		}
		name, err := url.PathUnescape(name)
		if err != nil {
			continue
		}
		u, ok := s.units[name]
		if !ok {
			continue
		}
		line, column, ok = u.source(line, column)
		if !ok {
			continue
		}
		p := place{function: functionName(m[1]), capability: name, line: line, column: column}
		if name == "" && s.prog.Position != nil {
			p.line, p.column = s.prog.Position(p.line, p.column)
		}
		out = append(out, p)
	}
	return out
}

// functionName is a frame's function without what the wrapper is called.
func functionName(name string) string {
	name = strings.TrimPrefix(name, "async ")
	if name == "program" || name == "<anonymous>" {
		return ""
	}
	return name
}

var (
	mark       = regexp.MustCompile(`__t_*\.\w+\((?:\.\.\.|intermediate value)\)`)
	identifier = regexp.MustCompile(`^[\p{L}_$][\p{L}\p{N}_$]*`)
	badRegExp  = regexp.MustCompile(`Invalid regular expression: (/.*/)\w*: `)
)

// unmark replaces a mark in an engine's message by the name that it was put around.
func (s *session) unmark(message string, places []place) string {
	if !mark.MatchString(message) {
		return message
	}
	name := "mcp"
	if len(places) > 0 && places[0].capability == "" {
		if found := identifier.FindString(after(sourceLine(s.prog.Original, places[0].line), places[0].column)); found != "" {
			name = found
		}
	}
	return mark.ReplaceAllString(message, name)
}

// locateRegExp finds the place of an error that only V8 sees and gives no place for.
func (s *session) locateRegExp(e *fault.Error) {
	m := badRegExp.FindStringSubmatch(e.Message)
	if m == nil {
		return
	}
	before, _, found := strings.Cut(s.prog.Original, m[1])
	if !found {
		return
	}
	lines := splitLines(before)
	e.Line, e.Column = len(lines), utf16Len(lines[len(lines)-1])+1
	e.Source = sourceLine(s.prog.Original, e.Line)
}

// moduleSyntax matches what makes a program a module.
var moduleSyntax = regexp.MustCompile(`^\s*(import\s*[\w{*"']|export\b)`)

// syntaxFault is esbuild's complaint about the program.
func syntaxFault(prog Program, m api.Message) error {
	e := complaint(prog.Source, m)
	if e.Line > 0 {
		if prog.Position != nil {
			e.Line, e.Column = prog.Position(e.Line, e.Column)
		}
		e.Source = sourceLine(prog.Original, e.Line)
	}
	if e.Code == fault.UnsupportedCode {
		return e.WithHint("leave import and export out: mcp, capabilities, args, progress and console are there already, and modules are not available")
	}
	return e.WithHint("fix the syntax at this place and send the program again; nothing has run")
}

// capabilitySyntaxFault is esbuild's complaint about a capability.
func capabilitySyntaxFault(name, source string, m api.Message) error {
	e := complaint(source, m)
	e.Message = fmt.Sprintf("capability %s: %s", name, e.Message)
	return e.WithHint("the stored capability does not load: do not call it, or replace it")
}

// complaint places a message in the text of a body.
func complaint(body string, m api.Message) *fault.Error {
	e := fault.New(fault.SyntaxError, "%s", m.Text)
	if m.Location == nil {
		return e
	}
	lines := splitLines(body)
	e.Line = m.Location.Line
	if e.Line > len(lines) { // the end of the wrapper: something is open, or closed once too often
		e.Line = len(lines)
		e.Column = utf16Len(lines[e.Line-1]) + 1
		if m.Text == `Unexpected "}"` {
			e.Message += " after the end of the program: there is one too many"
		}
	} else {
		line := lines[e.Line-1]
		e.Column = utf16Len(line[:max(0, min(m.Location.Column, len(line)))]) + 1
	}
	e.Source = lines[e.Line-1]
	if moduleSyntax.MatchString(e.Source) {
		e.Code, e.Message = fault.UnsupportedCode, "programs cannot import or export modules"
	}
	return e
}

var lineEnd = regexp.MustCompile("\r\n|[\n\r\u2028\u2029]")

func splitLines(text string) []string { return lineEnd.Split(text, -1) }

// sourceLine is a one-based line of text, empty when there is none.
func sourceLine(text string, line int) string {
	lines := splitLines(text)
	if line < 1 || line > len(lines) {
		return ""
	}
	return lines[line-1]
}

// utf16Len is the length of s in the units that JavaScript counts.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		if n++; r > 0xffff {
			n++
		}
	}
	return n
}

// after is what follows a one-based UTF-16 column.
func after(line string, column int) string {
	for column > 1 && line != "" {
		r, size := utf8.DecodeRuneInString(line)
		line = line[size:]
		if column--; r > 0xffff {
			column--
		}
	}
	return line
}
