package connector

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// statement is what is read of a statement in SQL. The reader is a tolerant one: it
// takes what it knows and passes over the rest.
type statement struct {
	verb    string   // select, insert, …, in lower case; empty for what is none
	columns []column // of the select list, or of returning
	sourced bool     // rows come from somewhere
	grouped bool
	limit   int // -1 for none
	offset  int
	count   int // of rows there are; 0 for the usual number
	tuples  int // that are inserted
	// equal are the columns that have one value in every row, by name in lower case.
	equal map[string]any
}

// column is one item of a select list.
type column struct {
	name     string // as it is named, empty for an expression
	call     string // the function that it is a call of, in lower case
	of       string // the column that the function is called with
	source   string // as it is written
	star     bool
	one      bool // it has an aggregate, which makes one value of all rows
	computed bool // with numbers
	literal  bool
	constant any // of a literal
}

// verbs are what a statement that answers begins with, after what with defines.
var verbs = []string{"select", "insert", "update", "delete", "replace", "merge"}

// ends are the words that a select list ends before.
var ends = []string{"from", "where", "group", "having", "order", "limit", "offset", "fetch", "union", "intersect", "except", "into", "for", ";"}

// readSQL reads the first statement of a text.
func readSQL(text string) statement {
	s := statement{limit: -1, equal: map[string]any{}}
	all := tokens(text)
	for len(all) > 0 && all[0].is("(", ";") {
		all = all[1:]
	}
	if len(all) == 0 || all[0].kind != word {
		return s
	}
	at, depth := 0, all[0].depth
	if all[0].is("with") {
		at = slices.IndexFunc(all, func(t token) bool { return t.depth == depth && t.is(verbs...) })
		if at < 0 {
			return s
		}
	}
	s.verb = strings.ToLower(all[at].text)
	var own []token // of the statement's own level, and what is in its brackets
	for _, t := range all[at+1:] {
		if t.depth < depth || t.depth == depth && t.is(";") {
			break
		}
		own = append(own, t)
	}
	s.read(text, own, depth)
	return s
}

// read takes the clauses of a statement.
func (s *statement) read(text string, own []token, depth int) {
	list := -1 // where the list of columns begins
	if s.verb == "select" {
		list = 0
	}
	for i, t := range own {
		if t.depth != depth {
			continue
		}
		switch {
		case t.is("from"):
			s.sourced = true
		case t.is("group"):
			s.grouped = true
		case t.is("where", "set"):
			s.equals(own[i+1:], depth)
		case t.is("limit", "fetch", "top"):
			s.limitTo(own[i+1:])
		case t.is("offset"):
			s.offset = whole(own[i+1:], 0)
		case t.is("returning") && s.verb != "select":
			list = i + 1
		case t.is("values"):
			for _, v := range own[i+1:] {
				if v.depth == depth && v.is("(") {
					s.tuples++
				}
			}
		}
	}
	if list >= 0 {
		s.columns = readColumns(text, own[list:], depth)
	}
}

// limitTo reads "limit 5", MySQL's "limit 10, 5", "fetch first 5 rows" and "top 5".
func (s *statement) limitTo(rest []token) {
	if len(rest) > 0 && rest[0].is("first", "next", "(") {
		rest = rest[1:]
	}
	s.limit = whole(rest, -1)
	if len(rest) > 2 && rest[1].is(",") {
		s.offset, s.limit = max(s.limit, 0), whole(rest[2:], -1)
	}
}

// whole is the whole number that tokens begin with.
func whole(rest []token, otherwise int) int {
	if len(rest) == 0 || rest[0].kind != num {
		return otherwise
	}
	n, err := strconv.ParseInt(rest[0].text, 10, 32)
	if err != nil {
		return otherwise
	}
	return int(n)
}

