package pglite

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
)

// Conn is a client's end of a connection to the embedded database.
type Conn struct {
	net.Conn

	gone *atomic.Bool // shared with the child
}

// Gone reports whether the child behind this connection has ended, so that a pool
// can throw the connection away before it costs somebody a statement.
func (c *Conn) Gone() bool { return c.gone.Load() }

// connPair makes the two ends of a connection.
func connPair() (client, server net.Conn, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	client, err = fdConn(fds[0])
	if err != nil {
		return nil, nil, errors.Join(err, syscall.Close(fds[1]))
	}
	server, err = fdConn(fds[1])
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return client, server, nil
}

func fdConn(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "pglite")
	c, err := net.FileConn(f) // duplicates the descriptor
	return c, errors.Join(err, f.Close())
}

// hungUp looks, without reading, whether the other end was closed.
func hungUp(c net.Conn) bool {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	var gone bool
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, rerr := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		gone = n == 0 && rerr == nil
	})
	return gone || err != nil
}
