package sim

import (
	"context"
	"fmt"
	"io"

	"lockproxy/quorum/masters"
)

// An endpoint is a master as one life of one proxy reaches the master.
type endpoint struct {
	life  *life
	id    int
	dials int
}

func (e *endpoint) Addr() string { return addrOf(e.id) }

// addrOf is the address of a master.
func addrOf(id int) string { return fmt.Sprintf("m%d", id+1) }

// Dial connects and selects a database. The context bounds both.
func (e *endpoint) Dial(ctx context.Context, db int) (masters.Conn, error) {
	w := e.life.proxy.world
	w.mu.Lock()
	e.dials++
	s := w.servers[e.id] // the server to which the address leads now
	if w.astray != nil && w.astray.id == e.id && e.life.proxy.id > 0 {
		s = w.astray
	}
	c := &conn{
		world: w, life: e.life, server: s, link: w.links[e.life.proxy.id][s.id],
		name: fmt.Sprintf("%s>%s#%d", e.life.name, s.addr, e.dials),
		rng:  w.random("conn", e.life.proxy.id, e.life.number, s.id, e.dials),
	}
	w.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if err := c.open(db); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	return c, nil
}

// open shakes hands with the master.
func (c *conn) open(db int) error {
	w := c.world
	w.mu.Lock()
	b := &batch{done: make(chan struct{})}
	c.running = []*batch{b}
	if c.life.dead || c.gone {
		c.fail(b, io.EOF)
	} else {
		c.send(up, func() { c.server.accept(c) })
		c.life.conns = append(c.life.conns, c)
	}
	w.mu.Unlock()
	<-b.done
	w.mu.Lock()
	c.running = nil
	w.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	hello := &masters.Call{Args: []any{"SELECT", int64(db)}}
	if err := c.Exec([]*masters.Call{hello}); err != nil {
		return err
	}
	return hello.Err
}
