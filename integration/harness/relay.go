package harness

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"time"
)

// A Direction is one way through a Relay.
type Direction int

// The two directions, seen from the proxy.
const (
	ToMaster Direction = iota
	ToProxy
)

// A Relay is a TCP link to a master that a test can hold, delay and cut. Bytes that are held are kept, not lost, as
// a network keeps what it has not delivered yet.
type Relay struct {
	Addr string

	listener net.Listener

	mu      sync.Mutex // guards all below
	target  string
	changed *sync.Cond // signalled when any of them changes
	held    [2]bool
	delay   [2]time.Duration
	refuse  bool
	wanted  []byte // see Catch; in lower case, nil if nothing is to be caught
	caught  bool
	closed  bool
	links   map[*link]struct{}
	running sync.WaitGroup
}

// A link is one connection of the proxy and the connection to the master that it became.
type link struct {
	proxy, master net.Conn
	stranded      bool // its bytes for the master wait for Deliver; guarded by Relay.mu
}

// StartRelay starts a relay to target.
func StartRelay(target string) (*Relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{Addr: l.Addr().String(), target: target, listener: l, links: map[*link]struct{}{}}
	r.changed = sync.NewCond(&r.mu)
	r.running.Go(r.accept)
	return r, nil
}

// Hold keeps back all bytes in one direction, on present and future connections, until Release.
func (r *Relay) Hold(d Direction) { r.set(func() { r.held[d] = true }) }

// Release delivers what was held back and lets the direction flow again.
func (r *Relay) Release(d Direction) { r.set(func() { r.held[d] = false }) }

// Delay makes every piece of bytes in one direction arrive the given time after it was sent, as a long link does.
func (r *Relay) Delay(d Direction, by time.Duration) { r.set(func() { r.delay[d] = by }) }

// Refuse makes new connections end at once, or lets them pass again.
func (r *Relay) Refuse(on bool) { r.set(func() { r.refuse = on }) }

// Cut ends all present connections on both sides.
func (r *Relay) Cut() {
	r.each(func(l *link) { _ = errors.Join(l.proxy.Close(), l.master.Close()) })
}

// Strand ends the proxy's side of all present connections, and keeps what the proxy had sent on them until Deliver:
// the stray packets of a link that broke. New connections flow.
func (r *Relay) Strand() {
	r.set(func() { r.held[ToMaster] = false; r.markStranded(true) })
	r.each(func(l *link) {
		if tcp, ok := l.proxy.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, so that the proxy sees the end at once
		}
		_ = l.proxy.Close()
	})
}

// Deliver lets what Strand and Catch kept reach the master, even if its sender has gone.
func (r *Relay) Deliver() { r.set(func() { r.wanted = nil; r.markStranded(false) }) }

// Catch keeps back the next bytes for the master that contain this text, in any case, and what follows them on their
// connection, until Deliver: a packet that was lost and will be sent again. All other connections flow.
func (r *Relay) Catch(text string) {
	r.set(func() { r.wanted, r.caught = bytes.ToLower([]byte(text)), false })
}

// Caught returns nil if such bytes have come since Catch.
func (r *Relay) Caught() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.caught {
		return errors.New("nothing of the kind was sent on the link")
	}
	return nil
}

// Lead makes new connections reach another server, as a name does that is given another address.
func (r *Relay) Lead(addr string) { r.set(func() { r.target = addr }) }

// Retarget is Lead, and ends the present connections, as a failover behind one address does.
func (r *Relay) Retarget(addr string) {
	r.Lead(addr)
	r.Cut()
}

func (r *Relay) markStranded(on bool) {
	for l := range r.links {
		l.stranded = on
	}
}

// Links counts the connections that are open on the master's side.
func (r *Relay) Links() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.links)
}

// Stop ends the relay and waits for its goroutines.
func (r *Relay) Stop() {
	_ = r.listener.Close()
	r.set(func() { r.closed = true })
	r.Cut()
	r.running.Wait()
}

func (r *Relay) set(change func()) {
	r.mu.Lock()
	change()
	r.mu.Unlock()
	r.changed.Broadcast()
}

func (r *Relay) each(do func(*link)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		do(l)
	}
}

func (r *Relay) accept() {
	for {
		proxy, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		refuse, target := r.refuse || r.closed, r.target
		r.mu.Unlock()
		if refuse {
			_ = proxy.Close()
			continue
		}
		master, err := net.Dial("tcp", target)
		if err != nil {
			_ = proxy.Close()
			continue
		}
		r.connect(&link{proxy: proxy, master: master})
	}
}

// connect starts both directions of a link. Each ends when the side it reads from ends; the master's side stays open
// after the proxy's has gone until everything held for it was delivered.
func (r *Relay) connect(l *link) {
	r.set(func() { r.links[l] = struct{}{} })
	r.running.Go(func() {
		r.copy(l, ToMaster, l.master, l.proxy)
		_ = l.master.Close()
		r.set(func() { delete(r.links, l) })
	})
	r.running.Go(func() {
		r.copy(l, ToProxy, l.proxy, l.master)
		_ = l.proxy.Close()
	})
}

// A piece is bytes as one read brought them.
type piece struct {
	bytes   []byte
	arrived time.Time
}

// piecesMax is how many pieces of one direction of a link may be under way. Reading waits while there are more.
const piecesMax = 1024

// copy reads before it waits, so that what is held back was already accepted from its sender. Reading goes on while earlier pieces
// wait: each arrives one delay after it was sent, however many are under way.
func (r *Relay) copy(l *link, d Direction, to, from net.Conn) {
	pieces, stopped := make(chan piece, piecesMax), make(chan struct{})
	defer close(stopped)
	late, err := newTimer()
	if err != nil {
		return
	}
	defer late.stop()
	r.running.Go(func() { readPieces(from, pieces, stopped) })
	for p := range pieces {
		if d == ToMaster {
			r.look(l, p.bytes)
		}
		if !r.pass(l, d, p.arrived, late) {
			continue
		}
		if _, err := to.Write(p.bytes); err != nil {
			return
		}
	}
}

// readPieces ends when the connection does, or when nobody takes pieces any more.
func readPieces(from net.Conn, pieces chan<- piece, stopped <-chan struct{}) {
	defer close(pieces)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			select {
			case pieces <- piece{bytes.Clone(buf[:n]), time.Now()}:
			case <-stopped:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// look strands the link if the bytes are those to be caught.
func (r *Relay) look(l *link, b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wanted != nil && bytes.Contains(bytes.ToLower(b), r.wanted) {
		r.wanted, r.caught, l.stranded = nil, true, true
	}
}

// pass waits until bytes that arrived at that time may flow; false means that the relay has stopped.
func (r *Relay) pass(l *link, d Direction, arrived time.Time, late *timer) bool {
	r.mu.Lock()
	if by := r.delay[d]; by > 0 {
		r.mu.Unlock()
		late.wait(by - time.Since(arrived))
		r.mu.Lock()
	}
	for (r.held[d] || l.stranded && d == ToMaster) && !r.closed {
		r.changed.Wait()
	}
	defer r.mu.Unlock()
	return !r.closed
}
