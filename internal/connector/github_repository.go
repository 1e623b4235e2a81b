package connector

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"strings"
)

// about is a repository as the REST API has it.
func (c *call) about(r repository) object {
	o := object{
		"id": c.id("repository", r), "name": r.name, "full_name": r.String(), "description": "Mock repository " + r.name, "language": "Go",
		"html_url": r.html(), "private": false, "fork": false, "archived": false, "default_branch": "main", "topics": []any{},
		"stargazers_count": c.number(0, 5000, "stars", r), "forks_count": c.number(0, 500, "forks", r), "open_issues_count": collection,
		"created_at": c.at("created", r), "updated_at": c.at("updated", r),
	}
	if !c.brief() {
		o["owner"], o["url"], o["clone_url"] = c.user(r.owner), r.api(), r.html()+".git"
	}
	return o
}

func searchRepositories(c *call) any {
	r := c.repository()
	return found(c.pageOf(collection, func(i int) any {
		return c.about(repository{r.owner, fmt.Sprintf("%s-%d", r.name, i+1)})
	}))
}

func searchCode(c *call) any {
	r := c.repository()
	return found(c.pageOf(collection, func(i int) any {
		name := fmt.Sprintf("mock%d.go", i+1)
		o := object{"name": name, "path": "src/" + name, "sha": c.hex(40, "file", r, "src/"+name), "repository": r.String()}
		if !c.brief() {
			o["repository"], o["html_url"], o["url"] = c.about(r), r.html("blob", "main", "src/"+name), r.api("contents", "src/"+name)
		}
		return o
	}))
}

func searchUsers(c *call) any {
	return found(c.pageOf(collection, func(i int) any { return c.user(fmt.Sprintf("mock-user-%d", i+1)) }))
}

func getMe(c *call) any {
	o := c.user("octocat")
	details := object{
		"name": "Mona Lisa", "email": "octocat@example.com", "company": "Example", "location": "Everywhere", "bio": "Mock account",
		"public_repos": collection, "public_gists": 0, "followers": 1, "following": 1, "created_at": c.at("me"), "updated_at": c.at("me"),
	}
	if c.brief() {
		o["details"] = details
		return o
	}
	maps.Copy(o, details)
	return o
}

// file is what the arguments name: a path, where it is kept and its hash.
func (c *call) file() (r repository, at, ref string) {
	r = c.repository()
	at = strings.TrimPrefix(c.args.text(maxName, "path"), "/")
	return r, at, strings.TrimPrefix(c.args.name("main", "ref", "branch", "sha"), "refs/heads/")
}

// entry is what the contents of a repository are listed with.
func (c *call) entry(r repository, at, ref, kind string, size int) object {
	return object{
		"type": kind, "name": path.Base(at), "path": at, "size": size, "sha": c.hex(40, "file", r, at),
		"url": r.api("contents", at) + "?ref=" + url.QueryEscape(ref), "html_url": r.html("blob", ref, at), "download_url": r.under("https://raw.githubusercontent.com", []string{ref, at}),
	}
}

// getFile answers a path that ends in a slash, or none, with what is in the folder.
// GitHub's own server, which takes a ref, sends a file as a text and a resource; the
// reference server, which takes a branch, as an object with the decoded content.
func getFile(c *call) any {
	r, at, ref := c.file()
	if at == "" || strings.HasSuffix(at, "/") {
		return []any{
			c.entry(r, at+"README.md", ref, "file", len(content(r, "README.md"))),
			c.entry(r, at+"package.json", ref, "file", len(content(r, "package.json"))),
			c.entry(r, at+"src", ref, "dir", 0),
		}
	}
	text := content(r, at)
	if !c.tool.declares("ref") {
		o := c.entry(r, at, ref, "file", len(text))
		o["encoding"], o["content"] = "base64", text // decoded all the same
		return o
	}
	return blocks{
		object{"type": "text", "text": fmt.Sprintf("successfully downloaded text file (SHA: %s)", c.hex(40, "file", r, at))},
		object{"type": "resource", "resource": object{"uri": r.under("repo:/", []string{"contents", at}), "mimeType": "text/plain; charset=utf-8", "text": text}},
	}
}

// content is text of the kind that a file's name promises.
func content(r repository, at string) string {
	switch path.Ext(at) {
	case ".json":
		b, _ := json.Marshal(object{"name": r.name, "version": "1.0.0"}) // texts always encode
		return string(b)
	case ".md":
		return "# " + r.name + "\n\nMock content of " + at + "\n"
	case ".csv":
		return "id,name\n1,mock 1\n2,mock 2\n"
	}
	return "mock content of " + at + "\n"
}

func writeFile(c *call) any {
	r, at, ref := c.file()
	file := c.entry(r, at, c.args.name(ref, "branch"), "file", len(c.args.text(maxText, "content")))
	commit := c.commit(r, c.hex(40, "commit", c.place), c.args.text(maxText, "message"))
	inner, _ := commit["commit"].(object)
	written := object{"sha": commit["sha"], "html_url": commit["html_url"], "message": inner["message"], "author": inner["author"]}
	if c.brief() {
		delete(file, "url")
		delete(file, "download_url")
		delete(file, "type")
	} else {
		written["committer"], written["url"], written["parents"] = inner["committer"], r.api("git", "commits", fmt.Sprint(commit["sha"])), commit["parents"]
	}
	return object{"content": file, "commit": written}
}

// commit is a commit as lists of commits have it.
func (c *call) commit(r repository, sha, message string) object {
	login := c.login("commit", sha)
	by := object{"name": login, "email": login + "@example.com", "date": c.at("commit", sha)}
	o := object{
		"sha": sha, "html_url": r.html("commit", sha), "author": c.user(login), "committer": c.user(login),
		"commit": object{"message": message, "author": by, "committer": by},
	}
	if !c.brief() {
		o["url"], o["parents"] = r.api("commits", sha), []any{object{"sha": c.hex(40, "parent", sha)}}
	}
	return o
}

func listCommits(c *call) any {
	r := c.repository()
	return c.pageOf(collection, func(i int) any {
		return c.commit(r, c.hex(40, "commit", r, i), fmt.Sprintf("Mock commit %d", collection-i))
	})
}

func getCommit(c *call) any {
	r := c.repository()
	sha := c.args.name("main", "sha")
	if strings.Trim(sha, "0123456789abcdef") != "" { // a branch
		sha = c.hex(40, "commit", r, 0)
	}
	o := c.commit(r, sha, "Mock commit")
	o["stats"] = object{"additions": 1, "deletions": 1, "total": 2}
	o["files"] = []any{c.changedFile(ticket{repository: r})}
	return o
}

func listBranches(c *call) any {
	r := c.repository()
	names := []string{"main", "develop", "feature"}
	return c.pageOf(len(names), func(i int) any {
		sha := c.hex(40, "commit", r, i)
		if c.brief() {
			return object{"name": names[i], "sha": sha, "protected": i == 0}
		}
		return object{"name": names[i], "commit": object{"sha": sha, "url": r.api("commits", sha)}, "protected": i == 0}
	})
}

func createBranch(c *call) any {
	r, ref := c.repository(), "refs/heads/"+c.args.name("mock", "branch")
	sha := c.hex(40, "commit", r, 0)
	return object{
		"ref": ref, "node_id": "REF_" + c.hex(16, ref), "url": r.api("git", ref),
		"object": object{"type": "commit", "sha": sha, "url": r.api("git", "commits", sha)},
	}
}
