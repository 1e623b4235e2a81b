package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"github.com/pml-run/pml/internal/fault"
	"github.com/pml-run/pml/internal/trace"
)

// base is the origin of all requests; the host is a name only, the socket decides.
const base = "http://gateway"

// Client talks to the gateway of a data folder over its unix socket.
type Client struct {
	socket string
	http   *http.Client
}

// NewClient makes a Client for the gateway that listens on the socket.
func NewClient(socket string) *Client {
	c := &Client{socket: socket}
	c.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) },
	}}
	return c
}

func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", c.socket)
	if err != nil {
		return nil, fmt.Errorf("connect to the gateway: %w", err)
	}
	return conn, nil
}

// Close gives idle connections up.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Ping reports whether the gateway accepts requests; its parts may still be starting.
func (c *Client) Ping(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, "/v1/ping", nil, nil)
}

// CallTool calls one of PML's own MCP tools.
func (c *Client) CallTool(ctx context.Context, name string, args any, into any) error {
	return c.call(ctx, http.MethodPost, "/v1/tools/"+url.PathEscape(name), args, into)
}

// Runs lists runs, the latest first.
func (c *Client) Runs(ctx context.Context, f RunFilter) ([]trace.Run, error) {
	q := url.Values{"status": {f.Status}, "query": {f.Query}, "limit": {strconv.Itoa(f.Limit)}, "offset": {strconv.Itoa(f.Offset)}}
	var runs []trace.Run
	return runs, c.call(ctx, http.MethodGet, "/v1/runs?"+q.Encode(), nil, &runs)
}

// Trace reads what one run did.
func (c *Client) Trace(ctx context.Context, id string) (trace.Trace, error) {
	var t trace.Trace
	return t, c.call(ctx, http.MethodGet, "/v1/runs/"+url.PathEscape(id), nil, &t)
}

// CancelRun ends a run in progress.
func (c *Client) CancelRun(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, "/v1/runs/"+url.PathEscape(id)+"/cancel", nil, nil)
}

// Servers reads the states of the servers behind the gateway.
func (c *Client) Servers(ctx context.Context, into any) error {
	return c.call(ctx, http.MethodGet, "/v1/servers", nil, into)
}

// Doctor reads what is in force.
func (c *Client) Doctor(ctx context.Context, into any) error {
	return c.call(ctx, http.MethodGet, "/v1/doctor", nil, into)
}

// Move copies the database to the Postgres at url.
func (c *Client) Move(ctx context.Context, databaseURL string) error {
	return c.call(ctx, http.MethodPost, "/v1/db/move", map[string]string{"url": databaseURL}, nil)
}

// Import reads an export into the database.
func (c *Client) Import(ctx context.Context, r io.Reader, force bool) error {
	return c.send(ctx, http.MethodPost, "/v1/db/import?force="+strconv.FormatBool(force), r, nil)
}

// Export writes the whole database to w; an export that broke off is an error.
func (c *Client) Export(ctx context.Context, w io.Writer) error {
	resp, err := c.do(ctx, http.MethodGet, "/v1/db/export", nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("read export: %w", err)
	}
	if end := resp.Trailer.Get(exportTrailer); end != "complete" {
		return fmt.Errorf("the export is not whole: %s", end)
	}
	return nil
}

func (c *Client) call(ctx context.Context, method, path string, in, into any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	return c.send(ctx, method, path, body, into)
}

func (c *Client) send(ctx context.Context, method, path string, body io.Reader, into any) error {
	resp, err := c.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("read the gateway's answer: %w", err)
	}
	return nil
}

// do sends a request; an answer that is not 200 becomes the fault in it.
func (c *Client) do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, base+path, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, errors.Join(fault.New(fault.Unavailable, "the gateway does not answer").WithHint("is pml serve running? its log says more"), err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Error *fault.Error `json:"error"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(&answer); err != nil || answer.Error == nil {
		return nil, fmt.Errorf("the gateway answered %s", resp.Status)
	}
	return nil, answer.Error
}
