package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pml-run/pml/internal/config"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/supervise"
	"github.com/pml-run/pml/internal/tool"
)

// maxPages bounds a tools/list whose cursors never end.
const maxPages = 200

// legacyProtocol is the newest revision with an initialize handshake.
const legacyProtocol = "2025-11-25"

// Progress is called with what a server reports about a call in flight, one
// report at a time and never after the call has returned. A total of zero is
// unknown.
type Progress func(done, total float64, message string)

// sessionOptions is what one session needs to know of its server and manager.
type sessionOptions struct {
	name      string
	config    config.Server
	environ   []string // of a child, before the server's own
	version   string
	lineLimit int
	patient   time.Duration
	roots     []string
	watchdog  *supervise.Watchdog
	log       *slog.Logger
	legacy    bool         // skip server/discover
	heard     *atomic.Bool // set when the server has said anything in JSON-RPC
	elicit    ElicitFunc
	skipped   func(sample string)
	changed   func() // the server says that its list of tools has changed
}

// session is one connection to one server, from handshake to end. It never
// reconnects; its server makes a new one.
type session struct {
	opts   sessionOptions
	calls  captures
	client *mcp.Client
	remote *mcp.ClientSession
	conn   mcp.Connection
	stdio  *stdioTransport // nil over HTTP
	http   *rawTransport   // nil over stdio

	done   chan struct{} // closed when the connection has ended
	tokens atomic.Int64

	mu       sync.Mutex
	progress map[string]*listener
	endErr   error
}

// listener hands progress to a call's caller until the call has returned. Its
// mutex is held while the caller listens: that is what makes the end certain.
type listener struct {
	mu sync.Mutex
	f  Progress
}

func (l *listener) tell(p *mcp.ProgressNotificationParams) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil {
		l.f(p.Progress, p.Total, p.Message)
	}
}

func (l *listener) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.f = nil
}

// open connects and shakes hands, within ctx. On failure nothing of it is left.
func open(ctx context.Context, opts sessionOptions) (*session, error) {
	s := &session{opts: opts, done: make(chan struct{}), progress: map[string]*listener{}}
	s.client = s.newClient()
	transport, err := s.transport()
	if err != nil {
		return nil, err
	}
	kept := &keepConn{inner: transport}
	var so *mcp.ClientSessionOptions
	if opts.legacy {
		so = &mcp.ClientSessionOptions{ProtocolVersion: legacyProtocol}
	}
	s.remote, err = s.client.Connect(ctx, kept, so)
	s.conn = kept.conn
	if err != nil {
		err = s.diagnoseStart(ctx, err)
		if s.conn != nil {
			_ = s.conn.Close()
		}
		s.release()
		return nil, err
	}
	go func() { // pairs with <-done in close
		err := s.remote.Wait()
		s.mu.Lock()
		s.endErr = err
		s.mu.Unlock()
		close(s.done)
	}()
	return s, nil
}

// keepConn is a transport that remembers its connection: the SDK's own Close
// waits for calls in flight, ours must not.
type keepConn struct {
	inner mcp.Transport
	conn  mcp.Connection
}

func (k *keepConn) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := k.inner.Connect(ctx)
	k.conn = conn
	return conn, err
}

func (s *session) transport() (mcp.Transport, error) {
	if s.opts.config.Transport() != config.TypeStdio {
		return s.httpTransport()
	}
	process, err := childOptions(s.opts)
	if err != nil {
		return nil, err
	}
	s.stdio = &stdioTransport{
		process: process,
		limit:   s.opts.lineLimit,
		patient: s.opts.patient,
		skipped: s.opts.skipped,
		calls:   &s.calls,
		heard:   s.opts.heard,
	}
	return s.stdio, nil
}

// newClient makes the SDK's client. It answers for roots and elicitation, and by
// not naming the capability it declines sampling.
func (s *session) newClient() *mcp.Client {
	o := &mcp.ClientOptions{
		Logger:                 slog.New(slog.DiscardHandler), // what is of use is said by this package
		Capabilities:           &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{}},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { s.opts.changed() },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			s.report(r.Params)
		},
	}
	if s.opts.elicit != nil {
		o.ElicitationHandler = func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return s.opts.elicit(ctx, s.opts.name, r.Params)
		}
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "pml", Title: "PML", Version: s.opts.version}, o)
	for _, r := range s.opts.roots {
		c.AddRoots(rootOf(r))
	}
	return c
}

// report hands a progress notification to the call it belongs to.
func (s *session) report(p *mcp.ProgressNotificationParams) {
	token, ok := p.ProgressToken.(string)
	if !ok {
		return
	}
	s.mu.Lock()
	l := s.progress[token]
	s.mu.Unlock()
	if l != nil {
		l.tell(p)
	}
}

