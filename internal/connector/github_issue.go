package connector

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

func digits(n int) string { return strconv.Itoa(n) }

// ticket is an issue, or the issue that a pull request is too.
type ticket struct {
	repository repository
	number     int
	pull       bool
}

// page is where people read it.
func (t ticket) page() string {
	if t.pull {
		return t.repository.html("pull", digits(t.number))
	}
	return t.repository.html("issues", digits(t.number))
}

// ticket is the one that the arguments name.
func (c *call) ticket(pull bool, names ...string) ticket {
	n, ok := c.args.number(names...)
	if !ok {
		n = 1
	}
	return ticket{c.repository(), n, pull}
}

func (c *call) theIssue() ticket { return c.ticket(false, "issue_number") }

// listed is the ticket at a place of a list of those in a state, the newest first.
func (c *call) listed(i int, pull bool, state string) ticket {
	r := c.repository()
	for t := (ticket{r, c.number(20, 400, "newest", r, pull), pull}); ; t.number-- {
		if (state == "open" || state == "closed") && state != t.state() {
			continue
		}
		if i--; i < 0 {
			return t
		}
	}
}

// state of a ticket: one in four is closed, so that every list has its items.
func (t ticket) state() string {
	if t.number%4 == 3 {
		return "closed"
	}
	return "open"
}

// state is the one that the arguments ask for or set, in lower case; empty where they
// say nothing.
func (c *call) state() string {
	if s := c.args.text(maxName, "state"); s != "" {
		return strings.ToLower(s)
	}
	for word := range strings.FieldsSeq(c.args.text(maxName, "query", "q")) {
		if key, state, ok := strings.Cut(strings.ToLower(word), ":"); ok && (key == "is" || key == "state") && (state == "open" || state == "closed") {
			return state
		}
	}
	return ""
}

// created is a new ticket: its number is above those of the lists, and it is open.
func (c *call) created(pull bool) ticket {
	return ticket{c.repository(), 4 * c.number(101, 9999, "new", c.place), pull}
}

// issue is a ticket as the REST API has it, with what the arguments say of it.
func (c *call) issue(t ticket) object {
	kind := "issue"
	if t.pull {
		kind = "pull request"
	}
	by, at := c.login("author", t), c.moment("created", t)
	o := object{
		"id": c.id("issue", t), "number": t.number, "title": c.otherwise("title", fmt.Sprintf("Mock %s %d", kind, t.number)),
		"body": c.otherwise("body", fmt.Sprintf("What %s %d is about.", kind, t.number)), "state": "open", "locked": false, "draft": false,
		"user": c.user(by), "author_association": "MEMBER", "labels": c.labels(t.repository), "assignees": c.assignees(), "assignee": nil, "milestone": nil,
		"comments": c.number(0, collection, "comments", t), "created_at": at.Format("2006-01-02T15:04:05Z"), "updated_at": at.AddDate(0, 0, 1).Format("2006-01-02T15:04:05Z"),
		"closed_at": nil, "html_url": t.page(), "url": t.repository.api("issues", digits(t.number)), "repository_url": t.repository.api(),
		"comments_url": t.repository.api("issues", digits(t.number), "comments"), "node_id": "I_" + c.hex(16, "node", t),
	}
	if all, ok := o["assignees"].([]any); ok && len(all) > 0 {
		o["assignee"] = all[0]
	}
	if said := c.state(); said == "closed" || said != "open" && t.state() == "closed" {
		o["state"], o["state_reason"], o["closed_at"] = "closed", "completed", o["updated_at"]
	}
	if t.pull {
		o["pull_request"] = object{"url": t.repository.api("pulls", digits(t.number)), "html_url": t.page()}
	}
	return o
}

// otherwise is the text of an argument, or what stands for it.
func (c *call) otherwise(argument, text string) string {
	if s := c.args.text(maxText, argument); s != "" {
		return s
	}
	return text
}

// labels are those that the arguments name, else one that most repositories have.
func (c *call) labels(r repository) []any {
	names := c.args.list("labels")
	if names == nil {
		names = []string{"bug"}
	}
	out := []any{}
	for _, name := range names {
		out = append(out, object{"id": c.id("label", r, name), "name": name, "color": c.hex(6, "label", name), "default": false, "description": nil, "url": r.api("labels", name)})
	}
	return out
}

