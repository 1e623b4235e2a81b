package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pml-run/pml/internal/execute"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/search"
)

// progressEvery is the longest silence towards a client that asked for progress.
const progressEvery = 10 * time.Second

func (s *Server) execute(ctx context.Context, req *mcp.CallToolRequest) (result *mcp.CallToolResult, _ error) {
	defer s.recovered(ctx, &result)
	var in execute.Request
	if err := decode(req.Params.Arguments, &in); err != nil {
		return failure(&execute.Answer{Status: execute.StatusFailed, Error: err}, err), nil
	}
	in.Client = client(req.Session)
	reporter := newReporter(ctx, req)
	defer reporter.stop()
	in.Progress, in.Log = reporter.report, reporter.log
	var answer *execute.Answer
	if req.Params.RequestState != "" {
		answer = s.returned(ctx, req, in)
	} else {
		answer = s.executor.Execute(ctx, in)
	}
	answer, question := s.askPerson(ctx, req, in, answer)
	if question != nil {
		return question, nil
	}
	if answer.Error != nil {
		return failure(answer, answer.Error), nil
	}
	return success(answer), nil
}

func (s *Server) taskResult(ctx context.Context, req *mcp.CallToolRequest) (result *mcp.CallToolResult, _ error) {
	defer s.recovered(ctx, &result)
	var in execute.ResultRequest
	if err := decode(req.Params.Arguments, &in); err != nil {
		return failure(&execute.ResultAnswer{Status: execute.StatusFailed, Error: err}, err), nil
	}
	answer := s.results.Get(ctx, in)
	if answer.Error != nil && answer.Status == execute.StatusFailed && answer.Content == "" {
		return failure(answer, answer.Error), nil
	}
	return success(answer), nil
}

func (s *Server) discover(ctx context.Context, req *mcp.CallToolRequest) (result *mcp.CallToolResult, _ error) {
	defer s.recovered(ctx, &result)
	var in search.Request
	if err := decode(req.Params.Arguments, &in); err != nil {
		return failure(map[string]any{"error": err, "results": []any{}, "total": 0}, err), nil
	}
	answer, err := s.finder.Discover(ctx, in)
	if err != nil {
		return failure(map[string]any{"error": err, "results": []any{}, "total": 0}, err), nil
	}
	return success(answer), nil
}

// recovered turns a panic of ours into an answer; the stack goes to the log.
func (s *Server) recovered(ctx context.Context, result **mcp.CallToolResult) {
	p := recover()
	if p == nil {
		return
	}
	s.logger.ErrorContext(ctx, "panic in a tool handler", "panic", p, "stack", string(debug.Stack()))
	f := fault.New(fault.Internal, "an internal error ended the request").WithHint("the gateway's log has the detail")
	*result = failure(map[string]any{"status": "failed", "error": f}, f)
}

// success answers with the JSON twice: clients show a model either the
// structured content or the text, never both.
func success(answer any) *mcp.CallToolResult {
	b := encode(answer)
	return &mcp.CallToolResult{StructuredContent: json.RawMessage(b), Content: []mcp.Content{&mcp.TextContent{Text: string(b)}}}
}

// failure answers with text for the model, which sees nothing else of an error,
// and the same facts as structured content for programs.
func failure(answer any, err error) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		IsError: true, StructuredContent: json.RawMessage(encode(answer)),
		Content: []mcp.Content{&mcp.TextContent{Text: readable(answer, err)}},
	}
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return bytes.TrimSpace(b.Bytes())
}

// client describes the other side of the session.
func client(session *mcp.ServerSession) execute.Client {
	c := execute.Client{Session: session.ID()}
	if p := session.InitializeParams(); p != nil {
		c.Protocol = p.ProtocolVersion
		if p.ClientInfo != nil {
			c.Name, c.Version = p.ClientInfo.Name, p.ClientInfo.Version
		}
	}
	return c
}

