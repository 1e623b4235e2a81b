package policy

import (
	"strings"
	"testing"

	"github.com/pml-run/pml/internal/tool"
)

var (
	reads    = tool.Annotations{ReadOnly: new(true)}
	adds     = tool.Annotations{ReadOnly: new(false), Destructive: new(false)}
	destroys = tool.Annotations{Destructive: new(true)}
)

// rules reads "deny *:x, ask a:b, always c:d".
func rules(text string) []Rule {
	var out []Rule
	for part := range strings.SplitSeq(text, ", ") {
		effect, pattern, ok := strings.Cut(part, " ")
		if !ok {
			continue
		}
		r := Rule{Pattern: pattern, Effect: Effect(effect), Origin: FromConfig}
		if effect == "always" {
			r.Effect, r.Origin = Allow, FromPerson
		}
		out = append(out, r)
	}
	return out
}

func TestDecide(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, rules string
		tool        tool.ID
		claims      tool.Annotations
		servers     map[string]Effect
		fallback    Default
		want        Effect
	}{
		{name: "reads", tool: "fs:read", claims: reads, want: Allow},
		{name: "adds", tool: "fs:add", claims: adds, want: Allow},
		{name: "destroys", tool: "fs:delete", claims: destroys, want: Ask},
		{name: "claims nothing", tool: "fs:x", want: Ask},
		{name: "default allow", tool: "fs:delete", claims: destroys, fallback: AlwaysAllow, want: Allow},
		{name: "default deny", tool: "fs:read", claims: reads, fallback: AlwaysDeny, want: Deny},
		{name: "default ask", tool: "fs:read", claims: reads, fallback: AlwaysAsk, want: Ask},
		{name: "deny before all", rules: "allow fs:*, ask fs:*, deny *:delete_*, always fs:delete_it", tool: "fs:delete_it", servers: map[string]Effect{"fs": Allow}, want: Deny},
		{name: "ask before allow", rules: "allow fs:*, ask *:w*", tool: "fs:write", want: Ask},
		{name: "allow before default", rules: "allow fs:*", tool: "fs:write", claims: destroys, want: Allow},
		{name: "always before ask", rules: "ask *, always fs:write", tool: "fs:write", want: Allow},
		{name: "always by a wide pattern is an allow", rules: "ask *, always fs:*", tool: "fs:write", want: Ask},
		{name: "a server's own", rules: "ask *", tool: "fs:write", servers: map[string]Effect{"fs": Allow}, want: Allow},
		{name: "another server's own", tool: "fs:read", claims: reads, servers: map[string]Effect{"git": Deny}, want: Allow},
		{name: "another spelling", rules: "deny *:delete_*", tool: "git:deleteBranch", claims: reads, want: Deny},
		{name: "another spelling of the server", rules: "deny my_server:*", tool: "my-server:x", claims: reads, want: Deny},
		{name: "a prefix is no whole name", rules: "deny fs:read", tool: "fs:read_all", claims: reads, want: Allow},
		{name: "in the middle", rules: "deny *:*file*", tool: "fs:read_file_now", claims: reads, want: Deny},
		{name: "a tool with a colon", rules: "deny a:b:c", tool: "a:b:c", claims: reads, want: Deny},
		{name: "a tool with a slash", rules: "deny a:*", tool: "a:b/c", claims: reads, want: Deny},
		{name: "brackets mean themselves", rules: "deny a:[bc]", tool: "a:b", claims: reads, want: Allow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := New(rules(tt.rules), tt.servers, tt.fallback)
			got := p.Decide(tool.Tool{ID: tt.tool, Annotations: tt.claims})
			if got.Effect != tt.want || got.Reason == "" {
				t.Errorf("got %+v, want %s", got, tt.want)
			}
		})
	}
}

func TestReasonsNameTheRule(t *testing.T) {
	t.Parallel()
	d := New(rules("deny *:delete_*"), nil, "").Decide(tool.Tool{ID: "fs:delete_all"})
	if d.Rule == nil || d.Rule.Pattern != "*:delete_*" || !strings.Contains(d.Reason, "*:delete_*") {
		t.Errorf("got %+v", d)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for pattern, ok := range map[string]bool{"*": true, "a:b": true, "a:*": true, "*:b_*": true, "a": false, "": false, ":": false, "a:": false, ":b": false} {
		if err := (Rule{Pattern: pattern, Effect: Ask}).Check(); (err == nil) != ok {
			t.Errorf("pattern %q: %v", pattern, err)
		}
	}
	if (Rule{Pattern: "*", Effect: "maybe"}).Check() == nil {
		t.Error("the effect maybe was taken")
	}
}

// FuzzMatches: no pattern or name breaks the match, and every tool matches itself.
func FuzzMatches(f *testing.F) {
	f.Add("*:delete_*", "fs:deleteFile")
	f.Add("a:[", `a:\`)
	f.Fuzz(func(t *testing.T, pattern, id string) {
		Rule{Pattern: pattern}.Matches(tool.ID(id))
		if server, name, ok := strings.Cut(id, ":"); ok && server != "" && name != "" && !strings.Contains(id, "*") && !(Rule{Pattern: id}).Matches(tool.ID(id)) {
			t.Errorf("%q does not match itself", id)
		}
	})
}