// equals reads the columns that have a value by the conditions of where, or are given
// one by set. What is alternative says nothing.
func (s *statement) equals(rest []token, depth int) {
	found := map[string]any{}
	for i, t := range rest {
		if t.depth != depth {
			continue
		}
		if t.is(ends...) {
			break
		}
		if t.is("or") {
			return
		}
		if t.is("=") && i > 0 && rest[i-1].names() {
			if v, ok := constant(rest[i+1:], true); ok {
				found[strings.ToLower(cut(rest[i-1].text, maxName))] = v
			}
		}
	}
	maps.Copy(s.equal, found)
}

// constant is the value that tokens begin with, or are where no more may follow.
func constant(rest []token, more bool) (any, bool) {
	if len(rest) == 0 || !more && len(rest) > 1 {
		return nil, false
	}
	switch t := rest[0]; {
	case t.kind == str:
		return cut(t.text, maxName), true
	case t.kind == num:
		n, err := strconv.ParseFloat(t.text, 64)
		return n, err == nil
	case t.is("true", "false"):
		return t.is("true"), true
	case t.is("null"):
		return nil, !more // nothing equals null
	}
	return nil, false
}

// readColumns splits a list at its commas.
func readColumns(text string, list []token, depth int) []column {
	if end := slices.IndexFunc(list, func(t token) bool { return t.depth == depth && t.is(ends...) }); end >= 0 {
		list = list[:end]
	}
	for len(list) > 0 && list[0].is("distinct", "all") {
		list = list[1:]
	}
	if len(list) > 1 && list[0].is("top") && list[1].kind == num {
		list = list[2:]
	}
	var out []column
	for len(list) > 0 && len(out) < maxColumns {
		end := slices.IndexFunc(list, func(t token) bool { return t.depth == depth && t.is(",") })
		if end < 0 {
			end = len(list)
		}
		if end > 0 {
			out = append(out, readColumn(text, list[:end]))
		}
		list = list[min(end+1, len(list)):]
	}
	return out
}

// readColumn reads one item: "*", "a.b", "f(x)", an expression, and its other name.
func readColumn(text string, item []token) column {
	c := column{source: cut(text[item[0].from:item[len(item)-1].to], maxName)}
	if n := len(item); n > 2 && item[n-2].is("as") {
		c.name, item = item[n-1].text, item[:n-2]
	} else if n > 1 && item[n-1].names() && !item[n-1].is("end") && (item[n-2].names() || item[n-2].kind == str || item[n-2].kind == num || item[n-2].is(")")) {
		c.name, item = item[n-1].text, item[:n-1]
	}
	c.name = cut(c.name, maxName)
	c.star = item[len(item)-1].is("*") && (len(item) == 1 || item[len(item)-2].is("."))
	c.one = aggregate(item)
	c.constant, c.literal = constant(item, false)
	plain := cast(item)
	switch {
	case c.star || c.literal:
	case len(plain) > 1 && plain[0].kind == word && plain[1].is("("):
		c.call = strings.ToLower(plain[0].text)
		for _, t := range plain[2:] {
			if t.names() && !t.is("distinct") {
				c.of = t.text
			}
			if t.is(",") {
				break
			}
		}
	case slices.ContainsFunc(plain, func(t token) bool { return !t.names() && !t.is(".") }):
		c.computed = slices.ContainsFunc(plain, func(t token) bool { return t.is("+", "-", "*", "/", "%") })
	case c.name == "":
		c.name = cut(plain[len(plain)-1].text, maxName)
	}
	return c
}

// aggregate reports whether an item makes one value of many rows: a window does not.
func aggregate(item []token) bool {
	found := false
	for i, t := range item {
		if t.is("over", "select") {
			return false
		}
		found = found || t.is(aggregates...) && i+1 < len(item) && item[i+1].is("(")
	}
	return found
}

// cast leaves out the type of "a::text".
func cast(item []token) []token {
	if i := slices.IndexFunc(item, func(t token) bool { return t.is(":") }); i > 0 {
		return item[:i]
	}
	return item
}

// affected is how many rows a change is said to change.
func (s statement) affected(c *call) int {
	switch {
	case s.verb == "insert" && s.tuples > 0:
		return s.tuples
	case s.equal["id"] != nil || s.verb == "insert":
		return 1
	}
	return c.number(1, collection, "affected", s.verb)
}
