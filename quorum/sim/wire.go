package sim

import (
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// A wire is the connection of a client to a proxy, both ends of it, and a net.Conn for the proxy. Bytes come in order,
// in random pieces, and late. The proxy's end blocks when too many bytes are unread by the client.
type wire struct {
	world   *World
	life    *life
	rng     *rand.Rand
	name    string
	changed sync.Cond // a field below has changed; its L is the world's mu, which guards all below

	// Towards the proxy.
	pieces  []piece
	written int // bytes that the client wrote
	came    int // of these, the arrived bytes
	inbox   []byte
	ended   error         // the error that the proxy reads behind the bytes
	noticed time.Duration // when the end arrived
	wokenBy *time.Timer   // the proxy's read deadline
	overdue bool

	// Towards the client, in bytes.
	accepted, arrived, read int
	window                  int
	partial                 []byte        // of a reply that is not whole
	lost                    error         // the error that the client reads behind the arrived bytes
	begun                   time.Duration // when the latest Write began
	begunSlept              time.Duration // how long all proxies had stood still then
	stuck                   bool          // the Write waits for the client to read

	hungUp bool        // the client's end is closed
	shut   bool        // the proxy's end is closed
	asked  []*request  // requests without a written reply
	held   []*heldOpen // by LOCK with HOLD
	pushed func(push)
	resp3  bool
	db     int
}

// A piece arrives at once: the opening of the connection, bytes, or the end of the stream.
type piece struct {
	opens bool
	bytes []byte
	end   error
}

// connect opens a connection to a proxy, or returns nil if nobody listens there.
func (w *World) connect(p *proxy, name string) *wire {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := p.life
	if l == nil || l.entrance.shut {
		return nil
	}
	r := w.random(name)
	c := &wire{world: w, life: l, rng: r, name: name, window: pick(r, 64<<10, 64<<10, 200, 40)}
	c.changed.L = &w.mu
	l.wires = append(l.wires, c)
	c.travel(piece{opens: true})
	return c
}

// opens is the proxy's kernel.
func (c *wire) opens() {
	e := c.life.entrance
	if e.shut {
		c.shut = true
		c.breaks(syscall.ECONNREFUSED)
		return
	}
	e.conns <- c // never blocks: there are fewer clients than places
}

func (c *wire) delay() time.Duration {
	p := &c.world.plan
	d := between(c.rng, p.Latency/4, p.Latency)
	if !c.world.quiet && chance(c.rng, p.Lossy) {
		d += between(c.rng, time.Millisecond, p.LateMost/4)
	}
	return d
}

// send lets bytes travel to the proxy, in a few pieces; nil ends the stream. mu is held.
func (c *wire) send(b []byte, end error) {
	c.written += len(b)
	for len(b) > 0 {
		n := len(b)
		if n > 1 && chance(c.rng, 0.2) {
			n = 1 + c.rng.IntN(n-1)
		}
		c.travel(piece{bytes: b[:n]})
		b = b[n:]
	}
	if end != nil {
		c.travel(piece{end: end})
	}
}

// travel lets a piece arrive, behind the earlier pieces.
func (c *wire) travel(p piece) {
	c.pieces = append(c.pieces, p)
	c.world.after(c.delay(), func() {
		next := c.pieces[0]
		c.pieces = c.pieces[1:]
		if next.opens {
			c.opens()
		}
		if c.ended == nil {
			c.came += len(next.bytes)
			c.inbox = append(c.inbox, next.bytes...)
		}
		if next.end != nil {
			c.ends(next.end)
		}
		c.arrive()
		c.changed.Broadcast()
	})
}

// ends is the end of the client's stream as the proxy sees it.
func (c *wire) ends(err error) {
	if c.ended == nil {
		c.noticed = c.world.now()
	}
	if c.ended = err; err != io.EOF { //nolint:errorlint // it is one of two
		c.inbox = nil
	}
	c.world.checker.hangUpNoticed(c)
}

// hangUp closes the client's end. Bytes on their way to the proxy come before the news, or are lost. All replies are
// lost.
func (c *wire) hangUp(how error) {
	if c.hungUp {
		return
	}
	c.hungUp = true
	c.world.logf(c.name, "hangs up: %v", how)
	c.send(nil, how)
	c.changed.Broadcast()
}

// breaks tells the client that the connection is gone. mu is held.
func (c *wire) breaks(err error) {
	if c.lost == nil {
		c.lost = err
	}
	c.changed.Broadcast()
}

// sever is the end of the process: no further byte leaves the process. mu is held.
func (c *wire) sever() {
	c.shut = true
	c.changed.Broadcast()
	c.world.after(c.delay(), func() { c.breaks(syscall.ECONNRESET) })
}

// Read is the proxy's.
func (c *wire) Read(b []byte) (int, error) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	for {
		switch {
		case c.shut:
			return 0, net.ErrClosed
		case c.overdue:
			return 0, os.ErrDeadlineExceeded
		case len(c.inbox) > 0:
			n := copy(b, c.inbox)
			c.inbox = c.inbox[n:]
			return n, nil
		case c.ended != nil:
			return 0, c.ended
		}
		c.changed.Wait()
	}
}

