package analysis

import (
	"strings"
	"testing"
	"unicode/utf16"
)

// TestPositions looks for each word of the source in the marked text and wants the
// table to lead back from there.
func TestPositions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		source string
		lift   bool
	}{
		"plain":    {"const first = await mcp.fs.read({ path: 'a' }); if (first.ok && second) await mcp.fs.write({ third }); return fourth;", false},
		"lines":    {"const first = 1;\nfor (const second of third) {\n  await mcp.a.b({ fourth }); fifth();\n}\nreturn sixth", false},
		"CRLF":     {"const first = 1;\r\nfor (const second of third) {\r\n  await mcp.a.b({ fourth }); fifth();\r\n}\r\nreturn sixth", false},
		"U+2028":   {"const first = 1;\u2028if (await mcp.a.b({})) second();\u2029await mcp.a.c({}); third()", false},
		"astral":   {"const s = '😀😀'; await mcp.a.b({ text: '😀' }); const first = '𝒳'; if (first) await mcp.a.c({}); second('é');", false},
		"lifted":   {"await mcp.a.b({ text: 'something long', n: 5, first }); second(await mcp.a.c({ text: `😀` }), third);", true},
		"template": {"await mcp.a.b({ text: `one\ntwo\r\nthree`, first }); second(third);\nfourth()", true},
		"object":   {"await mcp.a.b({ rows: [\n  1,\n  2,\n], first });\nsecond(await mcp.a.c({ first }))", true},
		"import":   {"import type { A } from './a'; first(await mcp.a.b({}));\nimport {\n  type B } from './b'; second()", false},
	}
	words := []string{"first", "second", "third", "fourth", "fifth", "sixth"}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Analyse(tt.source, Options{})
			if err != nil {
				t.Fatal(err)
			}
			code, err := p.Code(CodeOptions{Lift: tt.lift})
			if err != nil || code.Nodes == nil {
				t.Fatalf("code %q, %v", code.Text, err)
			}
			wantSameLines(t, tt.source, code.Text)
			found := 0
			for _, w := range words {
				found += wantWord(t, tt.source, code, w)
			}
			if found == 0 {
				t.Error("no word found")
			}
		})
	}
}

// wantWord checks each occurrence of a word whose number is the same in both texts.
func wantWord(t *testing.T, source string, code Code, word string) int {
	t.Helper()
	from, to := newLines(code.Text), newLines(source)
	var generated, original []int
	for at := 0; ; at++ {
		i := strings.Index(code.Text[at:], word)
		if i < 0 {
			break
		}
		at += i
		if !strings.HasPrefix(code.Text[at+len(word):], `"`) && !strings.HasPrefix(code.Text[at+len(word):], ".ok\"") {
			generated = append(generated, at)
		}
	}
	for at := 0; ; at++ {
		i := strings.Index(source[at:], word)
		if i < 0 {
			break
		}
		at += i
		original = append(original, at)
	}
	if len(generated) != len(original) {
		return 0
	}
	for i := range generated {
		line, column := code.Position(from.place(generated[i]))
		wantLine, wantColumn := to.place(original[i])
		if line != wantLine || column != wantColumn {
			t.Errorf("%s: %d:%d, want %d:%d in %q", word, line, column, wantLine, wantColumn, code.Text)
		}
	}
	return len(generated)
}

func wantSameLines(t *testing.T, source, text string) {
	t.Helper()
	if got, want := len(newLines(text).starts), len(newLines(source).starts); got != want {
		t.Errorf("%d lines, want %d:\n%q", got, want, text)
	}
}

func TestPositionInsideInsertion(t *testing.T) {
	t.Parallel()
	p, err := Analyse("if (a) await mcp.fs.read({});", Options{})
	if err != nil {
		t.Fatal(err)
	}
	code, err := p.Code(CodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(code.Text, "__t.m")
	for column := at + 1; column < at+len(`__t.m(__s0,"n1",`); column++ {
		if line, got := code.Position(1, column); line != 1 || got != 14 {
			t.Errorf("column %d maps to %d:%d, want 1:14", column, line, got)
		}
	}
	for _, outside := range [][2]int{{0, 1}, {9, 3}} {
		if line, column := code.Position(outside[0], outside[1]); line != outside[0] || column != outside[1] {
			t.Errorf("%v maps to %d:%d", outside, line, column)
		}
	}
	if line, column := code.Position(1, 10_000); line != 1 || column != len("if (a) await mcp.fs.read({});")+1 {
		t.Errorf("behind the end maps to %d:%d", line, column)
	}
}

func TestLineTable(t *testing.T) {
	t.Parallel()
	src := "a😀b\r\nc\u2028d\n\ne"
	l := newLines(src)
	for offset := range src {
		line, column := l.place(offset)
		before := src[l.starts[line-1]:offset]
		if want := len(utf16.Encode([]rune(before))) + 1; column != want {
			t.Errorf("offset %d: column %d, want %d", offset, column, want)
		}
	}
	if len(l.starts) != 5 || l.text(2) != "c" || l.text(4) != "" || l.text(5) != "e" {
		t.Errorf("starts %v", l.starts)
	}
	if got := l.offset(9, 0); got != len(src) {
		t.Errorf("offset behind the end %d", got)
	}
}
