package sim

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/masters"
	"lockproxy/quorum/pubsub"
)

// Front ends: in worlds of the class Spoken, clients do not call an engine. They speak the protocol over connections
// (wire.go) to the shipping front end: package resp, wired to the engine as cmd/lockproxy does. This package must not
// import resp, so the caller brings the front end: package resp/sim does. The bytes on the connections alone tell what
// happens (speech.go), and the checker goes by the bytes that the proxy wrote.

// A Front stands between clients and an engine.
type Front interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
}

// An Inside has the parts for a front end.
type Inside struct {
	Engine    *quorum.Engine
	Hub       *pubsub.Hub
	TTLMax    time.Duration
	Databases int
	Write     time.Duration // how long a client may leave replies unread
	Pause     func(most time.Duration) time.Duration
	Logger    *slog.Logger
}

// A Door makes the front end of a process. The front end must not log.
type Door func(Inside) Front

// speak lets clients speak, and turns off the work of clients that call the engine. In calm worlds no fault is a
// pretext.
func (p *Plan) speak(r *rand.Rand) {
	p.Spoken = true
	p.Constant, p.Databases, p.Denied = false, false, nil
	p.Takeovers, p.Votes, p.Together, p.Exchanges, p.Moves, p.Thefts, p.Replaces, p.Keeps = 0, 0, 0, 0, 0, 0, 0, 0
	p.Waits, p.Holds, p.Batches = pick(r, 0.1, 0.4, 0.8), pick(r, 0, 0.2, 0.6), pick(r, 0, 0.2, 0.5)
	p.Watches, p.HangUps, p.Slow = pick(r, 0, 0.2, 0.6), pick(r, 0, 0.1, 0.4), pick(r, 0, 0.2, 0.5)
	p.Write = pick(r, 200*time.Millisecond, time.Second, 30*time.Second)
	p.Clients = 3 + r.IntN(6)
	if chance(r, 0.4) {
		p.calm(r)
	}
	// The draws below came later, and have a stream of their own.
	r = rand.New(rand.NewPCG(p.Seed.Number, 8))
	if p.Seed.In(Voted) {
		p.Votes = pick(r, 0.3, 0.7, 1)
	}
	if p.Seed.In(Moved) {
		p.Reads = pick(r, 0.3, 0.7, 1)
	}
	if p.Seed.In(Several) {
		p.Together, p.Resources = pick(r, 0.3, 0.7, 1), 2+r.IntN(3)
		p.Exchanges = pick(r, 0, 0.3, 0.6)
	}
}

// queue has clients of few proxies wait for one lock, so that most locks are handed over.
func (p *Plan) queue(r *rand.Rand) {
	p.Resources, p.Proxies, p.Clients = 1, pick(r, 1, 1, 2, 2, 3), 4+r.IntN(6)
	p.Waits, p.Holds, p.Batches, p.Watches = 0.9, pick(r, 0, 0.2, 0.6), pick(r, 0, 0, 0.2), 0
	p.Think, p.Hold = pick(r, 2*time.Millisecond, 20*time.Millisecond), pick(r, 2*time.Millisecond, 20*time.Millisecond, 150*time.Millisecond)
	p.TTLLeast = min(max(p.TTLLeast, pick(r, 100*time.Millisecond, 300*time.Millisecond)), p.Config.TTLMax)
	p.TTLMost = max(p.TTLMost, min(2*p.TTLLeast, p.Config.TTLMax))
	p.Touches, p.Slow = pick(r, 0, 0.2), pick(r, 0, 0, 0.2)
	p.Gap = max(p.Gap, pick(r, 30*time.Millisecond, 200*time.Millisecond))
}

// calm leaves clients as the only source of trouble.
func (p *Plan) calm(r *rand.Rand) {
	p.Calm, p.Forgets, p.Shifts, p.Faults, p.Lossy, p.Aim = true, false, false, nil, 0, ""
	p.Config.InstanceTimeout = pick(r, 30*time.Millisecond, 100*time.Millisecond)
	p.Config.TTLMax = pick(r, 2*time.Second, 5*time.Second)
	p.TTLLeast = pick(r, 50*time.Millisecond, 300*time.Millisecond, time.Second)
	p.TTLMost = min(p.TTLLeast*pick[time.Duration](r, 1, 2, 5), p.Config.TTLMax)
	p.Think, p.Hold = pick(r, 2*time.Millisecond, 20*time.Millisecond), pick(r, 10*time.Millisecond, 100*time.Millisecond)
	p.Resources, p.Attempts = 1+r.IntN(2), 30+r.IntN(30)
}

// openDoor starts the front end of a life. The world's mu is held.
func (l *life) openDoor(sources []masters.Source, log *slog.Logger) {
	w, cfg := l.proxy.world, l.proxy.world.plan.of(l.proxy.id)
	if w.door == nil {
		return
	}
	l.hub = pubsub.New(pubsub.Config{
		Patience: cfg.InstanceTimeout, DeadAfter: cfg.MasterDeadAfter, Pause: l.pauses(), Logger: log,
	}, sources)
	front := w.door(Inside{
		Engine: l.engine, Hub: l.hub, TTLMax: cfg.TTLMax, Databases: cfg.Databases, Write: w.plan.Write, Pause: l.pauses(), Logger: log,
	})
	l.front, l.entrance = front, &entrance{world: w, conns: make(chan *wire, 64), closed: make(chan struct{})}
	w.closing.Go(func() { _ = front.Serve(l.entrance) })
}

// shutDown ends the front end: at once, if the process is killed.
func (l *life) shutDown() {
	if l.front == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if l.dead {
		cancel()
	}
	_ = l.front.Shutdown(ctx)
	l.hub.Close()
}

// An entrance is where a front end accepts clients.
type entrance struct {
	world  *World
	conns  chan *wire
	closed chan struct{}
	shut   bool // the world's mu guards it
}

// Accept waits for a client.
func (e *entrance) Accept() (net.Conn, error) {
	select {
	case c := <-e.conns:
		return c, nil
	case <-e.closed:
		return nil, net.ErrClosed
	}
}

// Close is called twice. Clients that were not accepted learn of the end.
func (e *entrance) Close() error {
	e.world.mu.Lock()
	defer e.world.mu.Unlock()
	if e.shut {
		return nil
	}
	e.shut = true
	close(e.closed)
	for len(e.conns) > 0 {
		(<-e.conns).sever()
	}
	return nil
}

// Addr is no TCP address.
func (e *entrance) Addr() net.Addr { return addrName("entrance") }

// An addrName is the name of an end of a connection.
type addrName string

// Network is part of net.Addr.
func (addrName) Network() string { return "world" }

func (a addrName) String() string { return string(a) }
