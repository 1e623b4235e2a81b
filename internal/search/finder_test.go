package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/pml-run/pml/internal/capability"
	"github.com/pml-run/pml/internal/structure"
	"github.com/pml-run/pml/internal/tool"
)

// thesaurus is a model that knows which words mean the same: a text's vector counts
// the concepts of its words.
type thesaurus struct {
	err   error
	calls int
}

var concepts = []string{
	"read show display contents open", "write save store put", "file document text", "mail send message letter",
	"weather forecast rain", "city town place", "report summary summarise", "delete remove erase", "count number many",
}

func (*thesaurus) Model() string       { return "minilm-l6 of the tests" }
func (*thesaurus) QueryPrefix() string { return "" }

func (m *thesaurus) Encode(_ context.Context, texts []string) ([][]float32, error) {
	m.calls++
	if m.err != nil {
		return nil, m.err
	}
	var out [][]float32
	for _, text := range texts {
		v := make([]float32, len(concepts)+1)
		v[len(concepts)] = 0.1 // no text is nothing
		for word := range strings.FieldsSeq(strings.ToLower(strings.NewReplacer(",", "", ".", "", ":", "").Replace(text))) {
			for i, c := range concepts {
				if slices.Contains(strings.Fields(c), word) {
					v[i]++
				}
			}
		}
		out = append(out, unit(v...))
	}
	return out, nil
}

// shop is a source whose catalog can change.
type shop struct{ catalog *tool.Catalog }

func (s *shop) Catalog() *tool.Catalog { return s.catalog }

// stock makes a catalog of "server:tool: description" lines; each tool takes a path.
func stock(lines ...string) *tool.Catalog {
	servers := map[string][]tool.Tool{}
	for _, line := range lines {
		id, about, _ := strings.Cut(line, ": ")
		t := tool.Tool{
			ID: tool.ID(id), Description: about, SchemaHash: "1",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
		}
		servers[t.ID.Server()] = append(servers[t.ID.Server()], t)
	}
	return tool.NewCatalog(servers)
}

