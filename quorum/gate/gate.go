// Package gate lets clients wait for a resource that another client holds.
//
// A gate is the FIFO of this proxy's clients that wait for one resource. Only the first of them tries. A refused client
// sleeps until the resource may be free: masters ring when the resource is released, through any proxy, and a refusal
// tells when the lock expires by itself. Nobody polls.
//
//	Acquire ─► queue ─► head tries ──granted──► done; the next becomes the head
//	                      ▲   │
//	     bell, expiry ────┘   └──refused──► subscribes to the bell, once, and sleeps
//
// Proxies do not know of each other's gates: their heads compete, in no order. But where the holder gives the lock back
// through this proxy, the head's try may go with the release: handover.go.
//
// Lock order: the hub's mu, the mu of Gates. Neither the hub, nor the engine, nor a done is called with mu held.
package gate

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"lockproxy/quorum"
	"lockproxy/quorum/pubsub"
	"lockproxy/quorum/rules"
)

// Engine is the part of quorum.Engine that gates use.
type Engine interface {
	Acquire(req quorum.AcquireRequest, done func(quorum.Acquired))
	Release(key quorum.Key, token string, done func(quorum.Released))
	HandOver(h quorum.HandOver, released func(quorum.Released), acquired func(quorum.Acquired))
}

// Bells is the part of pubsub.Hub that gates use.
type Bells interface {
	Subscribe(s pubsub.Subscriber, topics []pubsub.Topic, done func(error))
	Unsubscribe(s pubsub.Subscriber, topics []pubsub.Topic)
	Confirmed(t pubsub.Topic) uint64
}

// Gates are all gates of a proxy.
type Gates struct {
	engine  Engine
	bells   Bells
	masters int
	quorum  int
	pause   func(most time.Duration) time.Duration
	names   string // begins the names of this proxy's bells
	seed    maphash.Seed
	loops   sync.WaitGroup

	mu        sync.Mutex // guards all below, and the state of gates and waiters
	gates     map[quorum.Key]*gate
	handovers uint64                        // how many were made, for the names of bells
	turns     *simplelru.LRU[uint64, *turn] // by the hash of the key; a turn outlives its gate, which may have a single waiter
	closed    bool
}

// New returns gates over a number of masters. pause chooses how long to wait after split votes: less than most.
func New(engine Engine, bells Bells, masters int, pause func(most time.Duration) time.Duration) *Gates {
	return &Gates{
		engine: engine, bells: bells, pause: pause, masters: masters, quorum: rules.Quorum(masters),
		names: newNames(), seed: maphash.MakeSeed(), gates: map[quorum.Key]*gate{}, turns: newTurns(),
	}
}

// A Waiter is a client's place in a queue.
type Waiter struct {
	gates *Gates
	gate  *gate
	req   quorum.AcquireRequest
	done  func(quorum.Acquired)
	timer *time.Timer

	trying bool
	late   bool  // the wait is over, or the client gone, during a try
	cause  error // if late: the error of the wait; nil: a refusal
	over   bool  // done is called, or about to be
	err    error // why the last attempt could not be made
}

// Acquire takes the lock for req in turn, when the resource is free, and calls done once. When patience is over, done
// gets a refusal. An attempt that is under way then is still waited for. While no quorum of masters answers, Acquire
// goes on trying, more and more rarely. If no quorum has answered to the end, done gets the error. Any other error ends
// the wait.
func (g *Gates) Acquire(req quorum.AcquireRequest, patience time.Duration, done func(quorum.Acquired)) *Waiter {
	req.WantFree = true
	w := &Waiter{gates: g, req: req, done: done}
	g.mu.Lock()
	if g.closed {
		w.over = true
		g.mu.Unlock()
		done(quorum.Acquired{Err: quorum.ErrClosed})
		return w
	}
	w.gate = g.gates[req.Key]
	if w.gate == nil {
		w.gate = &gate{gates: g, key: req.Key, changed: make(chan struct{}, 1)}
		g.gates[req.Key] = w.gate
		g.loops.Go(w.gate.run)
	}
	//mutant: the last comes first
	w.gate.queue = append(w.gate.queue, w)
	w.timer = time.AfterFunc(patience, w.Cancel)
	g.mu.Unlock()
	return w
}

// Cancel ends the wait. done gets a refusal, or the error of the last attempt, if done was not called yet. During an
// attempt, done is called at the end of the attempt.
func (w *Waiter) Cancel() { w.end(quorum.Acquired{Refused: true}) }

// Fail is Cancel, but done is called with err in place of a refusal.
func (w *Waiter) Fail(err error) { w.end(quorum.Acquired{Err: err}) }

func (w *Waiter) end(a quorum.Acquired) {
	w.gates.mu.Lock()
	if w.trying {
		w.late, w.cause = true, cmp.Or(w.cause, a.Err)
		w.gates.mu.Unlock()
		return
	}
	first := !w.over
	w.over = true
	if a.Refused && w.err != nil {
		a = quorum.Acquired{Err: w.err}
	}
	if w.gate != nil {
		w.gate.signal()
	}
	w.gates.mu.Unlock()
	if first {
		w.finish(a)
	}
}

// finish calls done. over was set by the caller.
func (w *Waiter) finish(a quorum.Acquired) {
	w.timer.Stop()
	w.done(a)
}

// Waiting returns the number of this proxy's clients that wait for the resource.
func (g *Gates) Waiting(key quorum.Key) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if gate := g.gates[key]; gate != nil {
		return gate.waiting()
	}
	return 0
}

// Waited returns names of resources in a database that clients of this proxy wait for, at most so many.
func (g *Gates) Waited(db, most int) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for key, gate := range g.gates {
		if len(names) < most && key.DB == db && gate.waiting() > 0 {
			names = append(names, key.Name)
		}
	}
	return names
}

// WaitingInAll returns the number of clients that wait for any resource.
func (g *Gates) WaitingInAll() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, gate := range g.gates {
		n += gate.waiting()
	}
	return n
}

// A Queue is a resource, and the number of this proxy's clients that wait for it.
type Queue struct {
	Key     quorum.Key
	Waiting int
}

// Longest returns the resources with the most waiting clients: at most n, the longest queue first.
func (g *Gates) Longest(n int) []Queue {
	g.mu.Lock()
	var all []Queue
	for key, gate := range g.gates {
		if waiting := gate.waiting(); waiting > 0 {
			all = append(all, Queue{key, waiting})
		}
	}
	g.mu.Unlock()
	slices.SortFunc(all, func(a, b Queue) int { return cmp.Or(b.Waiting-a.Waiting, strings.Compare(a.Key.Name, b.Key.Name)) })
	return all[:min(n, len(all))]
}

// EndWaits ends all waits with ErrClosed, except for attempts under way. From then on nobody can wait.
func (g *Gates) EndWaits() {
	g.mu.Lock()
	g.closed = true
	var all []*Waiter
	for _, gate := range g.gates {
		all = append(all, gate.queue...)
	}
	g.mu.Unlock()
	for _, w := range all {
		w.end(quorum.Acquired{Err: quorum.ErrClosed})
	}
}

// Close is EndWaits, and waits for every goroutine. Engine and hub must be open until Close returns.
func (g *Gates) Close() {
	g.EndWaits()
	g.loops.Wait()
}
