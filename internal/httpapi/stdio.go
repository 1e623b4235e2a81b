package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// upgradeName names the protocol that /v1/stdio switches to: the very bytes of an
// MCP stdio session. With it, a further stdio instance on the same data folder
// is a pipe to the gateway that owns the folder.
const upgradeName = "pml-stdio"

func (s *Server) stdio(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != upgradeName {
		http.Error(w, "expected Upgrade: "+upgradeName, http.StatusUpgradeRequired)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.logger.ErrorContext(r.Context(), "stdio session not taken over", "error", err)
		return
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", upgradeName); err != nil {
		return
	}
	// The request's context ends with the handler; the session is the handler.
	if err := s.backend.ServeStream(r.Context(), readCloser{buffered.Reader, conn}, conn); err != nil && !errors.Is(err, io.EOF) {
		s.logger.DebugContext(r.Context(), "stdio session ended", "error", err)
	}
}

type readCloser struct {
	io.Reader
	io.Closer
}

// Session opens an MCP stdio session with the gateway.
func (c *Client) Session(ctx context.Context) (io.ReadWriteCloser, error) {
	conn, r, err := c.upgrade(ctx)
	if err != nil {
		return nil, err
	}
	return &clientSession{Conn: conn, r: r}, nil
}

// clientSession reads what the handshake's reader may have read ahead.
type clientSession struct {
	net.Conn
	r *bufio.Reader
}

func (s *clientSession) Read(b []byte) (int, error) { return s.r.Read(b) }

// CloseWrite says that the client will send no more.
func (s *clientSession) CloseWrite() error {
	half, ok := s.Conn.(interface{ CloseWrite() error })
	if !ok {
		return s.Close()
	}
	return half.CloseWrite()
}

func (c *Client) upgrade(ctx context.Context) (net.Conn, *bufio.Reader, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/stdio", http.NoBody)
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", upgradeName)
	if err := req.Write(conn); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("ask the gateway for a session: %w", err), conn.Close())
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("ask the gateway for a session: %w", err), conn.Close())
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return nil, nil, errors.Join(fmt.Errorf("the gateway refused a session: %s", resp.Status), conn.Close())
	}
	return conn, r, nil
}
