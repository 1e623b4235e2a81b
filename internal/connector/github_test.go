package connector

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pml-run/pml/internal/tool"
)

func TestGitHub(t *testing.T) {
	t.Parallel()
	now, then := declareAll(t, "", githubNow), declareAll(t, "", githubThen)
	const in = `"owner":"acme","repo":"shop"`
	for _, test := range []struct {
		tool, args string
		now        bool
		want       []string
	}{
		{"get_issue", `{` + in + `,"issue_number":12}`, false, []string{"number=12", "title=Mock issue 12", "state=open", "html_url=https://github.com/acme/shop/issues/12", "url=https://api.github.com/repos/acme/shop/issues/12", "labels.0.name=bug", "closed_at=<nil>"}},
		{"get_issue", `{` + in + `,"issue_number":"12"}`, false, []string{"number=12"}},
		{"create_issue", `{` + in + `,"title":"It breaks","body":"Here.","labels":["bug","urgent"]}`, false, []string{"title=It breaks", "body=Here.", "labels.1.name=urgent", "state=open"}},
		{"update_issue", `{` + in + `,"issue_number":12,"state":"closed"}`, false, []string{"number=12", "state=closed", "state_reason=completed"}},
		{"add_issue_comment", `{` + in + `,"issue_number":12,"body":"Same here."}`, false, []string{"body=Same here.", "issue_url=https://api.github.com/repos/acme/shop/issues/12"}},
		{"list_issues", `{` + in + `,"per_page":2,"state":"closed","labels":["x"]}`, false, []string{"0.state=closed", "1.state=closed", "1.labels.0.name=x", "2=<nil>"}},
		{"list_issues", `{` + in + `,"per_page":2,"page":2}`, false, []string{"0.state=open", "1=<nil>"}},
		{"list_issues", `{` + in + `,"page":3,"per_page":2}`, false, []string{"0=<nil>"}},
		{"search_issues", `{"q":"repo:acme/shop is:closed crash"}`, false, []string{"total_count=3", "items.0.state=closed", "items.2.repository_url=https://api.github.com/repos/acme/shop"}},
		{"get_pull_request", `{` + in + `,"pull_number":4}`, false, []string{"number=4", "merged=false", "html_url=https://github.com/acme/shop/pull/4", "base.ref=main", "head.repo.full_name=acme/shop"}},
		{"merge_pull_request", `{` + in + `,"pull_number":4}`, false, []string{"merged=true"}},
		{"create_branch", `{` + in + `,"branch":"fix/it"}`, false, []string{"ref=refs/heads/fix/it", "object.type=commit", "url=https://api.github.com/repos/acme/shop/git/refs/heads/fix/it"}},
		{"get_file_contents", `{` + in + `,"path":"conf/package.json","branch":"dev"}`, false, []string{"name=package.json", "path=conf/package.json", `content={"name":"shop","version":"1.0.0"}`, "html_url=https://github.com/acme/shop/blob/dev/conf/package.json"}},
		{"get_file_contents", `{` + in + `,"path":"src/"}`, false, []string{"0.path=src/README.md", "2.type=dir"}},
		{"create_or_update_file", `{` + in + `,"path":"a.md","content":"12345","message":"Write","branch":"dev"}`, false, []string{"content.path=a.md", "content.size=5", "commit.message=Write"}},
		{"search_code", `{"q":"repo:acme/shop main"}`, false, []string{"items.0.repository.full_name=acme/shop", "items.0.path=src/mock1.go"}},
		{"get_me", `{}`, false, []string{"login=octocat", "email=octocat@example.com"}},

		{"issue_read", `{"method":"get",` + in + `,"issue_number":12}`, true, []string{"number=12", "title=Mock issue 12", "labels.0=bug", "assignees=[]", "url=<nil>", "html_url=https://github.com/acme/shop/issues/12"}},
		{"issue_read", `{"method":"get_labels",` + in + `,"issue_number":12}`, true, []string{"labels.0.name=bug", "totalCount=1"}},
		{"issue_write", `{"method":"update",` + in + `,"issue_number":12,"state":"closed"}`, true, []string{"url=https://github.com/acme/shop/issues/12"}},
		{"list_issues", `{` + in + `,"perPage":2,"state":"OPEN"}`, true, []string{"issues.0.state=OPEN", "issues.2=<nil>", "pageInfo.hasNextPage=true", "totalCount=3"}},
		{"pull_request_read", `{"method":"get",` + in + `,"pullNumber":4}`, true, []string{"number=4", "head.repo.full_name=acme/shop", "user.profile_url=https://github.com/" + author(t, now)}},
		{"pull_request_read", `{"method":"get_files",` + in + `,"pullNumber":4}`, true, []string{"0.filename=README.md", "0.changes=2", "1=<nil>"}},
		{"pull_request_read", `{"method":"get_reviews",` + in + `,"pullNumber":4}`, true, []string{"0.state=APPROVED"}},
		{"pull_request_read", `{"method":"get_comments",` + in + `,"pullNumber":4}`, true, []string{"0.body=Mock comment on pull request 4"}},
		{"pull_request_read", `{"method":"get_status",` + in + `,"pullNumber":4}`, true, []string{"state=success", "total_count=1", "statuses.0.state=success"}},
		{"list_pull_requests", `{` + in + `,"perPage":1,"base":"dev"}`, true, []string{"0.state=open", "0.base.ref=dev", "1=<nil>"}},
		{"list_branches", `{` + in + `}`, true, []string{"0.name=main", "0.protected=true", "0.commit=<nil>", "3=<nil>"}},
		{"get_commit", `{` + in + `,"sha":"0123abc"}`, true, []string{"sha=0123abc", "html_url=https://github.com/acme/shop/commit/0123abc", "stats.total=2", "files.0.filename=README.md"}},
		{"search_users", `{"query":"x"}`, true, []string{"items.0.login=mock-user-1", "items.0.profile_url=https://github.com/mock-user-1"}},
		{"search_repositories", `{"query":"shop","perPage":1}`, true, []string{"items.0.default_branch=main", "items.1=<nil>"}},
		{"get_file_contents", `{` + in + `,"path":"README.md","ref":"dev"}`, true, []string{"1.type=resource", "1.uri=repo://acme/shop/contents/README.md", "1.text=# shop\n\nMock content of README.md\n"}},
		{"get_me", `{}`, true, []string{"login=octocat", "details.email=octocat@example.com"}},
	} {
		t.Run(test.tool+" "+test.args, func(t *testing.T) {
			t.Parallel()
			tools := then
			if test.now {
				tools = now
			}
			v, by := ask(t, tools, test.tool, test.args)
			if by != "github" {
				t.Fatalf("answered by %q", by)
			}
			want(t, v, test.want...)
		})
	}
}

