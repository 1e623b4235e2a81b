package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// The SDK decodes results into its own types: it rounds large integers, drops
// unknown fields and fails on unknown content. The raw bytes of a result are
// therefore taken at the transport, and the SDK gets a result it cannot spoil.

// capture receives the raw result of one request. It travels in the request's
// context down to the transport, which learns the request's id there.
type capture struct {
	// replace is what the SDK gets to see instead; nil leaves the result as it is.
	replace json.RawMessage

	mu   sync.Mutex
	sent bool // the transport has seen the request
	raw  json.RawMessage
}

// wasSent reports whether the request may have reached the server.
func (c *capture) wasSent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent
}

// emptyResult is a tool result in which the SDK finds nothing to do.
var emptyResult = json.RawMessage(`{"content":[],"resultType":"complete"}`)

type captureKey struct{}

func withCapture(ctx context.Context, c *capture) context.Context {
	return context.WithValue(ctx, captureKey{}, c)
}

func captureFrom(ctx context.Context) *capture {
	c, _ := ctx.Value(captureKey{}).(*capture)
	return c
}

// take keeps result and returns what the SDK shall see. A result that asks for
// input is the SDK's to handle: it answers and calls again with the same context.
func (c *capture) take(result json.RawMessage) json.RawMessage {
	if c.replace != nil && wantsInput(result) {
		return result
	}
	c.mu.Lock()
	c.raw = bytes.Clone(result)
	c.mu.Unlock()
	if c.replace == nil {
		return result
	}
	return c.replace
}

// result is the kept result, nil when none arrived.
func (c *capture) result() json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw
}

// wantsInput reports whether a result is a multi-round-trip request.
func wantsInput(result json.RawMessage) bool {
	if !bytes.Contains(result, []byte(`"input_required"`)) {
		return false
	}
	var r struct {
		ResultType string `json:"resultType"`
	}
	return json.Unmarshal(result, &r) == nil && r.ResultType == "input_required"
}

// captures maps the ids of requests in flight to their captures.
type captures struct {
	mu   sync.Mutex
	byID map[string]*capture
}

// expect registers the capture in ctx, if any, for the request id.
func (cs *captures) expect(ctx context.Context, id string) {
	c := captureFrom(ctx)
	if c == nil || id == "" {
		return
	}
	c.mu.Lock()
	c.sent = true
	c.mu.Unlock()
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.byID == nil {
		cs.byID = map[string]*capture{}
	}
	cs.byID[id] = c
}

// claim returns and forgets the capture of a request.
func (cs *captures) claim(id string) *capture {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.byID[id]
	delete(cs.byID, id)
	return c
}

// forget drops a capture whose call has ended without an answer.
func (cs *captures) forget(c *capture) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for id, other := range cs.byID {
		if other == c {
			delete(cs.byID, id)
		}
	}
}

// intercept keeps the result of a response that is expected.
func (cs *captures) intercept(r *jsonrpc.Response) {
	c := cs.claim(idKey(r.ID))
	if c != nil && r.Error == nil {
		r.Result = c.take(r.Result)
	}
}

// idKey is a request id as it stands on the wire.
func idKey(id jsonrpc.ID) string {
	switch v := id.Raw().(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case string:
		return strconv.Quote(v)
	}
	return ""
}
