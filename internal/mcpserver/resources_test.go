package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pml-run/pml/internal/fault"
)

// shelf is a ResourceReader that says what it was asked for.
type shelf struct{ servers []string }

func (shelf) CapabilityResource(_ context.Context, name string) (json.RawMessage, error) {
	if name == "absent" {
		return nil, fault.New(fault.UnknownCapability, "there is no capability %q", name).WithHint("look for it")
	}
	return json.RawMessage(`{"name":"` + name + `"}`), nil
}

func (shelf) TraceResource(_ context.Context, id string) (json.RawMessage, error) {
	if id == "absent" {
		return nil, fault.New(fault.StorageUnavailable, "the database cannot be reached")
	}
	return json.RawMessage(`{"id":"` + id + `"}`), nil
}

func (shelf) TypesResource(_ context.Context, server string) (string, error) {
	if server == "absent" {
		return "", fault.New(fault.NotFound, "there is no server %q", server).WithHint("the servers are: fs")
	}
	return "// " + server, nil
}

func (s shelf) ReadyServers(context.Context) []string { return s.servers }

// reading connects a client to a server with resources, in memory.
func reading(t *testing.T, r ResourceReader) *mcp.ClientSession {
	t.Helper()
	return joined(t, New(backend{}, backend{}, backend{}, nil, Options{Resources: r}), nil)
}

func TestResourcesAreListed(t *testing.T) {
	c := reading(t, shelf{servers: []string{"fs", "my server"}})
	if r := c.InitializeResult().Capabilities.Resources; r == nil || r.ListChanged || r.Subscribe {
		t.Errorf("capability: %+v", r)
	}
	list, err := c.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var uris []string
	for _, r := range list.Resources {
		uris = append(uris, r.URI)
	}
	if want := []string{"pml://types/fs.d.ts", "pml://types/my%20server.d.ts"}; !slices.Equal(uris, want) {
		t.Errorf("resources: %s", uris)
	}
	templates, err := c.ListResourceTemplates(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	uris = nil
	for _, r := range templates.ResourceTemplates {
		uris = append(uris, r.URITemplate)
		if r.Description == "" || r.MIMEType == "" || r.Title == "" {
			t.Errorf("template %+v", r)
		}
	}
	slices.Sort(uris)
	if got := strings.Join(uris, " "); got != "pml://capability/{name} pml://trace/{workflow_id} pml://types/{server}.d.ts" {
		t.Errorf("templates: %s", got)
	}
}

func TestResourcesAreRead(t *testing.T) {
	c := reading(t, shelf{})
	for uri, want := range map[string][2]string{
		"pml://capability/tidy_up":     {`{"name":"tidy_up"}`, "application/json"},
		"pml://trace/0199":             {`{"id":"0199"}`, "application/json"},
		"pml://types/fs.d.ts":          {"// fs", "text/x-typescript"},
		"pml://types/my%20server.d.ts": {"// my server", "text/x-typescript"},
		"pml://types/a.b.d.ts":         {"// a.b", "text/x-typescript"},
	} {
		r, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || len(r.Contents) != 1 || r.Contents[0].Text != want[0] || r.Contents[0].MIMEType != want[1] || r.Contents[0].URI != uri {
			t.Errorf("%s: %+v, %v", uri, r, err)
		}
	}
}

func TestUnreadableResourcesSayWhy(t *testing.T) {
	c := reading(t, shelf{})
	for uri, want := range map[string]struct {
		code    int64
		message string
	}{
		"pml://capability/absent": {jsonrpc.CodeInvalidParams, `there is no capability "absent"; look for it`},
		"pml://types/absent.d.ts": {jsonrpc.CodeInvalidParams, "the servers are: fs"},
		"pml://trace/absent":      {jsonrpc.CodeInternalError, "database"},
		"pml://nothing/absent":    {jsonrpc.CodeInvalidParams, "not found"},
	} {
		_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		wire, ok := errors.AsType[*jsonrpc.Error](err)
		if !ok || wire.Code != want.code || !strings.Contains(wire.Message, want.message) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}
