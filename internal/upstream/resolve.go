package upstream

import (
	"context"
	"time"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
)

// resolveWait is shorter than clients wait for an answer.
const resolveWait = 40 * time.Second

func errStillStarting(server string) error {
	return fault.New(fault.UpstreamUnavailable, "server %q is still starting", server).
		WithHint("a first start may have to fetch the server's package: try again in a minute, and look at pml servers")
}

// Resolve finds the tool that a program means by mcp.server.name. A name that the
// catalog lacks may belong to a server that has not listed its tools yet, because
// it is starting for the first time or is lazy: Resolve then waits for that server
// (one attempt to connect, at most resolveWait) before it decides. The error is a
// *fault.Error: unknown_tool with the nearest names, or why the server is not there.
func (m *Manager) Resolve(ctx context.Context, server, name string) (tool.Tool, error) {
	t, err := m.Catalog().Resolve(server, name)
	if err == nil {
		return t, nil
	}
	l := m.unlisted(server)
	if l == nil {
		return tool.Tool{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, resolveWait, errStillStarting(l.name))
	defer cancel()
	if _, err := l.acquire(ctx); err != nil {
		return tool.Tool{}, err
	}
	return m.Catalog().Resolve(server, name)
}

// unlisted finds the server of that name if none of its tools is known.
func (m *Manager) unlisted(server string) *link {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, l := range m.links {
		if (name == server || tool.Snake(name) == tool.Snake(server)) && len(m.tools[name]) == 0 {
			return l
		}
	}
	return nil
}
