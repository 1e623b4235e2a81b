package analysis

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/pml-run/pml/internal/fault"
)

// FuzzAnalyse wants every text to be refused with a place, or to become code with
// the same lines that parses wherever the program does.
func FuzzAnalyse(f *testing.F) {
	for _, dir := range []string{"examples", "snippets", "runs"} {
		paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				f.Fatal(err)
			}
			for _, file := range archive.Files {
				if dir == "runs" || file.Name == "source.ts" {
					f.Add(string(file.Data))
				}
			}
		}
	}
	f.Add("f(`${a")
	f.Add("const a = 1\r\nawait mcp.a.b({ x: `\u2028` }) //")
	f.Fuzz(func(t *testing.T, source string) {
		start := time.Now()
		p, err := Analyse(source, Options{})
		if took := time.Since(start); took > 4*(maxParse+maxAnalysis) {
			t.Errorf("took %v", took)
		}
		if err != nil {
			wantPlace(t, err)
			return
		}
		valid := parses(p.Source)
		for _, o := range []CodeOptions{{}, {Lift: true, Provided: names(p)}} {
			code, err := p.Code(o)
			if err != nil {
				t.Fatal(err)
			}
			wantSameLines(t, p.Source, code.Text)
			if valid && !parses(code.Text) {
				t.Errorf("the code does not parse:\n%s", code.Text)
			}
			for line := range len(newLines(code.Text).starts) {
				if _, column := code.Position(line+1, 1_000_000); column < 1 {
					t.Errorf("line %d ends at column %d", line+1, column)
				}
			}
		}
		if p.Exact != (p.plain.Nodes != nil) {
			t.Errorf("exact %t with nodes %v", p.Exact, p.plain.Nodes)
		}
	})
}

func wantPlace(t *testing.T, err error) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Line < 1 || f.Column < 1 || f.Hint == "" || f.Message == "" {
		t.Errorf("error %#v has no place or hint", err)
	}
}
