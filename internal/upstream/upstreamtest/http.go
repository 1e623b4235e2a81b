package upstreamtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

// HTTPServer is a scripted server over streamable HTTP. Its tools:
//
//	big, sse_big  BigResult, as JSON and as an event
//	status        answers with the HTTP status {code}
//	broken        JSON that breaks off
//	sse_end       an event stream that ends without the answer
//	large         an answer of {bytes} bytes
//	forget        forgets the session, so that what follows is 404
//	headers       the request's headers
type HTTPServer struct {
	sessions atomic.Int64
	forgot   atomic.Int64 // sessions up to this one are unknown
}

// HTTPNames are the tools of an HTTPServer.
var HTTPNames = []string{"big", "sse_big", "status", "broken", "sse_end", "large", "forget", "headers"}

// Sessions is how many sessions were opened.
func (s *HTTPServer) Sessions() int { return int(s.sessions.Load()) }

// ServeHTTP implements http.Handler.
func (s *HTTPServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var id int64
	if sid := req.Header.Get("Mcp-Session-Id"); sid != "" {
		_, _ = fmt.Sscan(sid, &id)
		if id <= s.forgot.Load() {
			w.WriteHeader(http.StatusNotFound)
			return
		}
	}
	var r request
	if json.NewDecoder(req.Body).Decode(&r) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	switch r.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", strconv.FormatInt(s.sessions.Add(1), 10))
		answer(w, r.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}`)
	case "tools/list":
		var tools []string
		for _, name := range HTTPNames {
			tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
		}
		answer(w, r.ID, `{"tools":[`+strings.Join(tools, ",")+`]}`)
	case "tools/call":
		s.call(w, req, r, id)
	case "server/discover":
		w.WriteHeader(http.StatusBadRequest)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func (s *HTTPServer) call(w http.ResponseWriter, req *http.Request, r request, session int64) {
	var p struct {
		Name      string `json:"name"`
		Arguments struct {
			Code  int `json:"code"`
			Bytes int `json:"bytes"`
		} `json:"arguments"`
	}
	_ = json.Unmarshal(r.Params, &p)
	events := strings.HasPrefix(p.Name, "sse")
	if events {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ": hello\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\n")
	}
	switch p.Name {
	case "big":
		answer(w, r.ID, BigResult)
	case "sse_big":
		_, _ = io.WriteString(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":"+string(r.ID)+",\"result\":"+BigResult+"}\n\n")
	case "status":
		w.WriteHeader(p.Arguments.Code)
		_, _ = io.WriteString(w, "the proxy is unhappy")
	case "broken":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`)
	case "large":
		answer(w, r.ID, `{"content":[{"type":"text","text":"`+strings.Repeat("x", p.Arguments.Bytes)+`"}]}`)
	case "forget":
		s.forgot.Store(session)
		answer(w, r.ID, `{"content":[]}`)
	case "headers":
		h, _ := json.Marshal(req.Header)
		answer(w, r.ID, `{"content":[],"structuredContent":`+string(h)+`}`)
	}
}

func answer(w http.ResponseWriter, id json.RawMessage, result string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(id)+`,"result":`+result+`}`)
}
