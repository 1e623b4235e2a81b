package connector

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pml-run/pml/internal/tool"
)

// declare makes a tool of "server:name(a string, b number!)", where ! is required.
func declare(t testing.TB, text, description string) tool.Tool {
	t.Helper()
	id, list, ok := strings.Cut(strings.TrimSuffix(text, ")"), "(")
	if !ok {
		t.Fatalf("%q is no declaration", text)
	}
	properties, required := map[string]any{}, []string{}
	for part := range strings.SplitSeq(list, ", ") {
		name, kind, ok := strings.Cut(part, " ")
		if !ok {
			continue
		}
		kind, must := strings.CutSuffix(kind, "!")
		if must {
			required = append(required, name)
		}
		properties[name] = map[string]any{"type": kind}
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required})
	if err != nil {
		t.Fatal(err)
	}
	return tool.Tool{ID: tool.ID(id), Description: description, InputSchema: schema}
}

// The tools of servers, as far as they matter here.
var (
	githubNow = []string{
		"gh:issue_read(method string!, owner string!, repo string!, issue_number number!, page number)",
		"gh:issue_write(method string!, owner string!, repo string!, issue_number number, title string, body string, state string, labels array)",
		"gh:list_issues(owner string!, repo string!, state string, labels array, after string, perPage number)",
		"gh:pull_request_read(method string!, owner string!, repo string!, pullNumber number!)",
		"gh:list_pull_requests(owner string!, repo string!, state string, base string, page number, perPage number)",
		"gh:create_pull_request(owner string!, repo string!, title string!, head string!, base string!)",
		"gh:search_repositories(query string!, page number, perPage number)",
		"gh:get_file_contents(owner string!, repo string!, path string, ref string)",
		"gh:add_issue_comment(owner string!, repo string!, issue_number number!, body string)",
		"gh:list_branches(owner string!, repo string!, page number)",
		"gh:get_commit(owner string!, repo string!, sha string!)",
		"gh:search_users(query string!, page number)",
		"gh:get_me()",
	}
	githubThen = []string{
		"code:get_issue(owner string!, repo string!, issue_number number!)",
		"code:list_issues(owner string!, repo string!, state string, labels array, page number, per_page number)",
		"code:create_issue(owner string!, repo string!, title string!, body string, labels array)",
		"code:update_issue(owner string!, repo string!, issue_number number!, title string, state string)",
		"code:add_issue_comment(owner string!, repo string!, issue_number number!, body string!)",
		"code:get_pull_request(owner string!, repo string!, pull_number number!)",
		"code:merge_pull_request(owner string!, repo string!, pull_number number!, merge_method string)",
		"code:search_issues(q string!, page number, per_page number)",
		"code:list_commits(owner string!, repo string!, sha string, page number, perPage number)",
		"code:get_file_contents(owner string!, repo string!, path string!, branch string)",
		"code:create_or_update_file(owner string!, repo string!, path string!, content string!, message string!, branch string!)",
		"code:create_branch(owner string!, repo string!, branch string!, from_branch string)",
		"code:search_code(q string!, page number, per_page number)",
		"code:get_me()",
	}
	slackTools = []string{
		"chat:slack_list_channels(limit number, cursor string)", "chat:slack_post_message(channel_id string!, text string!)",
		"chat:slack_reply_to_thread(channel_id string!, thread_ts string!, text string!)", "chat:slack_get_channel_history(channel_id string!, limit number)",
		"chat:slack_get_thread_replies(channel_id string!, thread_ts string!)", "chat:slack_get_users(cursor string, limit number)",
		"chat:slack_get_user_profile(user_id string!)", "chat:slack_add_reaction(channel_id string!, timestamp string!, reaction string!)",
	}
	postgresTools = []string{"work-db:query(sql string)"}
	mysqlTools    = []string{"mysql:mysql_query(sql string!)", "mysql:list_tables()", "mysql:describe_table(table string!)"}
	sqliteTools   = []string{"shop:read_query(query string!)", "shop:write_query(query string!)", "shop:create_table(query string!)", "shop:list_tables()", "shop:describe_table(table_name string!)"}
)