// Write is the proxy's. It waits for a client that does not read.
func (c *wire) Write(b []byte) (int, error) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	defer func() { c.stuck = false }()
	c.begun, c.begunSlept = c.world.now(), c.world.asleep()
	for n := 0; ; {
		switch {
		case c.shut:
			return n, net.ErrClosed
		case c.ended != nil && c.ended != io.EOF: //nolint:errorlint // it is one of two
			return n, syscall.EPIPE
		}
		room := c.window - (c.accepted - c.read)
		if c.hungUp {
			room = len(b)
		}
		if k := min(room, len(b)-n); k > 0 {
			c.accept(b[n : n+k])
			n += k
		}
		if n == len(b) {
			return n, nil
		}
		c.stuck = true
		c.changed.Wait()
	}
}

// accept takes the proxy's bytes. mu is held.
func (c *wire) accept(b []byte) {
	c.accepted += len(b)
	c.hear(b)
	to := c.accepted
	if c.hungUp {
		c.world.after(c.delay(), func() { c.reject() })
		return
	}
	c.world.after(c.delay(), func() {
		c.arrived = max(c.arrived, to)
		c.changed.Broadcast()
	})
}

// reject is the answer of a client's closed end to arriving bytes.
func (c *wire) reject() {
	if c.ended == nil || c.ended == io.EOF { //nolint:errorlint // it is one of two
		c.ends(syscall.ECONNRESET)
		c.changed.Broadcast()
	}
}

// Close is the proxy's.
func (c *wire) Close() error {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	if !c.shut {
		c.shut = true
		c.finish(io.EOF)
	}
	return nil
}

// CloseWrite is the proxy's.
func (c *wire) CloseWrite() error {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.finish(io.EOF)
	return nil
}

// finish lets the client read the end behind the written bytes. mu is held.
func (c *wire) finish(err error) {
	c.world.checker.hangUpNoticed(c)
	c.world.after(c.delay(), func() {
		c.arrived = c.accepted
		c.breaks(err)
	})
	c.changed.Broadcast()
}

// SetReadDeadline wakes a waiting Read.
func (c *wire) SetReadDeadline(t time.Time) error {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	if c.wokenBy != nil {
		c.wokenBy.Stop()
	}
	switch d := time.Until(t); {
	case t.IsZero():
		c.overdue = false
	case d <= 0:
		c.overdue = true
	default:
		c.overdue = false
		c.wokenBy = time.AfterFunc(d, func() {
			c.world.mu.Lock()
			defer c.world.mu.Unlock()
			c.overdue = true
			c.changed.Broadcast()
		})
	}
	c.changed.Broadcast()
	return nil
}

// SetDeadline is not called for clients that are let in.
func (c *wire) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline is not called.
func (c *wire) SetWriteDeadline(time.Time) error { return nil }

// LocalAddr is the proxy's.
func (c *wire) LocalAddr() net.Addr { return addrName(c.life.name) }

// RemoteAddr is the client's.
func (c *wire) RemoteAddr() net.Addr { return addrName(c.name) }
