package connector

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSQL(t *testing.T) {
	t.Parallel()
	postgres := declareAll(t, "Run a read-only SQL query", postgresTools)
	for _, test := range []struct {
		name, statement string
		want            []string
	}{
		{"columns", "select id, u.email as mail, price, is_open, created_at, born_on from users u", []string{"0.id=1", "2.id=3", "3=<nil>", "1.mail=person2@example.com", "0.created_at=" + cell(t, "created_at"), "0.born_on=" + cell(t, "born_on")}},
		{"kinds", "select user_uuid, homepage_url, metadata, total_price from t where user_uuid = 'x'", []string{"0.user_uuid=x", "1.homepage_url=https://example.com/2", "2.metadata=map[]"}},
		{"star", "SELECT * FROM users WHERE team_id = 7", []string{"0.id=1", "0.status=active", "0.team_id=7", "2.team_id=7"}},
		{"a limit", "select id from t limit 2", []string{"1.id=2", "2=<nil>"}},
		{"a limit of none", "select id from t limit 0", []string{"0=<nil>"}},
		{"a huge limit", "select id from t limit 1000000000", []string{"2.id=3", "3=<nil>"}},
		{"a limit that is a parameter", "select id from t limit $1", []string{"2.id=3"}},
		{"a page", "select id from t order by id limit 2 offset 2", []string{"0.id=3", "1=<nil>"}},
		{"past the end", "select id from t limit 2 offset 4", []string{"0=<nil>"}},
		{"mysql's limit", "select id from t limit 1, 1", []string{"0.id=2", "1=<nil>"}},
		{"fetch first", "select id from t fetch first 1 rows only", []string{"0.id=1", "1=<nil>"}},
		{"top", "select top 2 id from t", []string{"1.id=2", "2=<nil>"}},
		{"by its id", "select * from t where id = 42", []string{"0.id=42", "1=<nil>"}},
		{"by a text", "select name from t where name = 'it''s' and x is not null", []string{"0.name=it's"}},
		{"alternatives", "select id from t where id = 1 or id = 2", []string{"1.id=2"}},
		{"a number of rows", "select count(*) from t", []string{"1=<nil>"}},
		{"an aggregate in an expression", "select coalesce(sum(price), 0)::numeric as s from t", []string{"1=<nil>"}},
		{"groups", "select status, count(*) as n from t group by status", []string{"0.status=active", "2.status=active"}},
		{"a window", "select id, row_number() over (order by id) as rn, count(*) over () as c from t", []string{"2.rn=3"}},
		{"no table", "select 1 as one, 'x' as y, true as z, null as n", []string{"0.one=1", "0.y=x", "0.z=true", "0.n=<nil>", "1=<nil>"}},
		{"a subquery", "select a, (select max(b) from u where id = 9 limit 1) as top_b from t", []string{"2.a=mock a 3"}},
		{"with", "with recent as (select * from t limit 1) select r.name from recent r", []string{"0.name=mock name 1", "2.name=mock name 3"}},
		{"quotes and comments", "-- all\nselect \"Full Name\", /* from */ `x y` z from t; drop table t", []string{"0.Full Name=mock full name 1", "0.z=mock z 1"}},
		{"a cast", "select id::text from t", []string{"0.id=1"}},
		{"an expression", "select a || b from t", []string{"0.?column?=mock value 1"}},
		{"in brackets", "(select id from t)", []string{"0.id=1"}},
		{"union", "select id from a union select id from b", []string{"2.id=3"}},
		{"insert", "insert into t (a) values (1), (2)", []string{"0=<nil>"}},
		{"returning", "insert into t (name) values ('a'), ('b') returning id", []string{"0.id=1", "1.id=2", "2=<nil>"}},
		{"update returning", "update t set status = 'done' where id = 5 returning *", []string{"0.id=5", "0.status=done", "1=<nil>"}},
		{"create", "create table t (id int)", []string{"0=<nil>"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			v, by := ask(t, postgres, "query", string(mustEncode(t, map[string]string{"sql": test.statement})))
			if by != "sql" {
				t.Fatalf("answered by %q", by)
			}
			if _, ok := v.([]any); !ok {
				t.Fatalf("no rows: %v", v)
			}
			want(t, v, test.want...)
		})
	}
}

