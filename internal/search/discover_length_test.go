package search

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pml-run/pml/internal/tool"
)

// lines calls f with each line of a file of the LiveMCPBench data set.
func lines(t *testing.T, name string, f func([]byte)) {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "..", "shared", "data", "retrieval", "livemcp", name))
	if err != nil {
		t.Skipf("the data set is not here: %v", err)
	}
	defer file.Close()
	in := bufio.NewScanner(file)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		f(in.Bytes())
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
}

// A page of eight has fewer than 2,000 tokens, of four characters each, for every
// query over the 527 tools of LiveMCPBench's servers.
func TestPagesAreShort(t *testing.T) {
	t.Parallel()
	servers := map[string][]tool.Tool{}
	lines(t, "corpus.jsonl", func(line []byte) {
		var row struct {
			Server      string          `json:"server"`
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Input       json.RawMessage `json:"input_schema"`
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		servers[row.Server] = append(servers[row.Server], tool.Tool{
			ID: tool.MakeID(row.Server, row.Name), Description: row.Description, InputSchema: row.Input, SchemaHash: "1",
		})
	})
	f := NewFinder(&shop{tool.NewCatalog(servers)}, FinderOptions{Approval: func(tool.Tool) string { return "allow" }})
	var sizes []int
	lines(t, "queries.jsonl", func(line []byte) {
		var row struct{ Query string }
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		a, err := f.Discover(t.Context(), Request{Intent: row.Query})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(a); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, b.Len())
	})
	slices.Sort(sizes)
	t.Logf("%d pages, the median one of %d characters, the longest of %d", len(sizes), sizes[len(sizes)/2], sizes[len(sizes)-1])
	if longest := sizes[len(sizes)-1]; longest/4 >= 2000 {
		t.Errorf("a page has %d characters", longest)
	}
}