func (c *call) assignees() []any {
	out := []any{}
	for _, login := range c.args.list("assignees") {
		out = append(out, c.user(login))
	}
	return out
}

// inBrief leaves of a ticket what the shorter answers have: names instead of objects,
// and no addresses of the REST API.
func inBrief(o object) object {
	for key := range o {
		if key != "html_url" && strings.HasSuffix(key, "url") || key == "node_id" || key == "id" || key == "assignee" || o[key] == nil {
			delete(o, key)
		}
	}
	for key, name := range map[string]string{"labels": "name", "assignees": "login"} {
		list, _ := o[key].([]any)
		names := []any{}
		for _, item := range list {
			if one, ok := item.(object); ok {
				names = append(names, one[name])
			}
		}
		o[key] = names
	}
	return o
}

// shown is a ticket in the manner of its server.
func (c *call) shown(t ticket) object {
	if c.brief() {
		return inBrief(c.issue(t))
	}
	return c.issue(t)
}

func getIssue(c *call) any { return c.shown(c.theIssue()) }

func issueRead(c *call) any {
	switch c.args.text(maxName, "method") {
	case "get":
		return getIssue(c)
	case "get_comments":
		return issueComments(c)
	case "get_labels":
		labels := c.labels(c.repository())
		return object{"labels": labels, "totalCount": len(labels)}
	case "get_sub_issues":
		return []any{}
	case "get_parent":
		return object{"parent": nil}
	}
	return nil
}

func issueComments(c *call) any {
	t := c.theIssue()
	return c.pageOf(c.number(0, collection, "comments", t), func(i int) any {
		return c.comment(t, c.id("comment", t, i), fmt.Sprintf("Mock comment %d on issue %d", i+1, t.number))
	})
}

func (c *call) comment(t ticket, id int, body string) object {
	at := c.at("comment", id)
	return object{
		"id": id, "body": body, "user": c.person("comment", id), "author_association": "MEMBER", "created_at": at, "updated_at": at,
		"html_url": t.page() + "#issuecomment-" + digits(id), "url": t.repository.api("issues", "comments", digits(id)), "issue_url": t.repository.api("issues", digits(t.number)),
	}
}

func addComment(c *call) any {
	t, id := c.theIssue(), c.id("new comment", c.place)
	if c.brief() {
		return made(id, t.page()+"#issuecomment-"+digits(id))
	}
	return c.comment(t, id, c.args.text(maxText, "body"))
}

// listIssues answers with a list, or with one that has a cursor where the tool takes one.
func listIssues(c *call) any {
	if !c.tool.declares("after") {
		return c.pageOf(collection, func(i int) any { return c.shown(c.listed(i, false, cmp.Or(c.state(), "open"))) })
	}
	from := after(c.args.text(maxName, "after"), collection)
	size, ok := c.args.number("perPage")
	if !ok || size < 1 {
		size = usualPage
	}
	to := min(from+min(size, collection), collection)
	issues := []any{}
	for i := from; i < to; i++ {
		o := inBrief(c.issue(c.listed(i, false, c.state())))
		o["state"] = strings.ToUpper(fmt.Sprint(o["state"]))
		issues = append(issues, o)
	}
	return object{"issues": issues, "totalCount": collection, "pageInfo": object{
		"hasNextPage": to < collection, "hasPreviousPage": from > 0, "startCursor": cursor(from), "endCursor": cursor(to),
	}}
}

func createIssue(c *call) any { return c.changed(c.created(false)) }

func updateIssue(c *call) any { return c.changed(c.theIssue()) }

func issueWrite(c *call) any {
	switch c.args.text(maxName, "method") {
	case "create":
		return createIssue(c)
	case "update":
		return updateIssue(c)
	}
	return nil
}

// changed is what is said of a ticket after it was written.
func (c *call) changed(t ticket) any {
	if c.brief() {
		return made(c.id("issue", t), t.page())
	}
	return c.issue(t)
}

func searchIssues(c *call) any { return c.search(false) }

func searchPulls(c *call) any { return c.search(true) }

// search finds tickets. The answer has every field, whatever the server's manner is.
func (c *call) search(pull bool) any {
	return found(c.pageOf(collection, func(i int) any { return c.issue(c.listed(i, pull, c.state())) }))
}
