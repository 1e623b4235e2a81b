package connector

import (
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/tool"
)

// dialect is what answers of databases differ in.
type dialect string

const (
	postgres dialect = "postgres"
	mysql    dialect = "mysql"
	sqlite   dialect = "sqlite"
)

// statements are the parameters that a statement is passed in.
var statements = []string{"sql", "query", "statement"}

// sql knows tools that run a statement, and those that list and describe tables: of
// the reference servers for Postgres (query with sql) and SQLite (read_query,
// write_query, create_table, list_tables, describe_table with table_name), of
// postgres-mcp and Supabase (execute_sql), and of the MySQL servers that have
// mysql_query or the names of SQLite's. Rows are JSON, although the servers written in
// Python send the same list in Python's notation, and Supabase puts words around it.
func sql() connector {
	run := method{[]parameter{text(statements...)}, runStatement}
	m := map[string]method{
		"create_table":   {run.takes, createTable},
		"list_tables":    {nil, listTables},
		"describe_table": {[]parameter{text("table_name", "table", "tableName")}, describeTable},
	}
	for _, name := range []string{
		"query", "read_query", "write_query", "execute_query", "run_query", "run_sql", "execute_sql", "sql_query",
		"mysql_query", "mysql_execute", "postgres_query", "pg_query", "sqlite_query",
	} {
		m[name] = run
	}
	return connector{name: "sql", methods: m, owns: func(s server, t declared) bool { return ownsSQL(s, t, connector{methods: m}) }}
}

// ownsSQL: the tool takes a statement and says that it is SQL; one that takes none has
// such a tool beside it, and needs nothing else to be said than where and what.
func ownsSQL(s server, t declared, known connector) bool {
	if t.takesStatement() {
		return t.speaksSQL()
	}
	for _, name := range t.required {
		if !slices.Contains([]string{"schema", "schemas", "database", "project_id", "table_name", "table", "tableName"}, name) {
			return false
		}
	}
	return slices.ContainsFunc(s.tools, func(other tool.Tool) bool {
		d, ok := known.fits(other)
		return ok && d.takesStatement() && d.speaksSQL()
	})
}

// takesStatement reports whether a tool's method needs a statement.
func (d declared) takesStatement() bool {
	return len(d.method.takes) > 0 && slices.Equal(d.method.takes[0].names, statements)
}

// speaksSQL: the word is in the name of the tool or of its parameter, or in what is
// said of them.
func (d declared) speaksSQL() bool {
	said := []string{tool.Snake(d.tool.ID.Name()), d.says()}
	for _, name := range statements {
		said = append(said, strings.ToLower(d.properties[name].Description))
	}
	return d.takes(text("sql")) || slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "sql") })
}

// dialect is what the nearest word says: the server's name, the tool's own words, or
// the tools beside it.
func (c *call) dialect() dialect {
	for _, said := range []string{strings.ToLower(c.server.name), tool.Snake(c.tool.tool.ID.Name()), c.tool.says()} {
		for _, d := range []struct {
			dialect dialect
			words   []string
		}{
			{postgres, []string{"postgres", "supabase", "pg_"}}, {mysql, []string{"mysql", "mariadb"}}, {sqlite, []string{"sqlite"}},
		} {
			if slices.ContainsFunc(d.words, func(w string) bool { return strings.Contains(said, w) }) {
				return d.dialect
			}
		}
	}
	switch {
	case c.server.has("read_query"):
		return sqlite
	case c.server.has("mysql_query"):
		return mysql
	}
	return postgres
}

// runStatement answers with rows, or with what a change is answered with. What does
// not begin like a statement is not answered.
func runStatement(c *call) any {
	s := readSQL(c.args.text(maxStatement, statements...))
	switch s.verb {
	case "select":
		return c.rows(s)
	case "insert", "update", "delete", "replace", "merge":
		if len(s.columns) > 0 { // returning
			s.count = s.affected(c)
			return c.rows(s)
		}
		return c.affected(s.affected(c), s.verb == "insert")
	case "create", "alter", "drop", "truncate", "begin", "commit", "rollback", "set", "grant", "revoke":
		return c.affected(0, false)
	}
	return nil
}

// affected is how a server answers what changes rows: the driver's own object for
// MySQL, a row with the number for SQLite, no rows for Postgres.
func (c *call) affected(rows int, inserted bool) any {
	switch c.dialect() {
	case mysql:
		id := 0
		if inserted {
			id = c.number(1, 10_000, "inserted", c.place)
		}
		return object{"fieldCount": 0, "affectedRows": rows, "insertId": id, "info": "", "serverStatus": 2, "warningStatus": 0, "changedRows": 0}
	case sqlite:
		return []any{object{"affected_rows": rows}}
	case postgres:
	}
	return []any{}
}

func createTable(c *call) any {
	if s := readSQL(c.args.text(maxStatement, statements...)); s.verb != "create" {
		return nil
	}
	return plain("Table created successfully")
}

// tables are those of the database.
var tables = []string{"users", "orders", "products"}

func listTables(c *call) any {
	out := []any{}
	for _, name := range tables {
		o := object{"name": name}
		if c.tool.declares("schema") || c.tool.declares("schemas") {
			o["schema"] = c.args.name("public", "schema")
		}
		out = append(out, o)
	}
	return out
}

// describeTable answers in the words of the database: PRAGMA table_info, DESCRIBE, or
// the columns of information_schema.
func describeTable(c *call) any {
	out := []any{}
	for i, column := range usualColumns {
		kind, key, primary := sqlType(kindOf(column)), "", 0
		if i == 0 {
			key, primary = "PRI", 1
		}
		switch c.dialect() {
		case mysql:
			out = append(out, object{"Field": column, "Type": kind, "Null": "NO", "Key": key, "Default": nil, "Extra": ""})
		case sqlite:
			out = append(out, object{"cid": i, "name": column, "type": strings.ToUpper(kind), "notnull": 1, "dflt_value": nil, "pk": primary})
		case postgres:
			out = append(out, object{"column_name": column, "data_type": kind, "is_nullable": "NO", "column_default": nil})
		}
	}
	return out
}
