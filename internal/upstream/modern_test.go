package upstream

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pml-run/pml/internal/config"
)

// sdkVar turns the test binary into a server of the newest revision over stdio.
const sdkVar = "PML_TEST_SDK"

// modernServer speaks 2026-07-28: its questions are multi-round-trip requests.
func modernServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "modern", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "deploy"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		if len(req.Params.InputResponses) == 0 {
			return &mcp.CallToolResult{
				InputRequests: mcp.InputRequestMap{"confirm": &mcp.ElicitParams{Message: "Really?"}},
				RequestState:  "state-1",
			}, nil, nil
		}
		answer, ok := req.Params.InputResponses["confirm"].(*mcp.ElicitResult)
		return nil, map[string]any{"deployed": ok && answer.Action == "accept", "state": req.Params.RequestState}, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "add"}, func(_ context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(s, &mcp.Tool{Name: "added"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, nil
		})
		return nil, map[string]int64{"big": 9007199254740993}, nil
	})
	return s
}

// serveModern runs the server on stdin and stdout until its end.
func serveModern() {
	if err := modernServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

func TestNewestProtocol(t *testing.T) {
	t.Parallel()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return modernServer() }, &mcp.StreamableHTTPOptions{Stateless: true})
	ts := httptest.NewServer(handler)
	t.Cleanup(ts.Close)
	for name, c := range map[string]config.Server{
		"stdio": {Command: os.Args[0], Env: map[string]config.Secret{sdkVar: "1"}},
		"http":  {URL: ts.URL},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := start(t, c, func(o *Options) {
				o.Elicit = func(_ context.Context, _ string, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: map[bool]string{true: "accept", false: "decline"}[p.Message == "Really?"]}, nil
				}
			})
			if got := m.States()[0].ProtocolVersion; got != "2026-07-28" {
				t.Errorf("protocol %s", got)
			}
			raw, err := call(t, m, "s:deploy", `{}`)
			if err != nil || !strings.Contains(raw, `"deployed":true`) || !strings.Contains(raw, "state-1") {
				t.Errorf("%s, %v", raw, err)
			}
			raw, err = call(t, m, "s:add", `{}`)
			if err != nil || !strings.Contains(raw, `9007199254740993`) {
				t.Errorf("%s, %v", raw, err)
			}
		})
	}
}

// On the newest revision a changed list is announced on a subscription.
func TestListChangedOnNewestProtocol(t *testing.T) {
	t.Parallel()
	m := start(t, config.Server{Command: os.Args[0], Env: map[string]config.Secret{sdkVar: "1"}})
	changed := make(chan struct{}, 8)
	m.OnChange(func(c Change) {
		if len(c.New) == 1 && c.New[0] == "s:added" {
			changed <- struct{}{}
		}
	})
	if _, err := call(t, m, "s:add", `{}`); err != nil {
		t.Fatal(err)
	}
	<-changed
}
