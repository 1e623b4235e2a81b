package search

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/structure"
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

// short fails the test for a page that has 2,000 tokens of four characters.
func short(t *testing.T, a *Answer) (size int) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(a); err != nil {
		t.Fatal(err)
	}
	if b.Len()/4 >= 2000 {
		t.Errorf("a page has %d characters", b.Len())
	}
	return b.Len()
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
		sizes = append(sizes, short(t, a))
	})
	slices.Sort(sizes)
	t.Logf("%d pages, the median one of %d characters, the longest of %d", len(sizes), sizes[len(sizes)/2], sizes[len(sizes)-1])
}

// A page of eight capabilities that take and give as much as can be learnt has fewer
// than 2,000 tokens too, and says of each what it gives.
func TestPagesOfCapabilitiesAreShort(t *testing.T) {
	t.Parallel()
	wide := map[string]any{}
	for i := range tool.MaxProperties {
		wide[fmt.Sprintf("property_%03d", i)] = []any{map[string]any{"inner": "text"}}
	}
	result, err := json.Marshal(wide)
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	f.facts.Capabilities = map[string]capability.Capability{}
	for i := range 8 {
		c := known(fmt.Sprintf("make_the_monthly_report_%d", i), strings.Repeat("make a report of all of it, ", 20), capability.Active, 9, 0, "fs:readTextFile", "mail:send-message")
		c.Source.Code = strings.Repeat("await mcp.fs.readTextFile(args);", 100)
		c.Learning.Output = tool.Observe(result)
		for p := range 30 {
			c.Parameters = append(c.Parameters, structure.Parameter{Name: fmt.Sprintf("parameter_%02d", p), Schema: json.RawMessage(`{"type":"string"}`), Required: p < 4})
		}
		f.facts.Capabilities[c.ID.String()] = c
	}
	if err := f.SetFacts(f.facts); err != nil {
		t.Fatal(err)
	}
	a := f.ask(t, Request{Filter: Filter{Type: "capability"}})
	short(t, a)
	for _, r := range a.Results {
		if !strings.Contains(r.Signature, "Promise<{ property_000: object[]; ") {
			t.Errorf("signature %s", r.Signature)
		}
	}
}
