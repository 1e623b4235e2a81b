package connector

import (
	"net/url"
	"slices"
	"strings"
)

// collection is how many items a list has in all. It is small, so that a program that
// reads page after page comes to an end, and more than one, so that it loops.
const collection = 3

// usualPage is how many items a page of GitHub has where nothing is said.
const usualPage = 30

// rivals are hosts of repositories whose tools look like GitHub's.
var rivals = []string{"gitea", "gitee", "gitlab", "forgejo", "bitbucket", "codeberg", "gogs", "azure"}

// github knows the tools of GitHub's own server (github/github-mcp-server, with both
// its single tools such as get_issue and the later issue_read, whose answers are
// shorter) and of the archived reference server (@modelcontextprotocol/server-github).
// Answers are objects of GitHub's REST API.
func github() connector {
	owner, repo := text("owner"), text("repo")
	in := func(more ...parameter) []parameter { return append([]parameter{owner, repo}, more...) }
	issue, pull := number("issue_number"), number("pullNumber", "pull_number")
	query, page := text("query", "q"), number("page")
	return connector{name: "github", owns: ownsGitHub, methods: map[string]method{
		"get_issue":          {in(issue), getIssue},
		"issue_read":         {in(issue, text("method")), issueRead},
		"get_issue_comments": {in(issue), issueComments},
		"list_issues":        {in(text("state")), listIssues},
		"create_issue":       {in(text("title")), createIssue},
		"update_issue":       {in(issue, text("state")), updateIssue},
		"issue_write":        {in(issue, text("method"), text("title")), issueWrite},
		"add_issue_comment":  {in(issue, text("body")), addComment},
		"search_issues":      {[]parameter{query, page}, searchIssues},

		"get_pull_request":          {in(pull), getPull},
		"pull_request_read":         {in(pull, text("method")), pullRead},
		"get_pull_request_files":    {in(pull), pullFiles},
		"get_pull_request_reviews":  {in(pull), pullReviews},
		"get_pull_request_comments": {in(pull), pullComments},
		"get_pull_request_status":   {in(pull), pullStatus},
		"list_pull_requests":        {in(text("state"), text("base")), listPulls},
		"create_pull_request":       {in(text("title"), text("head"), text("base")), createPull},
		"update_pull_request":       {in(pull, text("title")), updatePull},
		"merge_pull_request":        {in(pull, text("merge_method")), mergePull},
		"search_pull_requests":      {[]parameter{query, page}, searchPulls},

		"get_file_contents":     {in(text("path")), getFile},
		"create_or_update_file": {in(text("path"), text("content"), text("message")), writeFile},
		"list_commits":          {in(text("sha"), page), listCommits},
		"get_commit":            {in(text("sha")), getCommit},
		"list_branches":         {in(page), listBranches},
		"create_branch":         {in(text("branch"), text("from_branch")), createBranch},
		"search_repositories":   {[]parameter{query, page}, searchRepositories},
		"search_code":           {[]parameter{query, page}, searchCode},
		"search_users":          {[]parameter{query, page}, searchUsers},
		"get_me":                {nil, getMe},
	}}
}

// ownsGitHub: the server or the tool says that it is about GitHub, or at least three
// tools of the server have the parameters of GitHub's. Another host's server does not,
// whatever its tools look like.
func ownsGitHub(s server, t declared) bool {
	says := t.says()
	if s.called(rivals...) || slices.ContainsFunc(rivals, func(r string) bool { return strings.Contains(says, r) }) {
		return false
	}
	if s.called("github", "gh") || strings.Contains(says, "github") {
		return true
	}
	telling := 0
	known := connector{methods: github().methods}
	for _, other := range s.tools {
		if d, ok := known.fits(other); ok && len(d.method.takes) >= 3 {
			telling++
		}
	}
	return telling >= 3
}

// brief reports whether the server is one of those that answer with fewer fields, as
// GitHub's own does since it has the tools issue_read and pull_request_read.
func (c *call) brief() bool { return c.server.has("issue_read") || c.server.has("pull_request_read") }

// repository is the one that a call is about.
type repository struct{ owner, name string }

func (c *call) repository() repository {
	r := repository{c.args.name("octo-org", "owner"), c.args.name("example", "repo")}
	for part := range strings.FieldsSeq(c.args.text(maxName, "query", "q")) {
		if owner, name, ok := strings.Cut(strings.TrimPrefix(part, "repo:"), "/"); ok && strings.HasPrefix(part, "repo:") && name != "" {
			return repository{owner, name}
		}
	}
	return r
}

func (r repository) String() string { return r.owner + "/" + r.name }

// html is the address of a page.
func (r repository) html(path ...string) string { return r.under("https://github.com", path) }

// api is the address of what a page shows in the REST API.
func (r repository) api(path ...string) string { return r.under("https://api.github.com/repos", path) }

// under keeps the slashes of a file's path and of a branch's name.
func (r repository) under(root string, path []string) string {
	parts := []string{root}
	for _, part := range append([]string{r.owner, r.name}, path...) {
		if part != "" {
			parts = append(parts, escaped(part))
		}
	}
	return strings.Join(parts, "/")
}

func escaped(path string) string { return strings.ReplaceAll(url.PathEscape(path), "%2F", "/") }

// user is an account by its login.
func (c *call) user(login string) object {
	at := "https://github.com/" + url.PathEscape(login)
	id := c.id("user", login)
	if c.brief() {
		return object{"login": login, "id": id, "profile_url": at}
	}
	return object{
		"login": login, "id": id, "type": "User", "site_admin": false, "html_url": at,
		"url": "https://api.github.com/users/" + url.PathEscape(login), "avatar_url": "https://avatars.githubusercontent.com/u/" + digits(id),
	}
}

// person is the account of somebody who is made up.
func (c *call) person(of ...any) object { return c.user(c.login(of...)) }

func (c *call) login(of ...any) string {
	return c.pick([]string{"octocat", "hubot", "monalisa"}, of...)
}

// id is the number of something in GitHub's database.
func (c *call) id(of ...any) int { return c.number(100_000_000, 999_999_999, of...) }

// made is what the shorter answers say of something that was created or changed.
func made(id int, at string) object { return object{"id": digits(id), "url": at} }

// found is the answer of a search.
func found(items []any) object {
	return object{"total_count": collection, "incomplete_results": false, "items": items}
}

// pageOf makes the items of the page that is asked for, by their index.
func (c *call) pageOf(items int, item func(i int) any) []any {
	from, to := c.args.page(items, usualPage)
	out := []any{}
	for i := from; i < to; i++ {
		out = append(out, item(i))
	}
	return out
}
