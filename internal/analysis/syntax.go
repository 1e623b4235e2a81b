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
	l := newLines(source)
	e.Line, e.Column = l.place(offset)
	e.Source = l.text(e.Line)
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
	m, l := r.Errors[0], newLines(source)
	offset := len(source)
	if at := m.Location; at != nil && at.Line == 1 {
		offset = l.offset(1, at.Column-len(wrapperHead))
	} else if at != nil {
		offset = l.offset(at.Line, at.Column)
	}
	line, _ := l.place(offset)
	if moduleSyntax.MatchString(l.text(line)) {
		return unsupported(source, offset)
	}
	message, hint, offset := explain(source, offset, m.Text)
	return syntaxFault(source, offset, message, hint)
}

// explain makes a message, a hint and a better place of the parser's complaint.
func explain(source string, offset int, complaint string) (message, hint string, at int) {
	message = complaint
	if offset >= len(source) { // the wrapper's own bracket is what the parser met
		message = atEnd.ReplaceAllString(message, "${1}end of the program")
	}
	for _, h := range hints {
		if h.about.MatchString(complaint) && (h.in == "" || strings.Count(source, h.in)%2 == 1) {
			return message, h.hint, offset
		}
	}
	i, b, ok := unbalanced(source)
	if !ok {
		return message, "", offset
	}
	line, column := newLines(source).place(i)
	where := "line " + strconv.Itoa(line) + ", column " + strconv.Itoa(column)
	if b.opened {
		return message, "the " + b.text + " opened at " + where + " is not closed", offset
	}
	hint = "the " + b.text + " at " + where + " closes nothing: there is one too many, or one is missing before it"
	if offset >= len(source) {
		return `Unexpected "` + b.text + `"`, hint, i
	}
	return message, hint, offset
}

var atEnd = regexp.MustCompile(`(Unexpected |found )(?:"}"|end of file)`)

// hints say what usually helps, by what the parser complains about and by what there
// is an odd number of in the program.
var hints = []struct {
	about *regexp.Regexp
	in    string
	hint  string
}{
	{regexp.MustCompile(`"await"|top-level await`), "", "make the function around it async, and await its call"},
	{regexp.MustCompile(`Unterminated (string|template)`), "`", "close the template with a backquote; write \\` for a backquote inside it"},
	{regexp.MustCompile(`Unterminated string`), "", "close the string on its line; a text of several lines goes into backquotes"},
	{regexp.MustCompile(`Unterminated regular`), "", "close the regular expression with / on its line; write \\/ for a slash inside it"},
	{regexp.MustCompile(`multi-line comment`), "", "close the comment with */"},
	{regexp.MustCompile(`already been declared`), "", "give one of the two another name"},
	{regexp.MustCompile(`is a constant`), "", "declare it with let"},
	{regexp.MustCompile(`"yield"`), "", "yield belongs into a generator: function* or async function*"},
	{regexp.MustCompile(`"(break|continue)"`), "", "break and continue belong into a loop; use return to leave a callback"},
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
		if kind != "await_expression" && (kind != "for_in_statement" || t.token(n, "await") < 0) {
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