// TestValuesOfColumns: a column's name and what is done with it say of what type it is.
func TestValuesOfColumns(t *testing.T) {
	t.Parallel()
	postgres := declareAll(t, "Run a read-only SQL query", postgresTools)
	v, _ := ask(t, postgres, "query", `{"sql":"select count(*), avg(price), max(created_at), bool_or(is_open), 1 + price as sum from t"}`)
	for key, is := range map[string]func(any) bool{
		"count": isNumber, "avg": isNumber, "max": func(v any) bool { s, _ := v.(string); return strings.HasPrefix(s, "2026-") },
		"bool_or": func(v any) bool { _, ok := v.(bool); return ok }, "sum": isNumber,
	} {
		if got := at(v, 0, key); !is(got) {
			t.Errorf("%s is %v", key, got)
		}
	}

	v, _ = ask(t, postgres, "query", `{"sql":"select uuid, price from t"}`)
	if s, _ := at(v, 0, "uuid").(string); len(s) != 36 || s == at(v, 1, "uuid") || !isNumber(at(v, 0, "price")) {
		t.Errorf("got %v", v)
	}
}

// TestManners: each server answers in its own.
func TestManners(t *testing.T) {
	t.Parallel()
	mysql, sqlite := declareAll(t, "", mysqlTools), declareAll(t, "of SQL", sqliteTools)
	v, _ := ask(t, mysql, "mysql_query", `{"sql":"select count(*) from t"}`)
	if !isNumber(at(v, 0, "count(*)")) {
		t.Errorf("mysql %v", v)
	}
	v, _ = ask(t, mysql, "mysql_query", `{"sql":"insert into t values (1),(2),(3)"}`)
	want(t, v, "affectedRows=3", "changedRows=0")
	v, _ = ask(t, mysql, "describe_table", `{"table":"users"}`)
	want(t, v, "0.Field=id", "0.Type=integer", "0.Key=PRI", "1.Key=")

	v, _ = ask(t, sqlite, "read_query", `{"query":"SELECT name FROM users LIMIT 1"}`)
	want(t, v, "0.name=mock name 1", "1=<nil>")
	v, _ = ask(t, sqlite, "write_query", `{"query":"DELETE FROM users WHERE id = 1"}`)
	want(t, v, "0.affected_rows=1")
	v, _ = ask(t, sqlite, "create_table", `{"query":"CREATE TABLE t (id int)"}`)
	if v != "Table created successfully" {
		t.Errorf("create_table %v", v)
	}
	v, _ = ask(t, sqlite, "list_tables", `{}`)
	want(t, v, "0.name=users", "2.name=products")
	v, _ = ask(t, sqlite, "describe_table", `{"table_name":"users"}`)
	want(t, v, "0.name=id", "0.type=INTEGER", "0.pk=1", "3.name=created_at", "3.type=TIMESTAMP")
}

func isNumber(v any) bool { _, ok := v.(float64); return ok }

// cell is a column's value in the first row, after its form was looked at.
func cell(t *testing.T, name string) string {
	t.Helper()
	v, _ := ask(t, declareAll(t, "", postgresTools), "query", `{"sql":"select `+name+` from t"}`)
	s, _ := at(v, 0, name).(string)
	if !strings.HasPrefix(s, "2026-01-") {
		t.Errorf("%s is %v", name, s)
	}
	return s
}

func mustEncode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestColumnsKeepTheirOrder: programs turn rows into lines of a table.
func TestColumnsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	one := declare(t, postgresTools[0], "")
	a, _ := Generate(Call{Tool: one, Args: json.RawMessage(`{"sql":"select z, a, m, a from t limit 1"}`)})
	if want := `{\"z\":\"mock z 1\",\"m\":\"mock m 1\",\"a\":\"mock a 1\"}`; !strings.Contains(string(a.Result), want) {
		t.Errorf("%s has not %s", a.Result, want)
	}
}
