package harness

import "fmt"

// Idle opens n connections that have locked and unlocked once, as those of a connection pool have, and then rest.
func Idle(addr string, n int) ([]*Conn, error) {
	conns := make([]*Conn, 0, n)
	for i := range n {
		c, err := Dial(addr)
		if err != nil {
			return conns, fmt.Errorf("connection %d: %w", i, err)
		}
		conns = append(conns, c)
		key := fmt.Sprintf("idle:%d", i)
		reply, err := c.Do("SET", key, "me", "NX", "PX", "30000")
		if err != nil || string(reply) != "+OK\r\n" {
			return conns, fmt.Errorf("connection %d: SET: %q, %w", i, reply, err)
		}
		if reply, err = c.Do("DEL", key); err != nil || string(reply) != ":1\r\n" {
			return conns, fmt.Errorf("connection %d: DEL: %q, %w", i, reply, err)
		}
	}
	return conns, nil
}

// CloseAll closes the connections.
func CloseAll(conns []*Conn) {
	for _, c := range conns {
		_ = c.Close()
	}
}
