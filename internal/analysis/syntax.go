package analysis

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/pml-run/pml/internal/fault"
)

// clean makes the line ends of a program what every later stage understands.
func clean(source string) (string, error) {
	if i := strings.IndexByte(source, 0); i >= 0 {
		return "", syntaxFault(source, i, "the program holds a NUL byte", `write \0 or \u0000 in a string instead`)
	}
	if !utf8.ValidString(source) {
		source = strings.ToValidUTF8(source, "\uFFFD")
	}
	if !strings.Contains(source, "\r") {
		return source, nil
	}
	out := []byte(source)
	for i, c := range out {
		if c == '\r' && (i+1 == len(out) || out[i+1] != '\n') {
			out[i] = '\n'
		}
	}
	return string(out), nil
}

// syntaxFault is a syntax error at an offset.
func syntaxFault(source string, offset int, message, hint string) *fault.Error {
	e := fault.New(fault.SyntaxError, "%s", message)
	e.Line, e.Column = place(source, offset)
	e.Source = lineOf(source, e.Line)
	if hint == "" {
		hint = "correct the syntax at this place and send the program again; nothing has run"
	}
	e.Hint = hint
	return e
}

// The program as the sandbox makes a function of it.
const (
	wrapperHead = `"use strict";async function program(mcp,capabilities,args,progress,console,__t,__s0){`
	wrapperTail = "\n}"
)

// checkSyntax asks a second parser about a program that the grammar does not
// understand; t is what it made of it, nil for nothing. No error means that the
// program is valid all the same.
func checkSyntax(source string, t *tree) error {
	r := api.Transform(wrapperHead+blankImports(source, t)+wrapperTail, api.TransformOptions{
		Loader: api.LoaderTS, Target: api.ESNext, LogLevel: api.LogLevelSilent,
		TsconfigRaw: `{"compilerOptions":{"experimentalDecorators":true,"verbatimModuleSyntax":true}}`,
	})
	if len(r.Errors) == 0 {
		return nil
	}
	m := r.Errors[0]
	offset := len(source)
	if m.Location != nil {
		offset = offsetOf(source, m.Location.Line, m.Location.Column)
	}
	if moduleSyntax.MatchString(lineOf(source, lineAt(source, offset))) {
		return unsupported(source, offset)
	}
	message, hint := explain(source, offset, m)
	return syntaxFault(source, offset, message, hint)
}

// offsetOf turns a place in the wrapped program, a one-based line and a zero-based
// byte column, into an offset.
func offsetOf(source string, line, column int) int {
	if line == 1 {
		column -= len(wrapperHead)
	}
	offset, rest := 0, source
	for ; line > 1; line-- {
		text, end := splitLine(rest)
		if end == 0 {
			return len(source)
		}
		offset += len(text) + end
		rest = rest[len(text)+end:]
	}
	text, _ := splitLine(rest)
	return offset + max(0, min(column, len(text)))
}

func lineAt(source string, offset int) int {
	line, _ := place(source, offset)
	return line
}

// explain makes a message and a hint of the parser's complaint.
func explain(source string, offset int, m api.Message) (message, hint string) {
	message = m.Text
	if at, bracket, ok := unbalanced(source); ok && (offset >= len(source) || strings.HasPrefix(m.Text, "Expected") || strings.HasPrefix(m.Text, "Unexpected")) {
		line, column := place(source, at)
		where := "line " + strconv.Itoa(line) + ", column " + strconv.Itoa(column)
		if bracket.opened {
			return message, "the " + bracket.text + " opened at " + where + " is not closed"
		}
		return message, "the " + bracket.text + " at " + where + " closes nothing: there is one too many, or one is missing before it"
	}
	for _, h := range hints {
		if h.about.MatchString(m.Text) {
			return message, h.hint
		}
	}
	return message, ""
}

// hints say what usually helps, by what the parser complains about.
var hints = []struct {
	about *regexp.Regexp
	hint  string
}{
	{regexp.MustCompile(`"?await"?.* (async|inside)`), "make the function around it async, and await its call"},
	{regexp.MustCompile(`Unterminated string`), "close the string on its line; a text of several lines goes into backquotes"},
	{regexp.MustCompile(`Unterminated template`), "close the template with a backquote; write \\` for a backquote inside it"},
	{regexp.MustCompile(`Unterminated regular`), "close the regular expression with / on its line; write \\/ for a slash inside it"},
	{regexp.MustCompile(`multi-line comment`), "close the comment with */"},
	{regexp.MustCompile(`has already been declared`), "give one of the two another name"},
	{regexp.MustCompile(`must be initialized`), "give the const a value, or make it a let"},
	{regexp.MustCompile(`Cannot assign to .* because it is a constant`), "declare it with let"},
	{regexp.MustCompile(`"yield"`), "yield belongs into a generator: function* or async function*"},
	{regexp.MustCompile(`"(break|continue)"`), "break and continue belong into a loop; use return to leave a callback"},
}

// moduleSyntax matches a line of what makes a program a module.
var moduleSyntax = regexp.MustCompile(`^\s*(import\s*[\w{*"']|export\b)`)

func unsupported(source string, offset int) *fault.Error {
	e := syntaxFault(source, offset, "programs cannot import or export modules",
		"leave import and export out: mcp, capabilities, args, progress and console are there already, and modules are not available")
	e.Code = fault.UnsupportedCode
	return e
}

// checkModule refuses imports of values and exports, and returns the edits that
// blank imports of types.
func (t *tree) checkModule() ([]edit, error) {
	var out []edit
	for _, n := range t.children(0) {
		switch t.kind(n) {
		case "export_statement":
			return nil, unsupported(t.src, int(t.at[n].start))
		case "import_statement":
			if !t.importsTypes(n) {
				return nil, unsupported(t.src, int(t.at[n].start))
			}
			out = append(out, edit{start: t.at[n].start, end: t.at[n].end, text: "", opens: true, reach: t.at[n].end})
		}
	}
	return out, nil
}

// importsTypes reports whether an import leaves nothing behind when types are gone.
func (t *tree) importsTypes(n node) bool {
	if t.token(n, "type") >= 0 {
		return true
	}
	found := false
	for i, kind := range t.within(n) {
		switch kind {
		case "namespace_import":
			return false
		case "import_clause":
			if t.kind(t.first(i)) == "identifier" {
				return false
			}
		case "import_specifier":
			if t.token(i, "type") < 0 {
				return false
			}
			found = true
		}
	}
	return found
}

// blankImports writes spaces over the imports of types.
func blankImports(source string, t *tree) string {
	if t == nil {
		return source
	}
	out := []byte(source)
	for _, n := range t.children(0) {
		if t.kind(n) != "import_statement" || !t.importsTypes(n) {
			continue
		}
		for i := t.at[n].start; i < t.at[n].end; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	return string(out)
}

// checkAwait looks for awaits in functions that are not async: the grammar takes
// them, the language does not.
func (t *tree) checkAwait(source string) error {
	for n, kind := range t.all() {
		if kind != "await_expression" {
			continue
		}
		for p := t.parent(n); p > 0; p = t.parent(p) {
			if !isFunction(t.kind(p)) {
				continue
			}
			if t.token(p, "async") < 0 {
				return checkSyntax(source, t)
			}
			break
		}
	}
	return nil
}
