package admin

import (
	"net"
	"net/http"
	"sync"
)

// ConnectionsMax is how many connections the pages have at one time. Each takes a file of the process, and Redis
// clients and masters need files.
const ConnectionsMax = 16

// A crowd bounds the connections. If there is one too many, the connection goes on which nothing has begun or ended for
// longest. So a probe that is answered at once gets its answer, however many others are silent or slow.
type crowd struct {
	mu    sync.Mutex // guards the fields below
	moves uint64
	last  map[net.Conn]uint64 // the number of the connection's last move
}

// note takes the server's report of each connection that comes, begins or ends a request, or goes.
func (c *crowd) note(conn net.Conn, state http.ConnState) {
	if longest := c.move(conn, state); longest != nil {
		_ = longest.Close()
	}
}

// move returns the connection to close; nil if there is room.
func (c *crowd) move(conn net.Conn, state http.ConnState) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.last[conn]
	switch {
	case state == http.StateClosed || state == http.StateHijacked:
		delete(c.last, conn)
		return nil
	case state != http.StateNew && !known: // the connection is being closed
		return nil
	}
	c.moves++
	c.last[conn] = c.moves
	if len(c.last) <= ConnectionsMax {
		return nil
	}
	var longest net.Conn
	for other, at := range c.last {
		if longest == nil || at < c.last[longest] {
			longest = other
		}
	}
	delete(c.last, longest)
	return longest
}
