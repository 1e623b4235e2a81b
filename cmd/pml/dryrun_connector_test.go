package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/upstream/upstreamtest"
)

// declaration is a tool as its server declares it: without an output schema.
func declaration(name, parameters string) map[string]any {
	properties, required := map[string]any{}, []string{}
	for p := range strings.SplitSeq(parameters, ", ") {
		name, kind, _ := strings.Cut(p, " ")
		properties[strings.TrimSuffix(name, "?")] = map[string]string{"type": kind}
		if !strings.HasSuffix(name, "?") {
			required = append(required, name)
		}
	}
	return map[string]any{"name": name, "inputSchema": map[string]any{"type": "object", "properties": properties, "required": required}}
}

// addDeclared adds a server that declares tools and writes each call of one to a ledger.
func addDeclared(t *testing.T, f folder, server, ledger string, tools ...map[string]any) {
	t.Helper()
	declared, err := json.Marshal(tools)
	if err != nil {
		t.Fatal(err)
	}
	env := upstreamtest.Environ()
	maps.Copy(env, map[string]string{upstreamtest.LedgerVar: ledger, upstreamtest.ToolsVar: string(declared)})
	f.addServer(t, server, map[string]any{"command": os.Args[0], "env": env})
}

// triage goes through the open issues, tells a channel of those that a query knows the
// customer of, and answers them.
const triage = `
const told = [];
for (const { number } of await mcp.work.list_issues({ owner: "acme", repo: "shop", state: "open", per_page: 2 })) {
  const issue = await mcp.work.get_issue({ owner: "acme", repo: "shop", issue_number: number });
  const [customer] = await mcp.sales.query({ sql: "select id, email from customers where login = '" + issue.user.login + "' limit 1" });
  if (issue.state === "open" && customer.email.includes("@")) {
    const { message } = await mcp.chat.slack_post_message({ channel_id: "C1", text: issue.title });
    await mcp.work.add_issue_comment({ owner: "acme", repo: "shop", issue_number: number, body: "told " + message.text });
    told.push(issue.title === "Mock issue " + number);
  }
}
const found = await mcp.web.query({ query: "select a shop" });
const raw = await mcp.work.create_issue.raw({ owner: "acme", repo: "shop", title: "report" });
return { told, found, title: JSON.parse(raw.content[0].text).title };`

// TestADryRunKnowsWellKnownServers: where no schema says what GitHub, Slack and a
// database answer, programs are given what these would send, and nothing reaches them.
func TestADryRunKnowsWellKnownServers(t *testing.T) {
	f := newFolder(t)
	ledger := filepath.Join(t.TempDir(), "ledger.jsonl")
	issue := "owner string, repo string, issue_number number"
	addDeclared(t, f, "work", ledger,
		declaration("list_issues", "owner string, repo string, state? string, per_page? number"), declaration("get_issue", issue),
		declaration("add_issue_comment", issue+", body string"), declaration("create_issue", "owner string, repo string, title string"))
	addDeclared(t, f, "chat", ledger, declaration("slack_post_message", "channel_id string, text string"))
	addDeclared(t, f, "sales", ledger, declaration("query", "sql? string"))
	addDeclared(t, f, "web", ledger, declaration("query", "query string"))
	l := learner{f, connect(t, f.serveHTTP(t))}
	run := func(code string, options map[string]any) (a dryAnswer) {
		t.Helper()
		raw := l.raw(t, map[string]any{"intent": "triage", "implementation": map[string]any{"type": "code", "code": code}, "options": options})
		if err := json.Unmarshal(raw, &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := run(triage, map[string]any{"dry_run": true})
	if a.Status != "success" || string(a.Result) != `{"found":null,"title":"report","told":[true,true]}` {
		t.Fatalf("got %+v %s", a, a.Result)
	}
	var calls []string
	for _, c := range a.DryRun.Calls {
		calls = append(calls, strings.TrimSpace(c.Tool+" "+c.AnsweredBy+" "+c.Connector))
	}
	each := []string{"work:get_issue generator github", "sales:query generator sql", "chat:slack_post_message generator slack", "work:add_issue_comment generator github"}
	want := slices.Concat([]string{"work:list_issues generator github"}, each, each, []string{"web:query placeholder", "work:create_issue generator github"})
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Error(diff)
	}
	if !slices.ContainsFunc(a.DryRun.Warnings, func(w string) bool { return strings.Contains(w, "depends on mocked data of") }) {
		t.Errorf("warnings %q", a.DryRun.Warnings)
	}
	if b, err := os.ReadFile(ledger); err == nil {
		t.Errorf("calls have reached the servers:\n%s", b)
	}

	// The ledger would have shown them: a real run is in it.
	if a := run(`return await mcp.web.query({ query: "x" });`, nil); a.Status != "success" {
		t.Errorf("got %+v", a)
	}
	if b, err := os.ReadFile(ledger); err != nil || !strings.Contains(string(b), `"query"`) {
		t.Errorf("the ledger has %s, %v", b, err)
	}
}
