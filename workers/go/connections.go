package worker

import (
	"net"
	"sync"
	"time"
)

// The connections of a server, from the moment they are accepted.
//
// gRPC knows those that have shaken hands, and waits for the others when it stops, at most as long as a handshake may
// take. Somebody who connects and says nothing (a probe, a balancer, a peer whose node has died) would hold up the end
// beyond the grace period. So they are kept here, and closed when that is over.

// handshakePatience is for TLS, and for a client's first words of HTTP/2. Both take a few round trips; gRPC's default of
// two minutes would keep a file open so long for each who says nothing.
const handshakePatience = 10 * time.Second

// connections is a listener that knows what it has accepted.
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

// Accept is net.Listener's.
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

// closeAll ends every connection, now and to come.
func (c *connections) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for one := range c.open {
		_ = one.Conn.Close()
	}
	clear(c.open)
}

// Close is net.Conn's.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
