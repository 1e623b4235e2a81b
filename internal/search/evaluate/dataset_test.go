package evaluate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/fault"
)

const (
	corpus = `{"id":"s/read","server":"s","name":"read_file","description":"Reads a file.","input_schema":{"properties":{"path":{"description":"Where."}}}}

{"id":"zip","description":"Packs files."}`
	queries  = `{"query":"read a file","relevant":["s/read"]}` + "\n" + `{"query":"pack these","relevant":["zip"]}`
	examples = `{"id":"zip","examples":["make an archive"]}`
)

// folder is a data set on disk; empty texts are not written.
func folder(t *testing.T, corpus, queries, examples string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "set")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"corpus": corpus, "queries": queries, "examples": examples} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name+".jsonl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLoad(t *testing.T) {
	t.Parallel()
	d, err := Load(In(folder(t, corpus, queries, examples)))
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != "set" || len(d.Tools) != 2 || len(d.Queries) != 2 {
		t.Fatalf("got %+v", d)
	}
	if got := d.Tools[0].Text.Dense; got != "s read file: Reads a file. Parameters: path." {
		t.Errorf("text %q", got)
	}
	if got := d.Tools[1].Text.Dense; got != "zip: Packs files." {
		t.Errorf("text %q", got)
	}
	if diff := cmp.Diff(map[string][]string{"zip": {"make an archive"}}, d.Examples); diff != "" {
		t.Error(diff)
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ corpus, queries, examples, want string }{
		"no corpus":              {"", queries, "", "corpus.jsonl: no such file"},
		"no queries":             {corpus, "", "", "queries.jsonl: no such file"},
		"an empty corpus":        {"\n", queries, "", "corpus.jsonl has no tools"},
		"no query in it":         {corpus, "\n", "", "queries.jsonl has no queries"},
		"a line that is cut":     {corpus, queries + "\n" + `{"query":"x`, "", "queries.jsonl:3: "},
		"a line of other shape":  {corpus, `["query"]`, "", "queries.jsonl:1: "},
		"a tool without id":      {`{"name":"x"}`, queries, "", "corpus.jsonl:1: a tool without id"},
		"the same id twice":      {corpus + "\n" + `{"id":"zip"}`, queries, "", `corpus.jsonl:4: a second tool with the id "zip"`},
		"a query for nothing":    {corpus, `{"query":"x","relevant":[]}`, "", "queries.jsonl:1: "},
		"an empty query":         {corpus, `{"query":"","relevant":["zip"]}`, "", "queries.jsonl:1: "},
		"an unknown tool":        {corpus, `{"query":"x","relevant":["zap"]}`, "", `queries.jsonl:1: no tool has the id "zap"`},
		"examples of nothing":    {corpus, queries, `{"id":"zap","examples":[]}`, `examples.jsonl:1: no tool has the id "zap"`},
		"a line without any end": {`{"id":"` + strings.Repeat("x", maxLine), queries, "", "corpus.jsonl:1: "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(In(folder(t, c.corpus, c.queries, c.examples)))
			if fault.CodeOf(err) != fault.InvalidInput || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte(corpus))
	f.Add([]byte(queries))
	f.Add([]byte(`{"id":1}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		d := &Dataset{Examples: map[string][]string{}}
		known := map[string]bool{"zip": true}
		for _, add := range []func([]byte, map[string]bool) error{d.addTool, d.addQuery, d.addExamples} {
			if err := add(line, known); err != nil && fault.CodeOf(err) != fault.InvalidInput {
				t.Errorf("got %v", err)
			}
		}
	})
}
