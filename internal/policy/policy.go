// Package policy decides whether a call of a tool may be made: allowed, denied, or
// asked of a person. It knows rules and what servers claim of their tools; who asks
// the person, and how, is not its business.
package policy

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
)

// Effect is what is decided about a call.
type Effect string

// The effects. A stricter one is never outvoted by a milder one of the same rank.
const (
	Allow Effect = "allow"
	Ask   Effect = "ask"
	Deny  Effect = "deny"
)

// Origin says who made a rule.
type Origin string

// The origins of rules.
const (
	FromConfig Origin = "config" // the configuration file
	FromPerson Origin = "person" // "always", or pml policy
)

// Rule gives the tools that a pattern matches an effect.
type Rule struct {
	ID int64 `json:"id,omitempty"` // 0 for a rule of the configuration
	// Pattern is "server:tool" with * for any run of characters in either part, or "*".
	Pattern   string `json:"pattern"`
	Effect    Effect `json:"effect"`
	Origin    Origin `json:"origin"`
	CreatedBy string `json:"created_by,omitempty"`
}

// Check reports what is wrong with a rule.
func (r Rule) Check() error {
	if !slices.Contains([]Effect{Allow, Ask, Deny}, r.Effect) {
		return fault.New(fault.InvalidInput, "the effect %q is none of allow, ask, deny", r.Effect)
	}
	server, name, two := strings.Cut(r.Pattern, ":")
	if r.Pattern != "*" && (!two || server == "" || name == "") {
		return fault.New(fault.InvalidInput, "%q is no pattern of tools", r.Pattern).
			WithHint("use server:tool, server:*, *:delete_* or *")
	}
	return nil
}

// exact reports whether the rule names one tool.
func (r Rule) exact() bool { return !strings.Contains(r.Pattern, "*") }

// Matches reports whether the rule is about a tool. Names in another spelling of
// the same words (deleteFile, delete-file) match too: whoever forbids delete_*
// means them all.
func (r Rule) Matches(id tool.ID) bool {
	if r.Pattern == "*" {
		return true
	}
	server, name, _ := strings.Cut(r.Pattern, ":")
	return matches(server, id.Server()) && matches(name, id.Name())
}

func matches(pattern, name string) bool {
	return glob(pattern, name) || glob(snake(pattern), tool.Snake(name))
}

// snake is tool.Snake of a pattern: of what stands between its stars.
func snake(pattern string) string {
	parts := strings.Split(pattern, "*")
	for i, p := range parts {
		lead, trail := "", ""
		if strings.HasPrefix(p, "_") {
			lead = "_"
		}
		if len(p) > 1 && strings.HasSuffix(p, "_") {
			trail = "_"
		}
		if p = strings.Trim(tool.Snake(p), "_"); p == "" {
			parts[i] = lead
			continue
		}
		parts[i] = lead + p + trail
	}
	return strings.Join(parts, "*")
}

// glob matches with * alone; every other character means itself.
func glob(pattern, name string) bool {
	var b strings.Builder
	for i := range len(pattern) {
		if strings.IndexByte(`?[]\`, pattern[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(pattern[i])
	}
	// path.Match stops at slashes, which names of tools may have.
	ok, err := path.Match(strings.ReplaceAll(b.String(), "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
	return ok && err == nil
}

// Default is what holds where no rule matches.
type Default string

// The defaults.
const (
	ByAnnotations Default = "annotations" // what changes nothing, or destroys nothing, is allowed; the rest asks
	AlwaysAllow   Default = "allow"
	AlwaysAsk     Default = "ask"
	AlwaysDeny    Default = "deny"
)

// Policy is a set of rules. It is not changed after it was made.
type Policy struct {
	rules    []Rule
	servers  map[string]Effect
	fallback Default
}

// New makes a policy. servers are the effects that were set for whole servers, in
// place of what other rules but deny say. An empty fallback means ByAnnotations.
// Rules must have been checked.
func New(rules []Rule, servers map[string]Effect, fallback Default) *Policy {
	p := &Policy{rules: slices.Clone(rules), servers: servers, fallback: cmp.Or(fallback, ByAnnotations)}
	rank := map[Effect]int{Deny: 0, Ask: 1, Allow: 2}
	slices.SortStableFunc(p.rules, func(a, b Rule) int { return cmp.Compare(rank[a.Effect], rank[b.Effect]) })
	return p
}

// Decision is what is decided about one tool, and why.
type Decision struct {
	Effect Effect `json:"effect"`
	// Reason is for a person to read.
	Reason string `json:"reason"`
	// Rule is the rule that decided; nil where none matched.
	Rule *Rule `json:"rule,omitempty"`
}

// Decide decides about a tool. A deny rule comes first; then what is set for the
// tool's server; then what a person has allowed for always, by the tool's own name;
// then ask rules, allow rules, and at last the default.
func (p *Policy) Decide(t tool.Tool) Decision {
	var first *Rule
	for i := range p.rules {
		r := &p.rules[i]
		if !r.Matches(t.ID) {
			continue
		}
		if r.Effect == Deny {
			return byRule(r)
		}
		if r.Effect == Allow && r.Origin == FromPerson && r.exact() {
			first = r
			break
		}
		if first == nil {
			first = r
		}
	}
	if e, ok := p.servers[t.ID.Server()]; ok {
		return Decision{Effect: e, Reason: fmt.Sprintf("approval of the server %s is %q", t.ID.Server(), e)}
	}
	if first != nil {
		return byRule(first)
	}
	return p.byDefault(t)
}

func byRule(r *Rule) Decision {
	who := "the configuration"
	if r.Origin == FromPerson {
		who = "a person"
	}
	return Decision{Effect: r.Effect, Rule: r, Reason: fmt.Sprintf("%s has the rule %s %s", who, r.Effect, r.Pattern)}
}

func (p *Policy) byDefault(t tool.Tool) Decision {
	if p.fallback != ByAnnotations {
		return Decision{Effect: Effect(p.fallback), Reason: fmt.Sprintf("no rule is about it, and the default is %q", p.fallback)}
	}
	switch a := t.Annotations; {
	case t.ReadOnly():
		return Decision{Effect: Allow, Reason: "its server says that it changes nothing"}
	case a.Destructive != nil && !*a.Destructive:
		return Decision{Effect: Allow, Reason: "its server says that it destroys nothing"}
	case a.Destructive != nil:
		return Decision{Effect: Ask, Reason: "its server says that it may destroy something"}
	}
	return Decision{Effect: Ask, Reason: "its server does not say what it may change"}
}
