package relay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is the test's end of one connection.
type peer struct {
	net.Conn
	lines *bufio.Reader
}

func newPeer(c net.Conn) *peer { return &peer{c, bufio.NewReader(c)} }

func (p *peer) send(t *testing.T, format string, args ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(p, format+"\n", args...); err != nil {
		t.Fatal(err)
	}
}

func (p *peer) expect(t *testing.T, want string) {
	t.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil || !strings.Contains(line, want) {
		t.Fatalf("got %q, %v; want %q", line, err, want)
	}
}

// start runs a relay; the test plays the client and, one after the other, the gateways.
func start(t *testing.T) (client *peer, gateways <-chan *peer, ended <-chan error) {
	t.Helper()
	mine, theirs := net.Pipe()
	next := make(chan *peer)
	connect := func(ctx context.Context) (io.ReadWriteCloser, error) {
		a, b := net.Pipe()
		select {
		case next <- newPeer(a):
			return b, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	done := make(chan error, 1)
	go func() {
		done <- Run(t.Context(), theirs, theirs, connect, slog.New(slog.DiscardHandler))
		_ = theirs.Close()
	}()
	t.Cleanup(func() { _ = mine.Close() })
	return newPeer(mine), next, done
}

const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	execute     = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"pml_execute"}}`
	discover    = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"pml_discover"}}`
	result      = `{"jsonrpc":"2.0","id":%d,"result":{"from":%q}}`
)

func TestSessionSurvivesItsGateway(t *testing.T) {
	client, gateways, ended := start(t)
	first := <-gateways
	client.send(t, initialize)
	first.expect(t, `"initialize"`)
	first.send(t, result, 1, "first")
	client.expect(t, "first")
	client.send(t, initialized)
	first.expect(t, "notifications/initialized")
	client.send(t, discover, 2)
	first.expect(t, "pml_discover")
	client.send(t, execute, 3)
	first.expect(t, "pml_execute")
	_ = first.Close()

	second := <-gateways
	second.expect(t, `"initialize"`)
	second.send(t, result, 1, "handshake that the client must not see twice")
	second.expect(t, "notifications/initialized")
	second.expect(t, "pml_discover") // reading again does no harm
	client.expect(t, `"code":"interrupted"`)
	second.send(t, result, 2, "second")
	client.expect(t, "second")
	_ = client.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestHandshakeInFlightIsSentOnce(t *testing.T) {
	client, gateways, ended := start(t)
	first := <-gateways
	client.send(t, initialize)
	first.expect(t, `"initialize"`)
	_ = first.Close()
	second := <-gateways
	second.expect(t, `"initialize"`)
	second.send(t, result, 1, "second")
	client.expect(t, "second")
	_ = client.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestEndsWhenNoGatewayCanBeReached(t *testing.T) {
	want := errors.New("nobody there")
	err := Run(t.Context(), strings.NewReader(""), io.Discard,
		func(context.Context) (io.ReadWriteCloser, error) { return nil, want }, slog.New(slog.DiscardHandler))
	if err != want { //nolint:errorlint // the very error
		t.Errorf("got %v", err)
	}
}
