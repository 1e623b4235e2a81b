package execute

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pml-run/pml/internal/fault"
)

// Limits of one search in a result.
const (
	maxPattern = 1000             // bytes
	grepTime   = 20 * time.Second // for one search; 12 MB take a fifth of a second
	maxListed  = 4 << 20          // bytes of matching lines; more are only counted
	maxLine    = 300              // characters of a matching line that are shown
	longLine   = 64 << 10         // bytes from which a search inside a line may be stopped
)

// compilePattern reads a regular expression. Its error is a fault.InvalidInput.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	const hint = `write a regular expression of RE2, e.g. "(?i)error|warn"; \ before . * + ? ( ) [ ] { } | ^ $ takes them as they are`
	if len(pattern) > maxPattern {
		return nil, fault.New(fault.InvalidInput, "grep has %d bytes, more than %d", len(pattern), maxPattern).WithHint(hint)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fault.New(fault.InvalidInput, "grep: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: ")).WithHint(hint)
	}
	return re, nil
}

// grep lists the lines of a value that match: of a string its own, of anything else
// those of its pretty form. A line is listed as "line:offset:text"; offset is that of
// the first match in the text that was searched, in characters. It stops with a
// fault.Timeout after grepTime.
func grep(ctx context.Context, value string, re *regexp.Regexp) (*view, error) {
	ctx, cancel := context.WithTimeout(ctx, grepTime)
	defer cancel()
	text, kind := searched(value)
	var out strings.Builder
	found, listed, number, offset := 0, 0, 0, 0
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, "\r\n")
		number++
		at, ok := matchLine(ctx, re, bare)
		if ctx.Err() != nil {
			return nil, stopped(ctx, number)
		}
		if ok {
			found++
		}
		if ok && out.Len() < maxListed {
			listed++
			out.WriteString(strconv.Itoa(number) + ":" + strconv.Itoa(offset+utf8.RuneCountInString(bare[:at])) + ":")
			out.WriteString(around(bare, at) + "\n")
		}
		offset += utf8.RuneCountInString(line)
	}
	v := newView(out.String(), kind, false)
	v.matches, v.listed = found, listed
	return v, nil
}

// searched is the text in whose lines a search looks, and the kind of the value.
func searched(value string) (text, kind string) {
	if kind = kindOf(value); kind == "string" {
		return unquote(value), kind
	}
	return indented(value), kind
}

// stopped is the error of a search that its context has ended.
func stopped(ctx context.Context, line int) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.New(fault.Cancelled, "the search was cancelled")
	}
	return fault.New(fault.Timeout, "the search took more than %s and was stopped at line %d", grepTime, line).
		WithHint("choose a part of the result with path, or use a simpler expression")
}

// matchLine returns where in a line the first match begins.
func matchLine(ctx context.Context, re *regexp.Regexp, line string) (at int, ok bool) {
	if len(line) >= longLine {
		if loc := re.FindReaderIndex(&stoppableReader{ctx: ctx, text: line}); loc != nil {
			return loc[0], true
		}
		return 0, false
	}
	if !re.MatchString(line) {
		return 0, false
	}
	return re.FindStringIndex(line)[0], true
}

// stoppableReader reads a line until its context ends: a search in it has no other
// place where it could be stopped.
type stoppableReader struct {
	ctx  context.Context
	text string
	at   int
	n    int
}

// ReadRune implements io.RuneReader.
func (r *stoppableReader) ReadRune() (rune, int, error) {
	const every = 1 << 12
	if r.n++; r.at >= len(r.text) || r.n%every == 0 && r.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRuneInString(r.text[r.at:])
	r.at += size
	return c, size, nil
}

// around cuts a long line down to what is near the match.
func around(line string, at int) string {
	const before = maxLine / 3
	if len(line) <= maxLine {
		return line
	}
	from := at
	for n := 0; n < before && from > 0; n++ {
		_, size := utf8.DecodeLastRuneInString(line[:from])
		from -= size
	}
	shown := Preview(line[from:], maxLine)
	if from > 0 {
		shown = "…" + shown
	}
	return shown
}
