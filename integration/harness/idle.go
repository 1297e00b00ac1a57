package harness

import (
	"fmt"
	"syscall"
)

// RoomFor returns how many of n connections the limit on open files leaves room for.
func RoomFor(n int) (int, error) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return int(min(uint64(n), max(limit.Cur, 200)-200)), err // it may be infinite
}

// IdleCost opens n connections that rest, as those of a connection pool, and returns them, and how many KB of the proxy's
// memory one takes.
func (p *Proxy) IdleCost(n int) (conns []*Conn, perConnection float64, err error) {
	before, err := p.MemoryKB()
	if err != nil {
		return nil, 0, err
	}
	if conns, err = idle(p.Addr, n); err != nil {
		return conns, 0, err
	}
	after, err := p.MemoryKB()
	return conns, float64(after-before) / float64(n), err
}

// idle opens n connections that have locked and unlocked once, as those of a connection pool have, and then rest.
func idle(addr string, n int) ([]*Conn, error) {
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