// listen hands the progress of a call to f; after the returned function has
// returned, f is not called any more.
func (s *session) listen(token string, f Progress) (stop func()) {
	l := &listener{f: f}
	s.mu.Lock()
	s.progress[token] = l
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		delete(s.progress, token)
		s.mu.Unlock()
		l.close()
	}
}

// errNotSent is for a call that met a session at its end and was never sent.
var errNotSent = errors.New("the session has ended")

// call sends one tools/call and returns the bytes of its result.
func (s *session) call(ctx context.Context, name string, args json.RawMessage, onProgress Progress) (json.RawMessage, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	params := &mcp.CallToolParams{Name: name, Arguments: args}
	if onProgress != nil {
		token := "p" + strconv.FormatInt(s.tokens.Add(1), 10)
		params.SetProgressToken(token)
		defer s.listen(token, onProgress)()
	}
	kept := &capture{replace: emptyResult}
	defer s.calls.forget(kept)
	_, err := s.remote.CallTool(withCapture(ctx, kept), params)
	if raw := kept.result(); raw != nil {
		return raw, nil
	}
	if errors.Is(err, mcp.ErrConnectionClosed) && !kept.wasSent() {
		return nil, errNotSent
	}
	if err == nil {
		err = errors.New("the answer was lost") // cannot happen: an answer passes the transport
	}
	return nil, err
}

// list asks for all pages of tools. The SDK's reading of them does not matter.
func (s *session) list(ctx context.Context) ([]tool.Tool, []tool.Problem, error) {
	var raw []json.RawMessage
	cursor := ""
	seen := map[string]bool{}
	for range maxPages {
		page, err := s.page(ctx, cursor)
		if err != nil {
			return nil, nil, err
		}
		raw = append(raw, page.Tools...)
		if page.NextCursor == "" || seen[page.NextCursor] {
			break
		}
		cursor = page.NextCursor
		seen[cursor] = true
	}
	tools, problems := tool.ParseList(s.opts.name, raw)
	return tools, problems, nil
}

type toolPage struct {
	Tools      []json.RawMessage `json:"tools"`
	NextCursor string            `json:"nextCursor"`
}

func (s *session) page(ctx context.Context, cursor string) (toolPage, error) {
	kept := &capture{}
	defer s.calls.forget(kept)
	res, err := s.remote.ListTools(withCapture(ctx, kept), &mcp.ListToolsParams{Cursor: cursor})
	raw := kept.result()
	if raw == nil && err == nil { // the SDK answered out of its cache, by the server's leave
		if raw, err = json.Marshal(res); err != nil {
			return toolPage{}, fmt.Errorf("encode tools: %w", err)
		}
	}
	if raw == nil {
		return toolPage{}, err
	}
	var page toolPage
	if err := json.Unmarshal(raw, &page); err != nil {
		return toolPage{}, fault.New(fault.UpstreamUnavailable, "server %q answered tools/list with something that is no list of tools", s.opts.name)
	}
	return page, nil
}

// close ends the connection without waiting for calls in flight: they fail. When
// it returns, nothing of the session is left.
func (s *session) close() {
	_ = s.conn.Close()
	_ = s.remote.Close()
	<-s.done
	s.release()
}

// release gives the idle connections of HTTP back.
func (s *session) release() {
	if s.http != nil {
		s.http.base.CloseIdleConnections()
	}
}

// protocol is the negotiated revision; instructions are the server's own words.
func (s *session) protocol() (version, instructions string) {
	if r := s.remote.InitializeResult(); r != nil {
		return r.ProtocolVersion, r.Instructions
	}
	return "", ""
}

// stderr is the end of what a child has said on stderr.
func (s *session) stderr() string {
	if s.stdio == nil || s.stdio.conn == nil {
		return ""
	}
	return s.stdio.conn.process.Stderr()
}

// ended explains the end of a session that nobody asked for.
func (s *session) ended() error {
	if s.stdio != nil {
		if how, ended := s.waitExit(); ended {
			return s.died("ended by itself", how)
		}
	}
	s.mu.Lock()
	err := s.endErr
	s.mu.Unlock()
	if err == nil {
		err = errors.New("closed by the server")
	}
	if s.stdio == nil {
		return diagnoseHTTP(s.opts.name, err)
	}
	return fault.New(fault.UpstreamUnavailable, "the connection to server %q ended: %v", s.opts.name, err).
		WithHint("%s", joinHints("it is being restarted", lastWords(s.stderr())))
}
