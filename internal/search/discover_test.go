package search

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
)

func TestDiscover(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, tt := range map[string]struct {
		req   Request
		want  string // the first calls
		total int
	}{
		"other words":         {Request{Intent: "display a document", Filter: Filter{Type: "tool"}}, "mcp.fs.readTextFile mcp.fs.write_file", 4},
		"a capability":        {Request{Intent: "summary of a document, send it"}, "capabilities.mail_report", 6},
		"another spelling":    {Request{Intent: "read_text_file"}, "mcp.fs.readTextFile", 6},
		"with the server":     {Request{Intent: "mcp.mail.sendMessage"}, "mcp.mail.send_message", 6},
		"a capability's name": {Request{Intent: "capabilities.count_files"}, "capabilities.count_files", 6},
		"one server":          {Request{Intent: "document", Filter: Filter{Server: "weather"}}, "mcp.weather.forecast", 1},
		"server of capability": {
			Request{Filter: Filter{Server: "Mail"}}, "capabilities.mail_report mcp.mail.send_message", 2,
		},
		"name":       {Request{Filter: Filter{Name: "read_*"}}, "mcp.fs.readTextFile", 1},
		"exact name": {Request{Filter: Filter{Name: "send-*"}}, "mcp.mail.send_message", 1},
		"all by name": {
			Request{},
			"capabilities.count_files capabilities.mail_report mcp.fs.readTextFile mcp.fs.write_file mcp.mail.send_message mcp.weather.forecast", 6,
		},
		"page":      {Request{Offset: 2, Limit: 1}, "mcp.fs.readTextFile", 6},
		"behind":    {Request{Offset: 9}, "", 6},
		"min_score": {Request{Intent: "forecast rain", Filter: Filter{MinScore: 0.6}}, "mcp.weather.forecast", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := f.ask(t, tt.req)
			if got := calls(a.Results); !strings.HasPrefix(got+" ", tt.want+" ") || a.Total != tt.total {
				t.Errorf("found %q of %d, want %q of %d", got, a.Total, tt.want, tt.total)
			}
			limit := max(tt.req.Limit, 1)
			if wantNext := tt.req.Limit > 0 && tt.req.Offset+limit < tt.total; (a.NextOffset > 0) != wantNext {
				t.Errorf("next_offset %d", a.NextOffset)
			}
		})
	}
}

func TestPagesAreWhole(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, intent := range []string{"", "document"} {
		var ids []string
		for offset := 0; ; {
			a := f.ask(t, Request{Intent: intent, Limit: 4, Offset: offset})
			for _, r := range a.Results {
				ids = append(ids, r.ID)
			}
			if offset = a.NextOffset; offset == 0 {
				break
			}
		}
		slices.Sort(ids)
		if len(slices.Compact(ids)) != 6 {
			t.Errorf("the pages for %q have %v", intent, ids)
		}
	}
}

func TestDetails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	one := func(name string, d Detail) Result {
		return f.ask(t, Request{Filter: Filter{Name: name}, Detail: d}).Results[0]
	}
	brief, schema := one("forecast", ""), one("forecast", DetailSchema)
	want := Result{
		Type: "tool", ID: "weather:forecast", Call: "mcp.weather.forecast", Description: "The weather of a city.",
		Signature:  "forecast(args: { path: string }): Promise<{ rain: boolean }>",
		ToolResult: &ToolResult{Approval: "ask"},
	}
	if diff := cmp.Diff(want, brief); diff != "" {
		t.Errorf("signature (-want +got):\n%s", diff)
	}
	if len(schema.InputSchema) == 0 || schema.OutputSource != "observed" || string(schema.ExampleArgs) != `{"path":"a"}` {
		t.Errorf("schema: %+v %+v", schema, schema.ToolResult)
	}
	c := one("mail_report", DetailFull)
	if c.Signature != `mail_report(args: { file: string; to?: unknown /* = "me" */ }): Promise<{ sent: boolean }>` || c.Structure == nil ||
		c.Source.Preview != "const a = 1;\nreturn a;" || c.Version != 2 || c.UsageCount != 9 || c.SuccessRate != 1 || c.State != "active" {
		t.Errorf("full: %+v %+v", c, c.CapabilityResult)
	}
	if got := string(c.InputSchema); got != `{"type":"object","properties":{"file":{"type":"string"},"to":{"default":"me"}},"required":["file"]}` {
		t.Errorf("parameters: %s", got)
	}
	const sent = `{"type":"object","properties":{"sent":{"type":"boolean"}},"required":["sent"]}`
	if c := one("mail_report", DetailSchema); string(c.OutputSchema) != sent || c.OutputSource != "observed" {
		t.Errorf("result: %s, %s", c.OutputSchema, c.OutputSource)
	}
	if c := one("mail_report", ""); c.OutputSchema != nil || !strings.HasSuffix(c.Signature, "Promise<{ sent: boolean }>") {
		t.Errorf("a brief result: %+v", c)
	}
	if c := one("count_files", DetailSchema); c.OutputSchema != nil || c.OutputSource != "" || !strings.HasSuffix(c.Signature, "Promise<unknown>") {
		t.Errorf("without any result seen: %+v", c)
	}
	raw, err := json.Marshal(brief)
	if err != nil || strings.Contains(string(raw), "usage_count") {
		t.Errorf("a tool is written as %s, %v", raw, err)
	}
}

