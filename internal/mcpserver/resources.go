package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pml-run/pml/internal/fault"
)

// ResourceReader gives what clients may read as resources. What is not there is a
// fault.NotFound or a fault.UnknownCapability.
type ResourceReader interface {
	// CapabilityResource describes a capability: JSON.
	CapabilityResource(ctx context.Context, name string) (json.RawMessage, error)
	// TraceResource tells what a run did: JSON.
	TraceResource(ctx context.Context, workflowID string) (json.RawMessage, error)
	// TypesResource declares the tools of a server: TypeScript.
	TypesResource(ctx context.Context, server string) (string, error)
	// ReadyServers are the names of the servers that have declarations now. It does not
	// wait for the others.
	ReadyServers(ctx context.Context) []string
}

// The parts of a resource's address: pml://kind/name.
const (
	resourceScheme = "pml"
	capabilityKind = "capability"
	traceKind      = "trace"
	typesKind      = "types"
	typesSuffix    = ".d.ts"

	jsonType       = "application/json"
	typeScriptType = "text/x-typescript"
)

// capabilities are what the server says it can do. None of its lists tells of changes.
func capabilities(o Options) *mcp.ServerCapabilities {
	c := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Logging: &mcp.LoggingCapabilities{}}
	if o.Resources != nil {
		c.Resources = &mcp.ResourceCapabilities{}
	}
	return c
}

// addResources makes the server offer resources; a nil reader has none. Declarations
// are listed while their servers are ready; capabilities and traces are too many to
// be listed, and are found through their templates.
func (s *Server) addResources(reader ResourceReader) {
	if reader == nil {
		return
	}
	read := func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		text, err := readResource(ctx, reader, req.Params.URI)
		if err != nil {
			return nil, resourceError(req.Params.URI, err)
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: text}}}, nil
	}
	for _, t := range []*mcp.ResourceTemplate{
		{
			Name: "capability", Title: "A capability", URITemplate: "pml://capability/{name}", MIMEType: jsonType,
			Description: "A learnt program: its signature, parameters, source, structure and statistics.",
		},
		{
			Name: "trace", Title: "What a run did", URITemplate: "pml://trace/{workflow_id}", MIMEType: jsonType,
			Description: "The path of a run, its decisions and its calls; large results are read with pml_get_task_result.",
		},
		{
			Name: "types", Title: "The tools of a server", URITemplate: "pml://types/{server}.d.ts", MIMEType: typeScriptType,
			Description: "TypeScript declarations of a server's tools, as programs call them.",
		},
	} {
		s.mcp.AddResourceTemplate(t, read)
	}
	s.mcp.AddReceivingMiddleware(listTypes(reader))
}

// listTypes answers resources/list with the declarations of the servers that are ready.
func listTypes(reader ResourceReader) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			list, ok := result.(*mcp.ListResourcesResult)
			if err != nil || !ok {
				return result, err
			}
			for _, server := range reader.ReadyServers(ctx) {
				list.Resources = append(list.Resources, &mcp.Resource{
					Name: server + typesSuffix, Title: "The tools of " + server, MIMEType: typeScriptType,
					URI: resourceScheme + "://" + typesKind + "/" + url.PathEscape(server) + typesSuffix,
				})
			}
			return list, nil
		}
	}
}

// readResource reads the resource at an address.
func readResource(ctx context.Context, reader ResourceReader, address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fault.New(fault.InvalidInput, "the address cannot be read: %v", err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	switch u.Host {
	case capabilityKind:
		text, err := reader.CapabilityResource(ctx, name)
		return string(text), err
	case traceKind:
		text, err := reader.TraceResource(ctx, name)
		return string(text), err
	default:
		return reader.TypesResource(ctx, strings.TrimSuffix(name, typesSuffix))
	}
}

// resourceError is an error as the protocol has it: with the code for what is not
// there, and what a person or a model needs to know of it.
func resourceError(address string, err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	code := int64(jsonrpc.CodeInternalError)
	if f.Code == fault.NotFound || f.Code == fault.UnknownCapability || f.Code == fault.InvalidInput {
		code = jsonrpc.CodeInvalidParams // the protocol's code for a resource that is not there
	}
	message := f.Message
	if f.Hint != "" {
		message += "; " + f.Hint
	}
	return &jsonrpc.Error{Code: code, Message: message, Data: encode(map[string]any{"uri": address, "code": f.Code})}
}
