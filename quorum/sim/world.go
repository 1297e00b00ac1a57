package sim

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/masters"
	"lockproxy/quorum/rules"
	"lockproxy/quorum/vouch"
)

// A World is the whole of one seed. Everything in it is an event: a function that runs alone, at an instant of its own.
// Clients wake at even nanoseconds and the network at odd ones. So a timer that the engine sets on behalf of a client
// never comes due together with a message, and nothing depends on the scheduler.
type World struct {
	plan  Plan
	slept atomic.Int64 // how long all proxies have stood still, by the clocks of everybody else
	start time.Time

	timer *time.Timer // of the next event

	mu      sync.Mutex // held by each event; guards all below
	taken   map[time.Duration]bool
	events  agenda
	servers []*server
	former  []*server             // to which no address leads any more
	retired map[int]time.Duration // when the latest former server of a slot ended
	astray  *server               // if not nil, its address leads to it for all proxies but the first
	links   [][]*link             // by proxy and server
	proxies []*proxy
	clients sync.WaitGroup
	closing sync.WaitGroup // engines
	checker checker
	faults  map[string]int
	quiet   bool // the faults are over
	trace   func(line string)
	door    Door // nil: clients call the engine

	inits        int  // how often lockproxy init was run
	initialising bool // lockproxy init runs
	due          bool // init is to be run in the end: it has failed half-way, or addresses were exchanged
}

// newWorld makes the servers and the proxies, and starts the proxies soon.
func newWorld(p Plan, door Door, trace func(string)) *World {
	w := &World{plan: p, door: door, start: time.Now(), taken: make(map[time.Duration]bool), faults: make(map[string]int), retired: make(map[int]time.Duration), trace: trace}
	w.timer = time.NewTimer(time.Hour)
	w.checker.init(w)
	for i := range p.Masters {
		w.servers = append(w.servers, newServer(w, i))
	}
	w.initialise()
	r := w.random("boot")
	for i := range p.Proxies {
		links := make([]*link, p.Masters)
		for j := range links {
			links[j] = &link{}
		}
		w.links = append(w.links, links)
		p := &proxy{world: w, id: i}
		w.proxies = append(w.proxies, p)
		w.after(between(r, 0, time.Millisecond), p.boot)
	}
	w.settleFar()
	return w
}

// initialise marks all masters clean, as lockproxy init does before the first proxy starts.
func (w *World) initialise() {
	var ms []masters.Master
	for i := range w.servers {
		ms = append(ms, &endpoint{id: i})
	}
	c := &w.plan.Config
	bounds := vouch.Unbound
	if len(w.plan.Own) == 0 { // the bounds that every proxy would write first
		bounds = vouch.Bounds{
			Kept: c.TTLMax + rules.Drift(c.TTLMax, c.DriftFactor) + c.Grace, Grace: c.Grace, DriftFactor: c.DriftFactor,
			Patience: c.InstanceTimeout,
		}
	}
	for _, s := range w.servers {
		for db := range databases {
			canary := vouch.Canary{
				DB: db, Slot: s.id, Process: s.runID(), Lineage: "-", Epoch: 1, Members: quorum.Members(ms, c.Deployment),
				Bounds: bounds, Durable: s.append == "always" && s.replicas == 0, Past: s.past(),
			}
			s.put(&session{db: db}, "lockproxy:canary", item{text: canary.String()})
		}
	}
}

// now returns the true time: the time since the world began.
func (w *World) now() time.Duration { return time.Since(w.start) }

// asleep returns how long all proxies have stood still.
func (w *World) asleep() time.Duration { return time.Duration(w.slept.Load()) }

// unnoticed returns the part of a sleep that the proxies' clock does not show. A client that was awake counts this
// part, from its own request.
func (w *World) unnoticed(slept time.Duration) time.Duration {
	if w.plan.Paused {
		return slept
	}
	return 0
}

// until returns how long a client relies on a lock that it asked for when the proxies had slept for slept. The client
// goes by the proxy's promise, or counts the TTL from its own send.
func (w *World) until(promised time.Time, sent, ttl, slept time.Duration) time.Duration {
	slept = w.asleep() - slept
	return max(promised.Sub(w.start)-w.unnoticed(slept), sent+ttl-slept)
}

// random returns the stream of random numbers for a name.
func (w *World) random(name string, ids ...int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, name, ids)
	return rand.New(rand.NewPCG(w.plan.Seed.Number, h.Sum64()))
}

// take reserves an instant at or after now + d. The parity is 1 for the network, and 0 for clients.
func (w *World) take(d time.Duration, parity time.Duration) time.Duration {
	at := w.now() + max(d, 1)
	if at&1 != parity {
		at++
	}
	for w.taken[at] {
		at += 2
	}
	w.taken[at] = true
	return at
}

// after lets an event happen d later. mu is held, in after and in f.
func (w *World) after(d time.Duration, f func()) {
	at := w.take(d, 1)
	heap.Push(&w.events, event{at, f})
	if w.events[0].at == at {
		w.timer.Reset(at - w.now())
	}
}

// turn lets the events happen, each at its instant, until over is closed.
func (w *World) turn(over <-chan struct{}) {
	for {
		select {
		case <-w.timer.C:
		case <-over:
			return
		}
		w.mu.Lock()
		for len(w.events) > 0 && w.events[0].at <= w.now() {
			e := heap.Pop(&w.events).(event)
			delete(w.taken, e.at)
			e.f()
		}
		if len(w.events) > 0 {
			w.timer.Reset(w.events[0].at - w.now())
		}
		w.mu.Unlock()
	}
}

// An event happens at an instant.
type event struct {
	at time.Duration
	f  func()
}

// An agenda is a heap of events, the next one first.
type agenda []event

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }

// Push is for package heap.
func (a *agenda) Push(x any) { *a = append(*a, x.(event)) }

// Pop is for package heap.
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	(*a)[len(*a)-1] = event{}
	*a = (*a)[:len(*a)-1]
	return last
}

// sleep lets a client wait. mu is not held.
func (w *World) sleep(d time.Duration) {
	w.mu.Lock()
	at := w.take(d, 0)
	w.mu.Unlock()
	time.Sleep(at - w.now())
	w.mu.Lock()
	delete(w.taken, at)
	w.mu.Unlock()
}

// do runs f at once. mu is not held before.
func (w *World) do(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// logf writes a line of the trace. mu is held.
func (w *World) logf(who, format string, args ...any) {
	if w.trace != nil {
		w.trace(fmt.Sprintf("%12.6f %-10s ", w.now().Seconds(), who) + fmt.Sprintf(format, args...))
	}
}

// between returns a duration from least to most.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}

// chance is true with probability p.
func chance(r *rand.Rand, p float64) bool { return r.Float64() < p }

// pick returns one of several.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }
