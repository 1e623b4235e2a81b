package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pml-run/pml/internal/execute"
)

// TestCloseComesAfterTheAnswers: a request in flight is answered before its session
// ends, and no session begins any more.
func TestCloseComesAfterTheAnswers(t *testing.T) {
	started, goOn := make(chan struct{}), make(chan struct{})
	b := backend{execute: func(context.Context, execute.Request) *execute.Answer {
		close(started)
		<-goOn
		return &execute.Answer{Status: execute.StatusRunning, WorkflowID: "w"}
	}}
	s := New(b, b, b, nil, Options{Version: "test"})
	mine, theirs := net.Pipe()
	ended := make(chan struct{})
	go func() { _ = s.ServeStream(t.Context(), theirs, theirs); close(ended) }()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.IOTransport{Reader: mine, Writer: mine}, nil)
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan *mcp.CallToolResult, 1)
	go func() {
		r, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "pml_execute", Arguments: json.RawMessage(`{"intent":"x"}`)})
		if err != nil {
			t.Error(err)
		}
		result <- r
	}()
	<-started
	closed := make(chan struct{})
	go func() { s.Close(t.Context()); close(closed) }()
	for isClosed := false; !isClosed; <-time.After(time.Millisecond) {
		s.mu.Lock()
		isClosed = s.closed
		s.mu.Unlock()
	}
	close(goOn)
	if r := <-result; r == nil || r.IsError {
		t.Errorf("got %+v", r)
	}
	<-closed
	<-ended
	_ = client.Close()

	mine, theirs = net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, mine) }()
	_ = s.ServeStream(t.Context(), theirs, theirs) // returns
	_ = mine.Close()
}