func TestContext(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	// Of what fits as well, that is first which the graph knows to come next.
	plain := f.ask(t, Request{Intent: "anything at all", Filter: Filter{Type: "tool"}})
	after := f.ask(t, Request{Intent: "anything at all", Filter: Filter{Type: "tool"}, ContextTools: []string{"mcp.fs.read_text_file"}})
	rank := func(a *Answer) int {
		return slices.IndexFunc(a.Results, func(r Result) bool { return r.ID == "mail:send-message" })
	}
	if rank(after) >= rank(plain) || len(plain.Suggestions) != 0 {
		t.Errorf("without context %s, with %s", calls(plain.Results), calls(after.Results))
	}
	want := []Suggestion{{SuggestNext, "mail:send-message", "", "it came after fs:readTextFile 9 times", 0.5}}
	if diff := cmp.Diff(want, after.Suggestions); diff != "" {
		t.Errorf("suggestions (-want +got):\n%s", diff)
	}
	no := false
	if a := f.ask(t, Request{ContextTools: []string{"fs:readTextFile"}, IncludeSuggestions: &no}); len(a.Suggestions) != 0 {
		t.Errorf("suggestions that nobody wanted: %v", a.Suggestions)
	}
	// A capability stands for its tools; what does not exist is passed over and named.
	a := f.ask(t, Request{ContextTools: []string{"capabilities.count_files", "fs:raed"}})
	if len(a.Suggestions) != 1 || len(a.Notes) != 1 || !strings.Contains(a.Notes[0], `"fs:raed"`) {
		t.Errorf("suggestions %v, notes %v", a.Suggestions, a.Notes)
	}
	f.shop.catalog = stock("fs:readTextFile: Read a file as text.")
	if a := f.ask(t, Request{ContextTools: []string{"fs:readTextFile"}}); len(a.Suggestions) != 0 {
		t.Errorf("a tool that is gone is suggested: %v", a.Suggestions)
	}
}

func TestWrongRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.notReady = []ServerState{{Name: "slow", State: "starting"}}
	for wrong, req := range map[string]Request{
		"limit":         {Limit: 51},
		"offset":        {Offset: -1},
		"detail":        {Detail: "all"},
		"filter.type":   {Filter: Filter{Type: "tools"}},
		"filter.name":   {Filter: Filter{Name: "["}},
		"min_score":     {Filter: Filter{MinScore: -1}},
		"filter.server": {Filter: Filter{Server: "git"}},
		"intent":        {Intent: strings.Repeat("x", maxIntent+1)},
		"context_tools": {ContextTools: make([]string, maxContext+1)},
	} {
		_, err := f.Discover(t.Context(), req)
		e, ok := err.(*fault.Error) //nolint:errorlint // the very type is promised
		if !ok || e.Code != fault.InvalidInput || !strings.Contains(e.Message, wrong) || e.Hint == "" {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	a := f.ask(t, Request{Filter: Filter{Server: "slow"}})
	if diff := cmp.Diff(f.notReady, a.Servers); diff != "" || a.Total != 0 {
		t.Errorf("a server that starts: %d results (-want +got):\n%s", a.Total, diff)
	}
}

func TestBrief(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                           "",
		"Short.":                     "Short.",
		"First one. Second, longer.": "First one.",
		"No end in sight here":       "No end in…",
		"First, then; more of it":    "First, then",
		"Ääääääääääääääääää":         "Äääääää…",
	} {
		if got := brief(text, 17); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	propose := func(intent string, args ...string) *Proposal {
		p, err := f.Match(t.Context(), intent, args)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	whole := propose("summarise a document and send it as a letter", "file")
	if whole.Best == nil || whole.Best.Name != "mail_report" || whole.Best.Version != 2 || !whole.Best.Complete || len(whole.RunnersUp) == 0 {
		t.Fatalf("got %+v", whole)
	}
	lacking := propose("summarise a document and send it as a letter", "to")
	if lacking.Best.Complete || len(lacking.Best.Missing) != 1 || lacking.Best.Missing[0].Name != "file" ||
		lacking.Best.Confidence >= whole.Best.Confidence {
		t.Errorf("without its parameter: %+v", lacking.Best)
	}
	// A degraded one runs for nobody's intent.
	if p := propose("count files"); p.Best != nil && p.Best.Name == "count_files" {
		t.Errorf("degraded: %+v", p.Best)
	}
	if p := propose("the forecast of rain for a city"); p.Plan == nil || p.Plan.Tasks[0].Tool != tool.ID("weather:forecast") ||
		p.Best != nil && p.Best.Confidence >= DefaultThreshold {
		t.Errorf("a job of a tool: %+v", p)
	}
	f.SetEncoder(nil, "there is none")
	p := propose("summarise a document and send it as a letter", "file")
	if p.Best != nil && p.Best.Confidence >= DefaultThreshold || len(p.Notes) != 1 {
		t.Errorf("by words only: %+v", p)
	}
	if p := propose(" "); p.Best != nil || p.Plan != nil {
		t.Errorf("no intent: %+v", p)
	}
	if _, err := f.Match(t.Context(), strings.Repeat("x", maxIntent+1), nil); fault.CodeOf(err) != fault.InvalidInput {
		t.Errorf("too long: %v", err)
	}
	if s := f.Suggestions([]tool.ID{"fs:readTextFile"}); len(s) != 1 {
		t.Errorf("suggestions: %v", s)
	}
}
