package config

import (
	"fmt"
	"slices"
	"strings"
)

// Lookup finds a variable; os.LookupEnv is one.
type Lookup func(name string) (value string, ok bool)

// expander replaces ${VAR} and ${VAR:-default}, and collects what is unset.
type expander struct {
	lookup  Lookup
	missing []string
}

// text expands one string. An unset or empty variable takes its default; one
// without a default must be set. What is no variable stays as it is.
func (e *expander) text(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		body, after, closed := strings.Cut(rest, "}")
		name, def, hasDefault := strings.Cut(body, ":-")
		if !closed || !isVariable(name) {
			b.WriteString("${")
			s = rest
			continue
		}
		value, ok := e.lookup(name)
		switch {
		case hasDefault && value == "":
			value = def
		case !ok && !slices.Contains(e.missing, name):
			e.missing = append(e.missing, name)
		}
		b.WriteString(value)
		s = after
	}
}

func isVariable(name string) bool {
	for i, c := range name {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// server expands an entry. Unset variables make it unusable, and it alone.
func (e *expander) server(s *Server) {
	s.written = &written{command: s.Command, url: s.URL, cwd: s.Cwd, args: slices.Clone(s.Args)}
	s.Command, s.URL, s.Cwd = e.text(s.Command), e.text(s.URL), e.text(s.Cwd)
	for i := range s.Args {
		s.Args[i] = e.text(s.Args[i])
	}
	for name, v := range s.Env {
		s.Env[name] = Secret(e.text(v.Reveal()))
	}
	for name, v := range s.Headers {
		s.Headers[name] = Secret(e.text(v.Reveal()))
	}
	if len(e.missing) > 0 && s.Problem == "" {
		slices.Sort(e.missing)
		s.Problem = unset(e.missing)
	}
}

func unset(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("the variable %s is not set; set it, or write ${%s:-default}", names[0], names[0])
	}
	return fmt.Sprintf("the variables %s are not set; set them, or write ${NAME:-default}", strings.Join(names, ", "))
}
