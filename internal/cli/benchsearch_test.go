package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pml-run/pml/internal/cli"
	"github.com/pml-run/pml/internal/search/evaluate"
)

// closer is a writer that is left open.
type closer struct{ *bytes.Buffer }

func (closer) Close() error { return nil }

func benchSearch(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	home := t.TempDir()
	code = cli.Run(t.Context(), cli.Env{
		Args: append([]string{"--home", home, "bench-search"}, args...), Getenv: func(string) string { return "" },
		Stdin: closer{&bytes.Buffer{}}, Stdout: closer{&out}, Stderr: &errs,
	})
	return code, out.String(), errs.String()
}

// dataset writes a data set of two tools and returns its folder.
func dataset(t *testing.T, queries string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"corpus.jsonl":  `{"id":"read","description":"Reads a file."}` + "\n" + `{"id":"zip","description":"Packs files."}`,
		"queries.jsonl": queries,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestBenchSearchByWords(t *testing.T) {
	t.Parallel()
	dir := dataset(t, `{"query":"read this","relevant":["read"]}`)
	code, out, _ := benchSearch(t, "--words", dir)
	if code != 0 || !strings.Contains(out, "2 tools, 1 queries") || !strings.Contains(out, "nDCG@10") {
		t.Errorf("code %d:\n%s", code, out)
	}
	code, out, _ = benchSearch(t, "--words", "--json", "--corpus", filepath.Join(dir, "corpus.jsonl"), "--queries", filepath.Join(dir, "queries.jsonl"))
	var r evaluate.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("code %d, %v:\n%s", code, err, out)
	}
	if s, ok := r.Sets[0].Score("words"); !ok || s.NDCG10 != 100 {
		t.Errorf("got %+v", r)
	}
}

func TestBenchSearchRefuses(t *testing.T) {
	t.Parallel()
	bad := dataset(t, `{"query":"read this","relevant":["write"]}`)
	cases := map[string]struct {
		args []string
		code int
		want string
	}{
		"nothing to measure":     {nil, 2, "no data set"},
		"queries without corpus": {[]string{"--queries", "x"}, 2, "go together"},
		"words and calibrate":    {[]string{"--words", "--calibrate", bad}, 2, "needs the model"},
		"no such folder":         {[]string{"--words", filepath.Join(bad, "none")}, 1, "corpus.jsonl"},
		"an unknown tool":        {[]string{"--words", bad}, 1, "queries.jsonl:1"},
		"no model there":         {[]string{"--weights", bad, "--cache", bad, dataset(t, `{"query":"x","relevant":["zip"]}`)}, 1, "embedding model"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := benchSearch(t, c.args...)
			if code != c.code || !strings.Contains(errs, c.want) || out != "" {
				t.Errorf("code %d, want %d and %q:\n%s%s", code, c.code, c.want, out, errs)
			}
		})
	}
}
