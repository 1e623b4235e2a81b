package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/search"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// backend answers what its fields say.
type backend struct {
	execute  func(ctx context.Context, req execute.Request) *execute.Answer
	get      func(req execute.ResultRequest) *execute.ResultAnswer
	discover func(req search.Request) (*search.Answer, error)
}

func (b backend) Execute(ctx context.Context, req execute.Request) *execute.Answer {
	return b.execute(ctx, req)
}

func (b backend) Get(_ context.Context, req execute.ResultRequest) *execute.ResultAnswer {
	return b.get(req)
}

func (b backend) Discover(_ context.Context, req search.Request) (*search.Answer, error) {
	return b.discover(req)
}

// session connects a client to a server over that backend, in memory.
func session(t *testing.T, b backend, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	return joined(t, New(b, b, b, nil, Options{Version: "test"}), o)
}

// joined connects a client to a server, in memory.
func joined(t *testing.T, s *Server, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	mine, theirs := mcp.NewInMemoryTransports()
	server, err := s.mcp.Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "7"}, o).Connect(t.Context(), mine, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Wait()
	})
	return client
}

func call(t *testing.T, s *mcp.ClientSession, name string, args string) *mcp.CallToolResult {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	c, ok := r.Content[0].(*mcp.TextContent)
	if !ok || len(r.Content) != 1 {
		t.Fatalf("content is %v", r.Content)
	}
	return c.Text
}

func TestToolsAreWhatClientsNeed(t *testing.T) {
	s := session(t, backend{}, nil)
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if n := len(tool.Description); n < 100 || n >= 1500 {
			t.Errorf("%s: description has %d characters", tool.Name, n)
		}
		if !strings.Contains(tool.Description, "Example:") {
			t.Errorf("%s: no example", tool.Name)
		}
		if tool.Title == "" || tool.OutputSchema == nil || tool.Meta["anthropic/alwaysLoad"] != true {
			t.Errorf("%s: %+v", tool.Name, tool)
		}
		readOnly := tool.Name != "pml_execute"
		if tool.Annotations.ReadOnlyHint != readOnly {
			t.Errorf("%s: read only is %v", tool.Name, tool.Annotations.ReadOnlyHint)
		}
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "pml_discover pml_execute pml_get_task_result" {
		t.Errorf("tools: %s", got)
	}
	if n := len(s.InitializeResult().Instructions); n == 0 || n > 4000 {
		t.Errorf("instructions have %d characters", n)
	}
}

func TestSuccessIsTheSameJSONTwice(t *testing.T) {
	s := session(t, backend{execute: func(_ context.Context, req execute.Request) *execute.Answer {
		if req.Client.Name != "test" || req.Client.Version != "7" || string(req.Args) != `{"a":9007199254740993}` {
			t.Errorf("request: %+v", req)
		}
		return &execute.Answer{Status: execute.StatusSuccess, Result: json.RawMessage(`{"html":"<b>","n":9007199254740993}`)}
	}}, nil)
	r := call(t, s, "pml_execute", `{"intent":"x","implementation":{"type":"code","code":"1"},"args":{"a":9007199254740993}}`)
	if got := text(t, r); r.IsError || got != `{"status":"success","result":{"html":"<b>","n":9007199254740993}}` {
		t.Errorf("text: %s", got)
	}
	if r.StructuredContent == nil {
		t.Error("no structured content")
	}
}

func TestFailureIsReadableText(t *testing.T) {
	f := fault.New(fault.RuntimeError, "boom").WithHint("mend it")
	f.Line, f.Column, f.Source = 2, 7, "  throw new Error('boom')"
	s := session(t, backend{execute: func(context.Context, execute.Request) *execute.Answer {
		return &execute.Answer{
			Status: execute.StatusFailed, WorkflowID: "id", Error: f, Logs: []string{"was here"},
			ToolFailures: []execute.ToolFailure{{Tool: "fs:read", NodeID: "n1", Error: "no file"}},
		}
	}}, nil)
	r := call(t, s, "pml_execute", `{"intent":"x"}`)
	const want = "runtime_error: boom\nat line 2, column 7: throw new Error('boom')\nhint: mend it\n" +
		"tool failed: fs:read at n1: no file\nlog: was here\nworkflow_id: id"
	if got := text(t, r); !r.IsError || got != want {
		t.Errorf("got:\n%s", got)
	}
}

