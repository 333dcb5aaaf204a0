package worker

import (
	"net"
	"sync"
	"time"
)

// The accepted connections of a server.
//
// When a grpc.Server stops, it waits for connections in their handshake, up to the connection timeout. A peer that
// connects and sends nothing (a probe, a load balancer, a peer whose node has died) would delay the stop beyond the
// grace period. Therefore the listener tracks its connections, and closes them when the grace period is over.

// handshakeTimeout covers TLS and the HTTP/2 preface. Both take a few round trips. With gRPC's default of two
// minutes, each silent peer would hold a file descriptor that long.
const handshakeTimeout = 10 * time.Second

// connections is a listener that tracks the connections that it has accepted.
type connections struct {
	net.Listener

	mu     sync.Mutex
	open   map[*connection]struct{}
	closed bool
}

type connection struct {
	net.Conn

	of *connections
}

func newConnections(listener net.Listener) *connections {
	return &connections{Listener: listener, open: map[*connection]struct{}{}}
}

// Accept implements net.Listener.
func (c *connections) Accept() (net.Conn, error) {
	accepted, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	made := &connection{Conn: accepted, of: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = accepted.Close()
	} else {
		c.open[made] = struct{}{}
	}
	return made, nil
}

// closeAll closes all connections, including those that are accepted later.
func (c *connections) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for one := range c.open {
		_ = one.Conn.Close()
	}
	clear(c.open)
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