// author is who wrote a pull request, as it is told.
func author(t *testing.T, tools []tool.Tool) string {
	t.Helper()
	v, _ := ask(t, tools, "pull_request_read", `{"method":"get","owner":"acme","repo":"shop","pullNumber":4}`)
	return fmt.Sprint(at(v, "user", "login"))
}

// TestTheAnswersInBrief: after a change GitHub's present server says only where it is,
// and a difference is text.
func TestTheAnswersInBrief(t *testing.T) {
	t.Parallel()
	tools := declareAll(t, "", githubNow)
	const in = `"owner":"acme","repo":"shop"`
	for name, test := range map[string]struct{ tool, args, at string }{
		"pull":    {"create_pull_request", `{` + in + `,"title":"x","head":"a","base":"main"}`, "https://github.com/acme/shop/pull/"},
		"issue":   {"issue_write", `{"method":"create",` + in + `,"title":"x"}`, "https://github.com/acme/shop/issues/"},
		"comment": {"add_issue_comment", `{` + in + `,"issue_number":3,"body":"x"}`, "https://github.com/acme/shop/issues/3#issuecomment-"},
	} {
		v, _ := ask(t, tools, test.tool, test.args)
		if _, isText := at(v, "id").(string); !isText || !strings.HasPrefix(fmt.Sprint(at(v, "url")), test.at) || at(v, "title") != nil {
			t.Errorf("%s: %v", name, v)
		}
	}
	v, _ := ask(t, tools, "pull_request_read", `{"method":"get_diff",`+in+`,"pullNumber":4}`)
	if s, _ := v.(string); !strings.HasPrefix(s, "diff --git a/README.md b/README.md\n") {
		t.Errorf("the difference is %v", v)
	}
	if v, by := ask(t, tools, "pull_request_read", `{"method":"get_something",`+in+`,"pullNumber":4}`); by != "" {
		t.Errorf("an unknown method gave %v", v)
	}
	for n := range 5 { // an issue has as many comments as it says
		issue, _ := ask(t, tools, "issue_read", fmt.Sprintf(`{"method":"get",%s,"issue_number":%d}`, in, n))
		comments, _ := ask(t, tools, "issue_read", fmt.Sprintf(`{"method":"get_comments",%s,"issue_number":%d}`, in, n))
		if list, _ := comments.([]any); float64(len(list)) != at(issue, "comments") {
			t.Errorf("issue %d says %v comments and has %d", n, at(issue, "comments"), len(list))
		}
	}
}

