package upstream

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pml-run/pml/internal/config"
	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/tool"
	"github.com/pml-run/pml/internal/upstream/upstreamtest"
)

func overHTTP(t *testing.T, more ...func(*Options)) (*Manager, *upstreamtest.HTTPServer) {
	t.Helper()
	server := &upstreamtest.HTTPServer{}
	ts := httptest.NewServer(server)
	t.Cleanup(ts.Close)
	c := config.Server{URL: ts.URL + "/mcp", Headers: map[string]config.Secret{"Authorization": "Bearer k"}}
	return start(t, c, more...), server
}

func TestHTTPVerbatim(t *testing.T) {
	t.Parallel()
	m, _ := overHTTP(t)
	for _, id := range []tool.ID{"s:big", "s:sse_big"} {
		if raw, err := call(t, m, id, `{}`); err != nil || raw != upstreamtest.BigResult {
			t.Errorf("%s: %s, %v", id, raw, err)
		}
	}
	raw, err := call(t, m, "s:headers", `{}`)
	if err != nil || !strings.Contains(raw, "Bearer k") || !strings.Contains(raw, "Mcp-Protocol-Version") {
		t.Errorf("%s, %v", raw, err)
	}
}

// One bad answer fails one call; the session stays.
func TestHTTPBadAnswers(t *testing.T) {
	t.Parallel()
	m, server := overHTTP(t, func(o *Options) { o.MaxMessage = 1 << 20 })
	for _, tc := range []struct {
		id   tool.ID
		args string
		code fault.Code
		part string
	}{
		{"s:status", `{"code":500}`, fault.UpstreamUnavailable, "HTTP 500"},
		{"s:status", `{"code":413}`, fault.UpstreamUnavailable, "HTTP 413 Request Entity Too Large: the proxy is unhappy"},
		{"s:broken", `{}`, fault.UpstreamUnavailable, "no JSON"},
		{"s:sse_end", `{}`, fault.UpstreamUnavailable, "ended before the answer"},
		{"s:large", `{"bytes":2000000}`, fault.OutputLimit, "more than"},
	} {
		_, err := call(t, m, tc.id, tc.args)
		if f := wantFault(t, err, tc.code); !strings.Contains(f.Message, tc.part) {
			t.Errorf("%s: %q", tc.id, f.Message)
		}
		if raw, err := call(t, m, "s:big", `{}`); err != nil || raw != upstreamtest.BigResult {
			t.Errorf("after %s: %s, %v", tc.id, raw, err)
		}
	}
	if server.Sessions() != 1 {
		t.Errorf("%d sessions", server.Sessions())
	}
}

// A session that the server forgot is replaced.
func TestHTTPSessionLost(t *testing.T) {
	t.Parallel()
	m, server := overHTTP(t)
	if _, err := call(t, m, "s:forget", `{}`); err != nil {
		t.Fatal(err)
	}
	_, err := call(t, m, "s:big", `{}`)
	wantFault(t, err, fault.UpstreamUnavailable)
	if raw, err := call(t, m, "s:big", `{}`); err != nil || raw != upstreamtest.BigResult {
		t.Errorf("%s, %v", raw, err)
	}
	if server.Sessions() != 2 {
		t.Errorf("%d sessions", server.Sessions())
	}
}

func TestHTTPNotReachable(t *testing.T) {
	t.Parallel()
	ts := httptest.NewServer(nil)
	url := ts.URL
	ts.Close()
	m := launch(t, map[string]config.Server{
		"refused": {URL: url + "/mcp?key=hunter2"},
		"nourl":   {Type: config.TypeHTTP, URL: "ftp://x"},
	})
	s := await(t, m, "refused", StateFailed)
	if !strings.Contains(s.Hint, "nothing listens there") || strings.Contains(s.Error+s.Hint, "hunter2") {
		t.Errorf("%+v", s)
	}
	await(t, m, "nourl", StateFailed)
}

func TestLineReader(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for _, tc := range []struct{ name, line, id string }{
		{"id last", `{"result":{"id":1,"t":"` + long + `"},"jsonrpc":"2.0","id":42}`, "42"},
		{"id first", `{"jsonrpc":"2.0", "id" : 42 ,"result":["` + long + `"]}`, "42"},
		{"string id", `{"id":"a\"b","result":"` + long + `"}`, `"a\"b"`},
		{"escaped", `{"result":"\"id\":7,` + long + `","id":8}`, "8"},
		{"none", `{"method":"x","params":{"id":5,"t":"` + long + `"}}`, ""},
		{"text", long, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newLineReader(io.MultiReader(strings.NewReader("{}\r\n"+tc.line+"\n"), strings.NewReader("last")), 100)
			if l, err := r.next(); err != nil || string(l.Data) != "{}" {
				t.Errorf("%+v, %v", l, err)
			}
			if l, err := r.next(); err != nil || l.ID != tc.id || l.Over != len(tc.line)+1 {
				t.Errorf("%+v, %v", l, err)
			}
			if l, err := r.next(); err != nil || string(l.Data) != "last" {
				t.Errorf("%+v, %v", l, err)
			}
			if _, err := r.next(); err != io.EOF { //nolint:errorlint // exactly EOF
				t.Error(err)
			}
		})
	}
}

func FuzzLineReader(f *testing.F) {
	f.Add([]byte(`{"id":1,"a":"` + strings.Repeat("x", 200) + "\"}\n\n[1]"))
	f.Add([]byte("}}]]\"\\\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newLineReader(bytes.NewReader(data), 64)
		for {
			l, err := r.next()
			if err != nil {
				return
			}
			if len(l.Data) > 65 {
				t.Fatal("longer than the limit")
			}
		}
	})
}

func FuzzEventStream(f *testing.F) {
	f.Add([]byte("id: 1\ndata: {\"id\":1,\"result\":{}}\n\n"))
	f.Add([]byte("data: {\ndata: }\n\n:\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		rt := &rawTransport{limit: 64, calls: &captures{}, skipped: func(string) {}}
		c := &capture{replace: emptyResult}
		rt.calls.expect(withCapture(t.Context(), c), "1")
		if _, err := io.ReadAll(newEventStream(rt, io.NopCloser(bytes.NewReader(data)), "1")); err != nil {
			t.Fatal(err)
		}
		if raw := c.result(); raw != nil && !json.Valid(raw) {
			t.Fatalf("captured %s", raw)
		}
	})
}