// declareAll makes the tools of a server, each said to be about something.
func declareAll(t testing.TB, description string, texts []string) []tool.Tool {
	t.Helper()
	var out []tool.Tool
	for _, text := range texts {
		out = append(out, declare(t, text, description))
	}
	return out
}

// ask answers a call of one of the tools; the value is as programs see it.
func ask(t testing.TB, tools []tool.Tool, name, args string) (value any, connector string) {
	t.Helper()
	at := slices.IndexFunc(tools, func(one tool.Tool) bool { return one.ID.Name() == name })
	if at < 0 {
		t.Fatalf("no tool %s", name)
	}
	a, ok := Generate(Call{Tool: tools[at], Server: tools, Args: json.RawMessage(args), Seed: "seed", Place: "n1"})
	if !ok {
		return nil, ""
	}
	v, err := tool.Unwrap(tools[at].ID, a.Result)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(v.JSON, &value); err != nil {
		t.Fatalf("%s: %v", v.JSON, err)
	}
	return value, a.Connector
}

// at follows keys and indexes; what is not there is nil.
func at(v any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			o, _ := v.(map[string]any)
			v = o[s]
		case int:
			list, _ := v.([]any)
			if s >= len(list) {
				return nil
			}
			v = list[s]
		}
	}
	return v
}

// want compares some of a value: the text is of "path.of.keys=value", with indexes.
func want(t testing.TB, v any, checks ...string) {
	t.Helper()
	for _, check := range checks {
		path, expected, _ := strings.Cut(check, "=")
		var steps []any
		for step := range strings.SplitSeq(path, ".") {
			var i int
			if n, _ := fmt.Sscanf(step, "%d", &i); n == 1 {
				steps = append(steps, i)
			} else {
				steps = append(steps, step)
			}
		}
		if got := fmt.Sprint(at(v, steps...)); got != expected {
			t.Errorf("%s is %s, want %s, in %v", path, got, expected, v)
		}
	}
}

// TestWhoIsKnown: a tool is answered for what it is, not for what it is called.
func TestWhoIsKnown(t *testing.T) {
	t.Parallel()
	const statement = `{"sql":"select 1","query":"select 1","q":"x","owner":"a","repo":"b","path":"p"}`
	tests := []struct {
		name        string
		tools       []string // the first is asked
		description string
		args        string
		want        string
	}{
		{name: "a server called gh", tools: []string{"gh:get_me()"}, want: "github"},
		{name: "a tool that says so", tools: []string{"x:get_me()"}, description: "Details of the GitHub user", want: "github"},
		{name: "by the tools beside it", tools: append([]string{"code:get_me()"}, githubThen...), want: "github"},
		{name: "alone", tools: []string{"x:get_me()"}},
		{name: "two beside it are not enough", tools: append([]string{"code:get_me()"}, githubThen[0], githubThen[2])},
		{name: "another host", tools: append([]string{"gitea:get_me()"}, githubThen...)},
		{name: "another host by its words", tools: githubThen, description: "of a Gitea server"},
		{name: "issues of something else", tools: []string{"gh:get_issue(issue_key string!)"}},
		{name: "another type", tools: []string{"gh:get_issue(owner string!, repo string!, issue_number string!)"}},
		{name: "camel case", tools: []string{"gh:getFileContents(owner string!, repo string!, path string!)"}, want: "github"},

		{name: "slack by its names", tools: []string{"chat:slack_get_users(limit number)"}, want: "slack"},
		{name: "slack with other parameters", tools: []string{"chat:slack_post_message(room string!)"}},

		{name: "a database under any name", tools: []string{"work:query(sql string)"}, want: "sql"},
		{name: "a statement in query", tools: []string{"work:query(query string!)"}, description: "Run a SQL query", want: "sql"},
		{name: "a search server", tools: []string{"web:query(query string!)"}, description: "Search the web"},
		{name: "a search server called db", tools: []string{"mysql-docs:query(query string!)"}, description: "Search the manual"},
		{name: "no statement", tools: []string{"work:execute_sql(query string!)"}, args: `{"query":"what was sold most?"}`},
		{name: "no statement at all", tools: []string{"work:execute_sql(query string!)"}, args: `{}`},
		{name: "tables of a database", tools: []string{"work:list_tables(schema string)", "work:execute_sql(sql string!)"}, want: "sql"},
		{name: "tables of something else", tools: []string{"airtable:list_tables(baseId string!)", "airtable:execute_sql(sql string!)"}},
		{name: "tables alone", tools: []string{"x:list_tables()"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tools := declareAll(t, test.description, test.tools)
			args := test.args
			if args == "" {
				args = statement
			}
			a, ok := Generate(Call{Tool: tools[0], Server: tools, Args: json.RawMessage(args)})
			if ok != (test.want != "") || a.Connector != test.want {
				t.Errorf("%q answered %s", a.Connector, a.Result)
			}
		})
	}
}

