package connector

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// usualColumns are those of a table of which nothing is known.
var usualColumns = []string{"id", "name", "status", "created_at"}

// aggregates make one value of many rows.
var aggregates = []string{"count", "sum", "avg", "min", "max", "string_agg", "array_agg", "group_concat", "json_agg", "bool_and", "bool_or", "total"}

// row is an object whose properties keep the order of the columns.
type row []field

type field struct {
	name  string
	value any
}

// MarshalJSON writes a row; of columns with one name the last counts, as in drivers.
func (r row) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range r {
		if slices.ContainsFunc(r[i+1:], func(later field) bool { return later.name == f.name }) {
			continue
		}
		name, err := json.Marshal(f.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(append(append(name, ':'), value...))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// rows answers a statement that has columns.
func (c *call) rows(s statement) any {
	from := min(s.offset, s.total())
	to := s.total()
	if s.limit >= 0 {
		to = min(to, from+min(s.limit, to))
	}
	out := []any{}
	for i := from; i < to; i++ {
		var r row
		for _, col := range s.columns {
			if !col.star {
				r = append(r, field{c.heading(col), c.cell(s, col, i)})
				continue
			}
			for _, name := range starred(s) {
				r = append(r, field{name, c.cell(s, column{name: name}, i)})
			}
		}
		out = append(out, r[:min(len(r), maxColumns)])
	}
	return out
}

// starred are the columns that a star stands for: the usual ones and those that the
// statement compares.
func starred(s statement) []string {
	names := slices.Clone(usualColumns)
	for name := range s.equal {
		if !slices.Contains(names, name) && len(names) < maxColumns {
			names = append(names, name)
		}
	}
	slices.Sort(names[len(usualColumns):])
	return names
}

// total is how many rows there are before limit and offset.
func (s statement) total() int {
	aggregated := !s.grouped && slices.ContainsFunc(s.columns, func(col column) bool { return col.one })
	switch {
	case s.count > 0:
		return min(s.count, maxList)
	case aggregated, s.verb == "select" && !s.sourced, s.equal["id"] != nil:
		return 1
	}
	return collection
}

// heading is what a column is called in the rows.
func (c *call) heading(col column) string {
	if col.name != "" {
		return col.name
	}
	switch {
	case c.dialect() != postgres:
		return col.source
	case col.call != "":
		return col.call
	}
	return "?column?"
}

// cell is the value of a column in one row.
func (c *call) cell(s statement, col column, i int) any {
	if col.literal {
		return col.constant
	}
	name := strings.ToLower(col.name)
	if v, ok := s.equal[name]; ok && col.call == "" {
		return v
	}
	if name == "" {
		name = strings.ToLower(cut(col.of, maxName))
	}
	kind := kindOf(name)
	switch col.call {
	case "row_number", "rank", "dense_rank":
		return i + 1
	case "count":
		kind = "integer"
	case "sum", "avg", "total":
		kind = "number"
	case "now", "current_timestamp":
		kind = "timestamp"
	case "bool_and", "bool_or", "exists":
		kind = "boolean"
	case "array_agg", "json_agg":
		return []any{c.value(kind, cmp.Or(name, "value"), i)}
	case "string_agg", "group_concat":
	case "min", "max", "first_value", "last_value":
		kind = kindOf(strings.ToLower(col.of))
	default: // what is computed is a number, if its name does not say otherwise
		if (col.one || col.computed) && kind == "text" {
			kind = "number"
		}
	}
	return c.value(kind, cmp.Or(name, col.call, "value"), i)
}

// kindOf guesses a column's type from its name: integer, number, boolean, timestamp,
// date, email, uuid, url, json or text.
func kindOf(name string) string {
	last := name[strings.LastIndexByte(name, '_')+1:]
	first, _, more := strings.Cut(name, "_")
	in := func(words string) bool { return slices.Contains(strings.Fields(words), last) }
	switch {
	case in("uuid guid"):
		return "uuid"
	case more && slices.Contains([]string{"is", "has", "can", "should"}, first), in("active enabled disabled deleted archived verified"):
		return "boolean"
	case in("at time timestamp datetime"):
		return "timestamp"
	case in("date day birthday") || more && last == "on":
		return "date"
	case in("id count quantity qty age year month position rank version n cnt size stock number"):
		return "integer"
	case in("price amount total cost rate score balance revenue sum avg average percent ratio weight discount tax"):
		return "number"
	case in("email mail"):
		return "email"
	case in("url uri link"):
		return "url"
	case in("json metadata meta data settings config"):
		return "json"
	}
	return "text"
}

// sqlType is the type of a column in a description of its table.
func sqlType(kind string) string {
	if kind == "integer" || kind == "timestamp" {
		return kind
	}
	return "text"
}

// value makes a value of a kind for a row.
func (c *call) value(kind, name string, i int) any {
	switch kind {
	case "integer":
		if name == "id" {
			return i + 1
		}
		return c.number(1, 100, name, i)
	case "number":
		return float64(c.number(100, 99_999, name, i)) / 100
	case "boolean":
		return c.number(0, 1, name, i) == 1
	case "timestamp":
		return c.at(name, i)
	case "date":
		return c.moment(name, i).Format("2006-01-02")
	case "email":
		return fmt.Sprintf("person%d@example.com", i+1)
	case "uuid":
		return c.uuid(name, i)
	case "url":
		return fmt.Sprintf("https://example.com/%d", i+1)
	case "json":
		return object{}
	}
	if name == "status" {
		return "active"
	}
	return fmt.Sprintf("mock %s %d", strings.ReplaceAll(name, "_", " "), i+1)
}
