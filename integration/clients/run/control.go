package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
)

// A control lets programs ask for faults, a line a wish:
//
//	reset    all masters reachable, no keys of clients anywhere: the start of a scenario
//	down n   n masters unreachable until up
//	up       all masters reachable again, and connected
//	lose     the clients' keys vanish from all masters
//	held     a quorum of masters hold a key of the clients
//	empty    no master holds one
//	apart    the upstream holds data and no lock, and the masters hold no data
//	restart  the proxy stops, as by an operator, and starts again at its address
//
// The answer is a line, too, when it is done or seen: "ok", or "error: " and why.
type control struct {
	stack    *stack
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex            // guards conns, closed, and the stack: one wish at a time
	conns  map[net.Conn]struct{} // open
	closed bool
}

func startControl(s *stack) (*control, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &control{stack: s, listener: l, conns: map[net.Conn]struct{}{}}
	c.running.Go(c.accept)
	return c, nil
}

func (c *control) addr() string { return c.listener.Addr().String() }

func (c *control) stop() {
	_ = c.listener.Close()
	c.mu.Lock()
	c.closed = true
	for conn := range c.conns {
		_ = conn.Close()
	}
	c.mu.Unlock()
	c.running.Wait()
}

func (c *control) accept() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.mu.Lock()
		if c.closed {
			_ = conn.Close()
		} else {
			c.conns[conn] = struct{}{}
			c.running.Go(func() { c.serve(conn) })
		}
		c.mu.Unlock()
	}
}

func (c *control) serve(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		c.mu.Lock()
		delete(c.conns, conn)
		c.mu.Unlock()
	}()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		answer := "ok"
		if err := c.do(lines.Text()); err != nil {
			answer = "error: " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		if _, err := fmt.Fprintln(conn, answer); err != nil {
			return
		}
	}
}

func (c *control) do(wish string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, argument, _ := strings.Cut(wish, " ")
	switch name {
	case "reset":
		c.stack.noteUnknown()
		return errors.Join(c.stack.up(), c.stack.lose(), c.stack.clearUpstream())
	case "down":
		n, err := strconv.Atoi(argument)
		if err != nil {
			return err
		}
		return c.stack.down(n)
	case "up":
		return c.stack.up()
	case "lose":
		return c.stack.lose()
	case "held":
		return c.stack.held()
	case "empty":
		return c.stack.empty()
	case "apart":
		return c.stack.apart()
	case "restart":
		c.stack.noteUnknown()
		return c.stack.proxy.Restart()
	}
	return fmt.Errorf("unknown wish %q", wish)
}
