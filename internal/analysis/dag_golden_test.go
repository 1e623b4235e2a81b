package analysis

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/pml-run/pml/internal/structure"
)

func dagPaths(tb testing.TB) []string {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "dags", "*.txtar"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no DAGs: %v", err)
	}
	return paths
}

func parsedDAG(tb testing.TB, text string) structure.DAG {
	tb.Helper()
	d, err := structure.ParseDAG(json.RawMessage(text))
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return d
}

func fromDAG(tb testing.TB, text string, checkpoints bool) *Program {
	tb.Helper()
	p, err := FromDAG(parsedDAG(tb, text), Options{}, checkpoints)
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return p
}

// TestDAGGolden compares the program that each DAG becomes, and what is known of it.
func TestDAGGolden(t *testing.T) {
	t.Parallel()
	for _, path := range dagPaths(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			p := fromDAG(t, string(file(archive, "dag.json")), false)
			stopping := fromDAG(t, string(file(archive, "dag.json")), true)
			if p.plain.Nodes == nil || stopping.plain.Nodes == nil || stopping.Source != p.Source {
				t.Fatalf("a program without marks, or of another text:\n%s", p.Source)
			}
			got := map[string]string{
				"source.ts": p.Source, "structure": notation(p), "parameters": parameters(p), "sources": sources(p), "remarks": remarks(p),
				"hashes": fmt.Sprintf("exact %s\nshape %s\n", p.HashExact, p.HashShape), "code.ts": p.plain.Text, "checkpoints.ts": stopping.plain.Text,
			}
			for _, name := range []string{"source.ts", "structure", "remarks", "sources", "parameters", "hashes", "code.ts", "checkpoints.ts"} {
				if *update {
					setFile(archive, name, got[name])
				} else if diff := cmp.Diff(string(file(archive, name)), got[name]); diff != "" {
					t.Errorf("%s (-want +got)\n%s", name, diff)
				}
			}
			if *update {
				writeArchive(t, path, archive)
			}
		})
	}
}
