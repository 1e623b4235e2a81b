package analysis

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// plain is code in which no tool is called.
const plain = `
function plain%d(rows: { id: number; tags: string[] }[], limit = 10): Map<string, number> {
  const seen = new Map<string, number>();
  for (const { id, tags } of rows) {
    if (id > limit && tags.length > 0) continue;
    for (const tag of tags) seen.set(tag, (seen.get(tag) ?? 0) + id %% 7);
  }
  return seen;
}
`

// corpus makes a program of about a size: the snippets, each in a function, until
// there are enough calls, and plain functions from there on.
func corpus(b *testing.B, size int) string {
	b.Helper()
	paths, err := filepath.Glob("testdata/snippets/*.txtar")
	if err != nil {
		b.Fatal(err)
	}
	var snippets []string
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			b.Fatal(err)
		}
		if src := string(file(archive, "source.ts")); !strings.Contains(src, "import ") {
			snippets = append(snippets, src)
		}
	}
	var out strings.Builder
	calls := 0
	for i := 0; out.Len() < size; i++ {
		s := snippets[i%len(snippets)]
		if calls += strings.Count(s, "mcp."); calls > maxEvents-100 {
			fmt.Fprintf(&out, plain, i)
			continue
		}
		fmt.Fprintf(&out, "async function f%d() {\n%s\n}\nawait f%d();\n", i, s, i)
	}
	return out.String()
}

// BenchmarkAnalyse measures everything from text to text: parsing, analysing,
// marking, and parsing again.
func BenchmarkAnalyse(b *testing.B) {
	for _, kb := range []int{1, 10, 100} {
		src := corpus(b, kb*1000)
		b.Run(fmt.Sprintf("%dKB", kb), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				p, err := Analyse(src, Options{})
				if err != nil || !p.Exact {
					b.Fatalf("%v %v", err, p)
				}
			}
		})
	}
}

// BenchmarkParse measures the parser and the copy of its tree alone.
func BenchmarkParse(b *testing.B) {
	src := corpus(b, 10_000)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if _, err := parse(src); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParses measures the check of a text without the copy.
func BenchmarkParses(b *testing.B) {
	src := corpus(b, 10_000)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if !parses(src) {
			b.Fatal("does not parse")
		}
	}
}