func TestBadArgumentsNameTheMistake(t *testing.T) {
	s := session(t, backend{}, nil)
	for name, c := range map[string]struct{ tool, args, want string }{
		"misspelt option": {"pml_execute", `{"intent":"x","optoins":{}}`, `unknown field "optoins"`},
		"what there is":   {"pml_execute", `{"intent":"x","implementation":{"type":"dag","tasks":[]}}`, "unknown field \"implementation.tasks\"\nhint: there are: code, dagStructure, name, type, version"},
		"wrong type":      {"pml_execute", `{"intent":5}`, "intent is a JSON number; want a string"},
		"deep":            {"pml_execute", `{"intent":"x","options":{"timeout_ms":1.5}}`, "options.timeout_ms is a JSON number 1.5; want a whole number"},
		"own reader":      {"pml_execute", `{"intent":"x","options":{"dry_run":{"raeds":"real"}}}`, "raeds"},
		"not an object":   {"pml_get_task_result", `[]`, "cannot be read"},
		"wrong limit":     {"pml_discover", `{"limit":"many"}`, "limit is a JSON string; want a whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			r := call(t, s, c.tool, c.args)
			if got := text(t, r); !r.IsError || !strings.HasPrefix(got, "invalid_input: ") || !strings.Contains(got, c.want) {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestAPanicIsAnAnswer(t *testing.T) {
	s := session(t, backend{execute: func(context.Context, execute.Request) *execute.Answer { panic("bug") }}, nil)
	if got := text(t, call(t, s, "pml_execute", `{"intent":"x"}`)); !strings.HasPrefix(got, "internal: ") || strings.Contains(got, "bug") {
		t.Errorf("got %s", got)
	}
}

func TestLogsReachAClientThatAskedForThem(t *testing.T) {
	got := make(chan *mcp.LoggingMessageParams, 8)
	s := session(t, backend{execute: func(_ context.Context, req execute.Request) *execute.Answer {
		req.Log("one")
		req.Log("[warn] two")
		return &execute.Answer{Status: execute.StatusSuccess}
	}}, &mcp.ClientOptions{LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { got <- r.Params }})
	_, err := s.CallTool(t.Context(), &mcp.CallToolParams{
		Meta: mcp.Meta{mcp.MetaKeyLogLevel: "info"}, Name: "pml_execute",
		Arguments: json.RawMessage(`{"intent":"x","implementation":{"type":"code","code":"1"}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"info one", "warning two"} {
		if p := <-got; fmt.Sprint(p.Level, " ", p.Data) != want {
			t.Errorf("got %s %v, want %s", p.Level, p.Data, want)
		}
	}
}

func TestProgressReachesTheClientAndOnlyGrows(t *testing.T) {
	reports := make(chan *mcp.ProgressNotificationParams, 8)
	s := session(t, backend{execute: func(_ context.Context, req execute.Request) *execute.Answer {
		req.Progress(1, 3, "one")
		req.Progress(1, 3, "still one")
		req.Progress(2, 3, "two")
		return &execute.Answer{Status: execute.StatusSuccess}
	}}, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		reports <- r.Params
	}})
	params := &mcp.CallToolParams{Name: "pml_execute", Arguments: json.RawMessage(`{"intent":"x"}`)}
	params.SetProgressToken("token")
	if _, err := s.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	last := 0.0
	for _, want := range []string{"one", "still one", "two"} {
		p := <-reports
		if p.Message != want || p.Progress <= last {
			t.Errorf("got %+v after %v", p, last)
		}
		last = p.Progress
	}
}

func TestCancellationReachesTheRun(t *testing.T) {
	started, ended := make(chan struct{}), make(chan struct{})
	s := session(t, backend{execute: func(ctx context.Context, _ execute.Request) *execute.Answer {
		close(started)
		<-ctx.Done()
		close(ended)
		return &execute.Answer{Status: execute.StatusFailed, Error: fault.New(fault.Cancelled, "gone")}
	}}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	if _, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "pml_execute", Arguments: json.RawMessage(`{"intent":"x"}`)}); err == nil {
		t.Error("the call was not cancelled")
	}
	<-ended
}

func TestHTTPServesBothEras(t *testing.T) {
	b := backend{get: func(req execute.ResultRequest) *execute.ResultAnswer {
		return &execute.ResultAnswer{Status: "succeeded", Content: req.WorkflowID}
	}}
	h := httptest.NewServer(New(b, b, b, nil, Options{}).Handler())
	defer h.Close()
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			client := mcp.NewClient(&mcp.Implementation{Name: "t"}, nil)
			s, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: h.URL}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			if got := s.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("negotiated %s", got)
			}
			if got := text(t, call(t, s, "pml_get_task_result", `{"workflow_id":"w"}`)); !strings.Contains(got, `"content":"w"`) {
				t.Errorf("got %s", got)
			}
		})
	}
	http.DefaultClient.CloseIdleConnections()
}
