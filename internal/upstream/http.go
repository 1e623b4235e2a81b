package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pml-run/pml/internal/config"
	"github.com/pml-run/pml/internal/fault"
)

// httpTransport makes the SDK's HTTP transport over a round tripper of our own,
// which keeps raw results and lets one bad answer fail one call only. (Wrapping
// the SDK's connection is not possible: it has methods that cannot be passed on.)
func (s *session) httpTransport() (mcp.Transport, error) {
	u, err := url.Parse(s.opts.config.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fault.New(fault.UpstreamUnavailable, "server %q: its url is no http or https address", s.opts.name).
			WithHint("write the full address, for example http://127.0.0.1:3000/mcp")
	}
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		base = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	s.http = &rawTransport{
		base:    base.Clone(),
		origin:  u.Scheme + "://" + u.Host,
		headers: s.opts.config.Headers,
		limit:   s.opts.lineLimit,
		calls:   &s.calls,
		skipped: s.opts.skipped,
	}
	client := &http.Client{Transport: s.http}
	if s.opts.config.Transport() == config.TypeSSE {
		return &mcp.SSEClientTransport{Endpoint: u.String(), HTTPClient: client, MaxEventSize: -1}, nil
	}
	return &mcp.StreamableClientTransport{Endpoint: u.String(), HTTPClient: client, MaxEventSize: -1}, nil
}

// rawTransport stands between the SDK and the network.
type rawTransport struct {
	base    *http.Transport
	origin  string
	headers map[string]config.Secret
	limit   int
	calls   *captures
	skipped func(sample string)
}

// RoundTrip implements http.RoundTripper.
func (t *rawTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	if out.URL.Scheme+"://"+out.URL.Host == t.origin { // a redirect elsewhere must not get our secrets
		for name, value := range t.headers {
			out.Header.Set(name, value.Reveal())
		}
	}
	id := t.expect(out)
	resp, err := t.base.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case id != "" && refusedAlone(resp.StatusCode):
		return t.refuse(resp, id), nil
	case resp.StatusCode/100 != 2:
	case kind == "application/json":
		return t.whole(out.Context(), resp, id)
	case kind == "text/event-stream":
		resp.Body = newEventStream(t, resp.Body, id)
	}
	return resp, nil
}

// expect registers the capture of an outgoing call and returns the call's id.
func (t *rawTransport) expect(req *http.Request) string {
	if req.Method != http.MethodPost || captureFrom(req.Context()) == nil || req.GetBody == nil {
		return ""
	}
	body, err := req.GetBody()
	if err != nil {
		return ""
	}
	var msg struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err := json.NewDecoder(body).Decode(&msg); err != nil || msg.Method == "" {
		return ""
	}
	t.calls.expect(req.Context(), string(msg.ID))
	return string(msg.ID)
}

// refusedAlone reports whether an answer with this status says nothing about the
// session: the call fails, the session goes on. (Without access, or with a session
// that the server forgot, there is no going on.)
func refusedAlone(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return false
	}
	return status >= 400
}

// refuse turns an HTTP error into a JSON-RPC error for the call; an error that
// already is one passes.
func (t *rawTransport) refuse(resp *http.Response, id string) *http.Response {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	_ = resp.Body.Close()
	t.calls.claim(id)
	var m wireMessage
	if json.Unmarshal(body, &m) == nil && len(m.Error) > 0 && string(m.ID) == id {
		return jsonResponse(resp, body)
	}
	text := fmt.Sprintf("HTTP %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	if line := tailLines(string(body), 1); len(line) > 0 && line[0][0] != '<' {
		text += ": " + line[0]
	}
	return jsonResponse(resp, errorMessage(id, codeTransport, text))
}

// whole reads a JSON answer to its end, so that a broken one fails the request
// and not the session.
func (t *rawTransport) whole(ctx context.Context, resp *http.Response, id string) (*http.Response, error) {
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(t.limit)+1))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && id == "":
		return nil, fmt.Errorf("read the answer: %w", err)
	case err != nil:
		return jsonResponse(resp, errorMessage(id, codeTransport, "the answer broke off: "+err.Error())), nil
	case len(body) > t.limit && id != "":
		t.calls.claim(id)
		return jsonResponse(resp, errorMessage(id, codeTooLarge, fmt.Sprintf("the answer has more than %d bytes", t.limit))), nil
	case id != "" && !json.Valid(body):
		return jsonResponse(resp, errorMessage(id, codeTransport, "the answer is no JSON")), nil
	}
	return jsonResponse(resp, t.rewrite(body)), nil
}

// wireMessage is as much of a JSON-RPC message as has to be known here.
type wireMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// rewrite keeps the result of an expected response and returns the message as
// the SDK shall see it.
func (t *rawTransport) rewrite(body []byte) []byte {
	var m wireMessage
	if json.Unmarshal(body, &m) != nil || m.Method != "" || len(m.ID) == 0 {
		return body
	}
	c := t.calls.claim(string(bytes.TrimSpace(m.ID)))
	if c == nil || len(m.Result) == 0 || len(m.Error) > 0 {
		return body
	}
	return message(m.ID, "result", c.take(m.Result))
}

func message(id json.RawMessage, field string, value []byte) []byte {
	var b bytes.Buffer
	b.WriteString(`{"jsonrpc":"2.0","id":`)
	b.Write(id)
	b.WriteString(`,"` + field + `":`)
	b.Write(value)
	b.WriteByte('}')
	return b.Bytes()
}

func errorMessage(id string, code int, text string) []byte {
	value, err := json.Marshal(map[string]any{"code": code, "message": text})
	if err != nil { // strings and integers always encode
		value = []byte(`{"code":` + strconv.Itoa(code) + `,"message":""}`)
	}
	return message(json.RawMessage(id), "error", value)
}

func jsonResponse(resp *http.Response, body []byte) *http.Response {
	out := *resp
	out.StatusCode, out.Status = http.StatusOK, "200 OK"
	out.Header = resp.Header.Clone()
	out.Header.Set("Content-Type", "application/json")
	out.Header.Del("Content-Length")
	out.ContentLength = int64(len(body))
	out.Body = io.NopCloser(bytes.NewReader(body))
	return &out
}
