package admin

import (
	"net"
	"net/http"
	"sync"
)

// ConnectionsMax is how many connections the pages have at one time. Each takes one of the process's files, which Redis clients and
// masters need.
const ConnectionsMax = 16

// A crowd bounds the connections. Where one is too many, that one goes on which nothing has begun or ended for longest: a probe that
// is answered at once gets its answer, however many others are silent or slow.
type crowd struct {
	mu    sync.Mutex // guards what follows
	moves uint64
	last  map[net.Conn]uint64 // which of all moves was its last
}

// note is told by the server of each connection that comes, begins or ends a request, or goes.
func (c *crowd) note(conn net.Conn, state http.ConnState) {
	if longest := c.move(conn, state); longest != nil {
		_ = longest.Close()
	}
}

// move returns the connection that is to go; nil if there is room.
func (c *crowd) move(conn net.Conn, state http.ConnState) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.last[conn]
	switch {
	case state == http.StateClosed || state == http.StateHijacked:
		delete(c.last, conn)
		return nil
	case state != http.StateNew && !known: // it is being closed
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