// TestWhatIsListedIsWhatIsRead: an issue is the same in the list and by itself, and
// what is created has a number that no list has.
func TestWhatIsListedIsWhatIsRead(t *testing.T) {
	t.Parallel()
	tools := declareAll(t, "", githubThen)
	closed := 0
	for _, state := range []string{"open", "closed", "all"} {
		list, _ := ask(t, tools, "list_issues", fmt.Sprintf(`{"owner":"acme","repo":"shop","state":%q}`, state))
		for i := range collection {
			n := at(list, i, "number")
			one, _ := ask(t, tools, "get_issue", fmt.Sprintf(`{"owner":"acme","repo":"shop","issue_number":%v}`, n))
			for _, key := range []string{"id", "number", "title", "state", "created_at", "closed_at", "html_url"} {
				if at(list, i, key) != at(one, key) {
					t.Errorf("%s of %v: %v in the list, %v by itself", key, n, at(list, i, key), at(one, key))
				}
			}
			if at(one, "state") == "closed" {
				closed++
			}
		}
	}
	if closed < collection || closed > collection+1 {
		t.Errorf("%d are closed", closed)
	}
	search, _ := ask(t, tools, "search_issues", `{"q":"how to close an open door repo:acme/shop"}`)
	all, _ := ask(t, tools, "list_issues", `{"owner":"acme","repo":"shop","state":"all"}`)
	if at(search, "items", 2, "number") != at(all, 2, "number") {
		t.Errorf("the words of a search were taken for a state: %v", at(search, "items", 2, "number"))
	}
	created, _ := ask(t, tools, "create_issue", `{"owner":"acme","repo":"shop","title":"x"}`)
	if n, _ := at(created, "number").(float64); n <= 400 {
		t.Errorf("the new issue has the number %v", n)
	}
}

// TestACursorLeadsToTheEnd: a list that is read by its cursor gives each item once.
func TestACursorLeadsToTheEnd(t *testing.T) {
	t.Parallel()
	github, slack := declareAll(t, "", githubNow), declareAll(t, "", slackTools)
	seen := map[any]bool{}
	next := ""
	for range 10 {
		v, _ := ask(t, github, "list_issues", fmt.Sprintf(`{"owner":"a","repo":"b","perPage":1,"after":%q}`, next))
		if seen[at(v, "issues", 0, "number")] = true; at(v, "pageInfo", "hasNextPage") != true {
			break
		}
		next = fmt.Sprint(at(v, "pageInfo", "endCursor"))
	}
	if len(seen) != collection {
		t.Errorf("issues %v", seen)
	}
	clear(seen)
	next = ""
	for range 10 {
		v, _ := ask(t, slack, "slack_get_users", fmt.Sprintf(`{"limit":2,"cursor":%q}`, next))
		seen[at(v, "members", 0, "id")] = true
		if next = fmt.Sprint(at(v, "response_metadata", "next_cursor")); next == "" {
			break
		}
	}
	if len(seen) != 2 || next != "" {
		t.Errorf("users %v, then %q", seen, next)
	}
}