// fixture is a finder over four tools and two capabilities.
type fixture struct {
	*Finder
	shop  *shop
	model *thesaurus
	facts Facts

	notReady []ServerState
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{model: &thesaurus{}, shop: &shop{stock(
		"fs:readTextFile: Read a file as text.", "fs:write_file: Write a file. It is replaced.",
		"mail:send-message: Send a message to somebody.", "weather:forecast: The weather of a city.",
	)}}
	f.Finder = NewFinder(f.shop, FinderOptions{
		NotReady: func() []ServerState { return f.notReady },
		Approval: func(t tool.Tool) string {
			return map[bool]string{true: "allow", false: "ask"}[t.ID.Server() == "fs"]
		},
		Examples: func(_ context.Context, ids []tool.ID) (map[tool.ID]json.RawMessage, error) {
			return map[tool.ID]json.RawMessage{ids[0]: json.RawMessage(`{"path":"a"}`)}, nil
		},
	})
	knowledge, err := NewKnowledge([]capability.Edge{followed("fs:readTextFile", "mail:send-message", 9)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	report := known("mail_report", "summarise a document and send it as a letter", capability.Active, 9, 0, "fs:readTextFile", "mail:send-message")
	report.Parameters = []structure.Parameter{
		{Name: "file", Schema: json.RawMessage(`{"type":"string"}`), Required: true}, {Name: "to", Schema: json.RawMessage(`{"default":"me"}`)},
	}
	report.Learning.Output = tool.Observe(json.RawMessage(`{"sent":true}`))
	counting := known("count_files", "count files", capability.Degraded, 4, 3, "fs:readTextFile")
	f.facts = Facts{
		Capabilities: map[string]capability.Capability{report.ID.String(): report, counting.ID.String(): counting},
		Tools: map[tool.ID]ToolFacts{
			"weather:forecast": {Successes: 3, Observed: json.RawMessage(`{"type":"object","properties":{"rain":{"type":"boolean"}},"required":["rain"]}`)},
		},
		Knowledge: knowledge,
	}
	if err := f.SetFacts(f.facts); err != nil {
		t.Fatal(err)
	}
	f.embed(t)
	return f
}

// known is a capability with a past.
func known(name, intent string, state capability.State, successes, failures int64, tools ...tool.ID) capability.Capability {
	return capability.Capability{
		ID: uuid.NewSHA1(uuid.Nil, []byte(name)), Name: name, Intent: intent, Version: 2, State: state, ToolsUsed: tools,
		UsageCount: successes + failures, SuccessCount: successes, FailureCount: failures,
		SuccessRate: float64(successes) / float64(successes+failures),
		Source:      capability.Source{Type: capability.CodeSource, Code: "const a = 1;\nreturn a;"},
	}
}

// embed gives every document its vector, as the background work does.
func (f *fixture) embed(t testing.TB) {
	t.Helper()
	vectors := map[string][]float32{}
	for id, text := range f.Texts() {
		made, err := f.model.Encode(t.Context(), []string{text.Text})
		if err != nil {
			t.Fatal(err)
		}
		vectors[id] = made[0]
	}
	if err := f.SetVectors(vectors); err != nil {
		t.Fatal(err)
	}
	f.SetEncoder(f.model, "")
	f.model.calls = 0
}

// ask answers a request that must not be refused.
func (f *fixture) ask(t testing.TB, req Request) *Answer {
	t.Helper()
	a, err := f.Discover(t.Context(), req)
	if err != nil {
		t.Fatalf("%+v: %v", req, err)
	}
	return a
}

// calls are what results are called by, best first.
func calls(results []Result) string {
	var out []string
	for _, r := range results {
		out = append(out, r.Call)
	}
	return strings.Join(out, " ")
}

func TestFollowsTheCatalog(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.shop.catalog = stock("fs:write_file: Write a file. It is replaced.", "bin:shred: Erase a document for ever.")
	a := f.ask(t, Request{Intent: "erase a document", Filter: Filter{Type: "tool"}})
	if !strings.Contains(calls(a.Results), "mcp.bin.shred") || a.Total != 2 || a.Mode != Partial || len(a.Notes) != 1 {
		t.Errorf("found %s of %d, %s %v; the new tool has words only, the removed ones are gone", calls(a.Results), a.Total, a.Mode, a.Notes)
	}
	f.embed(t)
	if a := f.ask(t, Request{Intent: "remove text"}); a.Mode != Hybrid || calls(a.Results[:1]) != "mcp.bin.shred" {
		t.Errorf("embedded: %s %s", a.Mode, calls(a.Results))
	}
}

func TestFollowsFacts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if a := f.ask(t, Request{Filter: Filter{Type: "capability"}}); calls(a.Results) != "capabilities.count_files capabilities.mail_report" {
		t.Fatalf("listed %s", calls(a.Results))
	}
	var id string
	for key, c := range f.facts.Capabilities {
		if c.Name == "count_files" {
			id = key
		}
	}
	next := f.facts
	next.Capabilities = maps.Clone(f.facts.Capabilities)
	delete(next.Capabilities, id)
	if err := f.SetFacts(next); err != nil {
		t.Fatal(err)
	}
	a := f.ask(t, Request{Intent: "count_files", Filter: Filter{Type: "capability"}})
	if calls(a.Results) != "capabilities.mail_report" {
		t.Errorf("a capability that is gone is found: %s", calls(a.Results))
	}
}

// The model is asked once for an intent, and the search goes on without it.
func TestTheModel(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 3 {
		f.ask(t, Request{Intent: "show a document"})
	}
	if f.model.calls != 1 {
		t.Errorf("the model was asked %d times", f.model.calls)
	}
	f.model.err = errors.New("it is out")
	a := f.ask(t, Request{Intent: "read text"})
	if a.Mode != Lexical || calls(a.Results[:1]) != "mcp.fs.readTextFile" || !strings.Contains(fmt.Sprint(a.Notes), "it is out") {
		t.Errorf("a failing model: %s %s %v", a.Mode, calls(a.Results), a.Notes)
	}
	f.SetEncoder(nil, "none is configured")
	if a := f.ask(t, Request{Intent: "read text"}); a.Mode != Lexical || !strings.Contains(fmt.Sprint(a.Notes), "none is configured") {
		t.Errorf("no model: %s %v", a.Mode, a.Notes)
	}
	// A model with other dimensions than the vectors here.
	f.SetEncoder(&encoder{}, "")
	if a := f.ask(t, Request{Intent: "read text"}); a.Mode != Lexical || len(a.Notes) != 1 || len(a.Results) == 0 {
		t.Errorf("another model: %s %v", a.Mode, a.Notes)
	}
}

func TestQueryCacheForgets(t *testing.T) {
	t.Parallel()
	c := newQueryCache()
	c.put("first", Query{Text: "first"})
	for i := range cachedQueries {
		if _, ok := c.get("first"); !ok {
			t.Fatalf("forgotten after %d others although it was asked for", i)
		}
		c.put(fmt.Sprint(i), Query{})
	}
	if _, ok := c.get("0"); ok || c.order.Len() != cachedQueries || len(c.at) != cachedQueries {
		t.Errorf("%d are kept", c.order.Len())
	}
}
