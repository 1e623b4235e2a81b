package upstream

import (
	"slices"
	"strings"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
)

// State is what can be said about a server at this moment.
type State struct {
	Name            string   `json:"name"`
	State           string   `json:"state"`
	Error           string   `json:"error,omitempty"`
	Hint            string   `json:"hint,omitempty"`
	Transport       string   `json:"transport"`
	Tools           int      `json:"tools"`
	Restarts        int      `json:"restarts"`
	SkippedLines    int64    `json:"skipped_lines,omitempty"`
	ProtocolVersion string   `json:"protocol_version,omitempty"`
	Stderr          []string `json:"stderr,omitempty"`
}

// States describes all servers, in order of their names.
func (m *Manager) States() []State {
	m.mu.Lock()
	links := make([]*link, 0, len(m.links))
	counts := make(map[string]int, len(m.tools))
	for name, l := range m.links {
		links = append(links, l)
		counts[name] = len(m.tools[name])
	}
	m.mu.Unlock()
	out := make([]State, 0, len(links))
	for _, l := range links {
		s := l.describe()
		s.Tools = counts[l.name]
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b State) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// describe is the link's part of a State.
func (l *link) describe() State {
	resting := l.breaker.rest() > 0
	l.mu.Lock()
	defer l.mu.Unlock()
	s := State{
		Name:            l.name,
		State:           l.state,
		Transport:       l.config.Transport(),
		Restarts:        max(0, l.opened-1),
		SkippedLines:    l.noise.Load(),
		ProtocolVersion: l.protocol,
	}
	if resting && (l.state == StateReady || l.state == StateFailed) {
		s.State = StateOpenBreaker
	}
	stderr := l.stderr
	if l.session != nil {
		stderr = l.session.stderr()
	}
	s.Stderr = tailLines(stderr, 10)
	switch err := l.err.(type) { //nolint:errorlint // errors of a link are not wrapped
	case nil:
	case *fault.Error:
		s.Error, s.Hint = err.Message, err.Hint
	default:
		s.Error = err.Error()
	}
	return s
}

// remember is what the store keeps of the link.
func (l *link) remember() tool.ServerState {
	s := l.describe()
	out := tool.ServerState{
		Name: s.Name, ConfigHash: l.config.Hash(), State: s.State, LastError: s.Error,
		ProtocolVersion: s.ProtocolVersion,
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != nil {
		_, out.Instructions = l.session.protocol()
		out.LastSeen = l.m.now()
	}
	return out
}