// TestAnOptionalParameter: frameworks write an optional parameter in several ways.
func TestAnOptionalParameter(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{`{"type":["string","null"]}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`} {
		one := tool.Tool{ID: "db:query", InputSchema: json.RawMessage(`{"type":"object","properties":{"sql":` + schema + `}}`)}
		if _, ok := Generate(Call{Tool: one, Args: json.RawMessage(`{"sql":"select 1"}`)}); !ok {
			t.Errorf("%s is no text", schema)
		}
	}
}

// TestTheSameCallTwice: a seed decides everything, another makes another answer.
func TestTheSameCallTwice(t *testing.T) {
	t.Parallel()
	one := declare(t, githubThen[0], "GitHub")
	c := Call{Tool: one, Args: json.RawMessage(`{"owner":"a","repo":"b","issue_number":7}`), Seed: "1"}
	first, _ := Generate(c)
	again, _ := Generate(c)
	if diff := cmp.Diff(string(first.Result), string(again.Result)); diff != "" {
		t.Error(diff)
	}
	c.Seed = "2"
	if other, _ := Generate(c); string(other.Result) == string(first.Result) {
		t.Error("another seed made the same")
	}
}

// FuzzGenerate: whatever the arguments are, there is an end, and what is made is a
// bounded result that can be unwrapped.
func FuzzGenerate(f *testing.F) {
	var all []tool.Tool
	for _, list := range [][]string{githubNow, githubThen, slackTools, postgresTools, mysqlTools, sqliteTools} {
		all = append(all, declareAll(f, "of GitHub, in SQL", list)...)
	}
	for _, args := range []string{
		``, `null`, `[]`, `{"owner":null,"repo":5,"issue_number":"x"}`, `{"perPage":1e300,"page":-1}`, `{"page":99999999,"perPage":99999999}`,
		`{"limit":1e18,"cursor":"//"}`, `{"limit":-1,"thread_ts":"99999999999999999999.1"}`, `{"sql":"select * from t limit 99999999999999999999"}`,
		`{"query":"select ((((("}`, `{"query":"with x as (select 1) select *, a.b as \"c\" from x where id = 'it''s' or 1=1"}`, `{"sql":"select 'a"}`,
		`{"sql":"insert into t values (1),(2) returning *, *, *"}`, `{"query":"repo:/ repo:a/ is:closed"}`, `{"method":"get_diff"}`, `{"path":"../%2e/\u0000/"}`,
		`{"sql":"select as as as, from, ,, where = = limit"}`,
	} {
		f.Add(args, uint8(0))
	}
	f.Fuzz(func(t *testing.T, args string, which uint8) {
		for i, one := range all {
			if which != 0 && int(which)%len(all) != i {
				continue
			}
			a, ok := Generate(Call{Tool: one, Server: all, Args: json.RawMessage(args), Seed: args, Place: "n1"})
			if !ok {
				continue
			}
			if len(a.Result) > 2<<20 {
				t.Errorf("%s made %d bytes", one.ID, len(a.Result))
			}
			if v, err := tool.Unwrap(one.ID, a.Result); err != nil || !json.Valid(v.JSON) {
				t.Errorf("%s made %s: %v", one.ID, a.Result, err)
			}
		}
	})
}
