package connector

import (
	"cmp"
	"fmt"
)

func (c *call) thePull() ticket { return c.ticket(true, "pullNumber", "pull_number") }

// pull is a pull request as the REST API has it.
func (c *call) pull(t ticket) object {
	o := c.issue(t)
	delete(o, "pull_request")
	delete(o, "comments_url")
	delete(o, "repository_url")
	delete(o, "state_reason")
	o["id"], o["url"], o["node_id"] = c.id("pull", t), t.repository.api("pulls", digits(t.number)), "PR_"+c.hex(16, "pull", t)
	o["draft"] = c.args.flag("draft")
	o["merged"], o["merged_at"], o["merge_commit_sha"], o["mergeable"], o["mergeable_state"] = false, nil, nil, true, "clean"
	o["head"] = c.side(t, c.args.name(fmt.Sprintf("feature-%d", t.number), "head"), "head")
	o["base"] = c.side(t, c.args.name("main", "base"), "base")
	o["requested_reviewers"] = []any{}
	o["additions"], o["deletions"] = c.number(1, 90, "additions", t), c.number(0, 40, "deletions", t)
	o["commits"], o["changed_files"], o["review_comments"] = 1, 1, 0
	o["diff_url"], o["patch_url"] = t.page()+".diff", t.page()+".patch"
	return o
}

// side is one of the two branches of a pull request.
func (c *call) side(t ticket, ref, side string) object {
	o := object{"ref": ref, "sha": c.hex(40, side, t)}
	if c.brief() {
		o["repo"] = object{"full_name": t.repository.String()}
		return o
	}
	o["label"], o["user"], o["repo"] = t.repository.owner+":"+ref, c.user(t.repository.owner), c.about(t.repository)
	return o
}

// shownPull is a pull request in the manner of its server.
func (c *call) shownPull(t ticket) object {
	o := c.pull(t)
	if !c.brief() {
		return o
	}
	for _, key := range []string{"author_association", "locked", "mergeable", "review_comments"} {
		delete(o, key)
	}
	return inBrief(o)
}

func getPull(c *call) any { return c.shownPull(c.thePull()) }

func pullRead(c *call) any {
	switch c.args.text(maxName, "method") {
	case "get":
		return getPull(c)
	case "get_files":
		return pullFiles(c)
	case "get_reviews":
		return pullReviews(c)
	case "get_comments":
		return pullComments(c)
	case "get_status":
		return pullStatus(c)
	case "get_diff":
		f := c.changedFile(c.thePull())
		return plain(fmt.Sprintf("diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n%[2]s\n", f["filename"], f["patch"]))
	}
	return nil
}

func (c *call) changedFile(t ticket) object {
	return object{
		"filename": "README.md", "status": "modified", "additions": 1, "deletions": 1, "changes": 2,
		"sha": c.hex(40, "file", t), "patch": fmt.Sprintf("@@ -1 +1 @@\n-before %d\n+after %d", t.number, t.number),
	}
}

func pullFiles(c *call) any {
	return c.pageOf(1, func(int) any { return c.changedFile(c.thePull()) })
}

func pullReviews(c *call) any {
	t := c.thePull()
	return c.pageOf(1, func(int) any {
		id := c.id("review", t)
		return object{
			"id": id, "state": "APPROVED", "body": "Mock review", "user": c.person("review", t), "submitted_at": c.at("review", t),
			"html_url": t.page() + "#pullrequestreview-" + digits(id), "commit_id": c.hex(40, "head", t), "author_association": "MEMBER",
		}
	})
}

func pullComments(c *call) any {
	t := c.thePull()
	return c.pageOf(1, func(i int) any {
		return c.comment(t, c.id("comment", t, i), fmt.Sprintf("Mock comment on pull request %d", t.number))
	})
}

func pullStatus(c *call) any {
	t := c.thePull()
	return object{"state": "success", "sha": c.hex(40, "head", t), "total_count": 1, "statuses": []any{
		object{"state": "success", "context": "ci/mock", "description": "mock check", "created_at": c.at("status", t), "updated_at": c.at("status", t)},
	}}
}

func listPulls(c *call) any {
	return c.pageOf(collection, func(i int) any { return c.shownPull(c.listed(i, true, cmp.Or(c.state(), "open"))) })
}

func createPull(c *call) any { return c.changedPull(c.created(true)) }

func updatePull(c *call) any { return c.changedPull(c.thePull()) }

func (c *call) changedPull(t ticket) any {
	if c.brief() {
		return made(c.id("pull", t), t.page())
	}
	return c.pull(t)
}

func mergePull(c *call) any {
	return object{"sha": c.hex(40, "merge", c.thePull()), "merged": true, "message": "Pull Request successfully merged"}
}