// reporter sends progress notifications to a client that gave a token: what the
// program says, and a sign of life where it says nothing.
type reporter struct {
	ctx     context.Context
	session *mcp.ServerSession
	token   any
	started time.Time
	logs    chan string
	quit    chan struct{}
	wg      sync.WaitGroup

	mu   sync.Mutex
	last float64
}

func newReporter(ctx context.Context, req *mcp.CallToolRequest) *reporter {
	r := &reporter{
		ctx: ctx, session: req.Session, token: req.Params.GetProgressToken(), started: time.Now(),
		logs: make(chan string, logsAhead), quit: make(chan struct{}),
	}
	r.wg.Go(r.passLogs)
	if r.token != nil {
		r.wg.Go(r.tick)
	}
	return r
}

// logsAhead is how many entries may wait for a slow client; more are left out, as
// the answer has them all.
const logsAhead = 256

// log leaves an entry of the program's console for the client.
func (r *reporter) log(text string) {
	select {
	case r.logs <- text:
	default:
	}
}

// passLogs sends the entries to a client that has asked for messages, to the last
// one before the answer.
func (r *reporter) passLogs() {
	for {
		select {
		case text := <-r.logs:
			r.tell(text)
			continue
		default:
		}
		select {
		case text := <-r.logs:
			r.tell(text)
		case <-r.quit:
			if len(r.logs) == 0 {
				return
			}
		}
	}
}

func (r *reporter) tell(text string) {
	level, text := levelOf(text)
	// A client that cannot be told reads it in the answer.
	_ = r.session.Log(r.ctx, &mcp.LoggingMessageParams{Level: level, Logger: "program", Data: text})
}

// levelOf reads the mark that entries have which are not information.
func levelOf(text string) (mcp.LoggingLevel, string) {
	for mark, level := range map[string]mcp.LoggingLevel{"[error] ": "error", "[warn] ": "warning"} {
		if rest, ok := strings.CutPrefix(text, mark); ok {
			return level, rest
		}
	}
	return "info", text
}

func (r *reporter) stop() {
	close(r.quit)
	r.wg.Wait()
}

func (r *reporter) tick() {
	t := time.NewTicker(progressEvery)
	defer t.Stop()
	for {
		select {
		case <-r.quit:
			return
		case <-r.ctx.Done():
			return
		case <-t.C:
			r.report(0, 0, fmt.Sprintf("running for %d s", int(time.Since(r.started).Seconds())))
		}
	}
}

// report passes one statement on. The protocol wants a value that only grows: a
// statement that does not advance is sent with a value slightly above the last.
func (r *reporter) report(done, total float64, message string) {
	if r.token == nil {
		return
	}
	r.mu.Lock()
	if done <= r.last {
		done = r.last + 0.001
	}
	r.last = done
	r.mu.Unlock()
	// A client that cannot be told of progress will learn the result all the same.
	_ = r.session.NotifyProgress(r.ctx, &mcp.ProgressNotificationParams{
		ProgressToken: r.token, Progress: done, Total: total, Message: message,
	})
}

// Call carries out one of the three tools without a protocol around it: what a
// client would get as structured content.
func (s *Server) Call(ctx context.Context, name string, args json.RawMessage) (any, error) {
	switch name {
	case "pml_execute":
		var in execute.Request
		if err := decode(args, &in); err != nil {
			return nil, err
		}
		in.Client = execute.Client{Name: "pml", Session: "local"}
		return s.executor.Execute(ctx, in), nil
	case "pml_get_task_result":
		var in execute.ResultRequest
		if err := decode(args, &in); err != nil {
			return nil, err
		}
		return s.results.Get(ctx, in), nil
	case "pml_discover":
		var in search.Request
		if err := decode(args, &in); err != nil {
			return nil, err
		}
		return s.finder.Discover(ctx, in)
	}
	return nil, fault.New(fault.NotFound, "there is no tool %q", name)
}
