package sim

import (
	"io"
	"math/rand/v2"
	"syscall"
	"time"

	"lockproxy/quorum/masters"
)

// The two directions of a connection.
const (
	up   = 0 // to the master
	down = 1
)

// A link is the network between a proxy and a master.
type link struct {
	blocked [2]bool       // by direction: segments are held, and come when the link is whole again
	held    [2][]*segment // the held segments
	slow    time.Duration // added to every delay
	away    time.Duration // added, too: the distance of the master
}

// A conn is one connection, both ends of it. A sent segment arrives even after its sender's end is closed, at its time
// or much later, and in order. Only a master that has closed its end takes no more segments.
type conn struct {
	world    *World
	life     *life
	server   *server
	link     *link
	name     string
	rng      *rand.Rand
	session  *session      // the master's state of it; nil before accept
	streams  [2][]*segment // the travelling segments, in order
	running  []*batch      // sent, and not received
	lead     lead          // of the master's clock, as the proxy was told last
	listener *listener     // not nil: hears messages
	gone     bool          // the proxy's end is closed
	killed   bool          // the master's end is closed
}

// A segment travels at once: a part of a batch, a reply, or the end of a stream.
type segment struct {
	conn    *conn
	way     int
	arrived bool
	lost    bool
	deliver func()
}

// A batch is one Send. The master works on copies: a caller that gave up must not see a reply.
type batch struct {
	words   [][]string // of each command
	givers  []*stake   // by command: whose release it is
	replies []answer
	heard   int           // so many replies have reached the proxy
	sent    time.Duration // true time
	timed   time.Duration // when the master last told the time
	knew    lead          // of the master's clock, as the proxy had been told when the batch was sent
	told    *lead         // by this batch, if it ends with the time
	err     error
	done    chan struct{}
	ended   bool
}

// An answer is a reply as go-redis returns it.
type answer struct {
	reply any
	err   error
}

func (b *batch) end(err error) {
	if !b.ended {
		b.ended, b.err = true, err
		close(b.done)
	}
}

// send lets a segment travel.
func (c *conn) send(way int, deliver func()) {
	s := &segment{conn: c, way: way, deliver: deliver}
	c.streams[way] = append(c.streams[way], s)
	c.travel(s, c.delay())
}

func (c *conn) travel(s *segment, d time.Duration) {
	c.world.after(d, func() {
		if c.link.blocked[s.way] {
			c.link.held[s.way] = append(c.link.held[s.way], s)
			return
		}
		s.arrived = true
		for len(c.streams[s.way]) > 0 && c.streams[s.way][0].arrived {
			first := c.streams[s.way][0]
			c.streams[s.way] = c.streams[s.way][1:]
			if !first.lost {
				first.deliver()
			}
		}
	})
}

// delay is the time for a segment's way. A lost segment comes when it has been sent again.
func (c *conn) delay() time.Duration {
	p := &c.world.plan
	d := between(c.rng, p.Latency/2, p.Latency*2) + c.link.slow + c.link.away
	if !c.world.quiet && chance(c.rng, p.Lossy) {
		c.world.faults["late segment"]++
		d += between(c.rng, time.Millisecond, p.LateMost)
	}
	return d
}

// block holds the segments of one direction; heal lets them go on.
func (l *link) block(way int) { l.blocked[way] = true }

func (l *link) heal() {
	for way := range l.blocked {
		l.blocked[way] = false
		held := l.held[way]
		l.held[way] = nil
		for _, s := range held {
			s.conn.travel(s, s.conn.delay()+between(s.conn.rng, 0, 50*time.Millisecond))
		}
	}
	l.slow = 0
}

// Exec sends a batch and waits for its replies.
func (c *conn) Exec(calls []*masters.Call) error {
	if err := c.Send(calls); err != nil {
		return err
	}
	return c.Receive(calls)
}

// Send sends a batch. Whether that fails is found out by Receive.
func (c *conn) Send(calls []*masters.Call) error {
	w := c.world
	w.mu.Lock()
	defer w.mu.Unlock()
	b := &batch{words: make([][]string, len(calls)), givers: make([]*stake, len(calls)), replies: make([]answer, len(calls)), done: make(chan struct{})}
	for i, call := range calls {
		b.words[i] = words(call.Args)
		w.checker.sent(b.words[i])
		b.givers[i] = w.checker.gives(c.server, b.words[i])
	}
	b.sent, b.knew = w.now(), c.lead
	c.running = append(c.running, b)
	w.checker.counts.Behind += min(len(c.running)-1, 1)
	if c.gone {
		c.fail(b, io.EOF)
	} else {
		c.write(b)
	}
	return nil
}

// Receive waits for the replies to the earliest batch.
func (c *conn) Receive(calls []*masters.Call) error {
	w := c.world
	w.mu.Lock()
	b := c.running[0]
	waited := !b.ended
	w.mu.Unlock()
	<-b.done
	if !waited { // it came with the batch before: who takes that has an instant for it
		w.sleep(time.Microsecond)
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	c.running = c.running[1:]
	for i, call := range calls[:b.heard] {
		call.Answered, call.Reply, call.Err = true, b.replies[i].reply, b.replies[i].err
	}
	if b.err != nil {
		w.checker.unheard(c.server, b.words[b.heard:])
	}
	if b.err == nil && b.timed > 0 {
		c.server.steps.heard(c.life, b, w.now())
	}
	if b.err == nil && b.told != nil {
		c.lead = *b.told
	}
	return b.err
}

// write sends a batch, in one or two segments.
func (c *conn) write(b *batch) {
	all := len(b.words)
	cut := all
	if all > 1 && chance(c.rng, c.world.plan.Split) {
		cut = 1 + c.rng.IntN(all-1)
	}
	c.send(up, func() { c.server.arrived(&parcel{conn: c, batch: b, from: 0, to: cut}) })
	if cut < all {
		c.send(up, func() { c.server.arrived(&parcel{conn: c, batch: b, from: cut, to: all}) })
	}
}

// answer takes the replies to the calls before an index back to the proxy.
func (c *conn) answer(b *batch, to int) {
	c.send(down, func() {
		if c.gone {
			return
		}
		b.heard = to
		if to == len(b.words) {
			b.end(nil)
		}
	})
}

// Close ends the proxy's end. Sent segments may still arrive, and so may the news of the end.
func (c *conn) Close() error {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.hangUp(net0)
	return nil
}

// net0 is the error of a closed connection.
var net0 = io.ErrClosedPipe

// hangUp ends the proxy's end of the connection, and perhaps loses segments that have not arrived.
func (c *conn) hangUp(err error) {
	if c.gone {
		return
	}
	c.gone = true
	for _, b := range c.running {
		c.fail(b, err)
	}
	if c.listener != nil {
		c.listener.end(err)
	}
	if chance(c.rng, 0.3) {
		for _, s := range c.streams[up] {
			s.lost = true
		}
	}
	if chance(c.rng, 0.7) { // otherwise the master never hears of it
		c.send(up, func() { c.server.arrived(&parcel{conn: c, fin: true}) })
	}
}

// fail ends a batch, at an instant of its own: several connections may be closed at once.
func (c *conn) fail(b *batch, err error) {
	c.world.after(between(c.rng, time.Microsecond, 10*time.Microsecond), func() { b.end(err) })
}

// reset tells the proxy that the master's end is closed.
func (c *conn) reset() {
	c.killed = true
	c.send(down, func() { c.hangUp(syscall.ECONNRESET) })
}
