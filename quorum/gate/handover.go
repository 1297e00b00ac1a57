package gate

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"lockproxy/quorum"
	"lockproxy/quorum/pubsub"
)

// A handover is the release of a lock, and with it the try of the first waiter, in one batch to each master. The waiter has the lock one
// round trip after the release was asked for; by the bells it would be two.
//
//	in line            The try is that of the head, whose turn comes next by the bells, too.
//	no try in vain     If the try fails, the head waits on as if there had been no try: its forecast goes on meanwhile, and hears every
//	                   bell. The try counts for no pause, and its error is nobody's.
//	one bell, one try  Masters ring for the release, as for every release: waiters of other proxies hear it. Here the bells carry the
//	                   name of the handover. If the try got the lock, they tell the next waiter nothing, however late they come. If
//	                   the try failed, they count as the bells of any other release.
//	other proxies      A handover leaves waiters of other proxies no chance. So some releases are open: see turn.
type handover struct {
	waiter *Waiter
	name   string // of the release's bells
	// The forecast of the next waiter, if the try gets the lock: with the bells of other releases since the try began.
	forecast forecast
	rang     uint64 // by master: the release's bells, for the head if the try fails
}

// newNames returns the beginning of this proxy's names. A name is shorter than the envelope of a message.
func newNames() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand crashes the program instead
	return "lockproxy:" + hex.EncodeToString(b[:])
}

// A turn bounds how long the waiters of one proxy hand a resource over to each other. At the end of a turn one release is open: its
// bells wake the heads of all proxies, which compete as ever. So waiters of other proxies get the resource as often as
// without handovers, but later by a turn, and then have a turn themselves.
type turn struct {
	left int       // so many handovers
	over time.Time // then a single handover is left
}

const (
	turnHandovers = 8
	turnMost      = 100 * time.Millisecond
	turnsMax      = 1024 // of so many resources the turns are remembered; the first release of any other is open
)

func newTurns() *simplelru.LRU[uint64, *turn] {
	turns, err := simplelru.NewLRU[uint64, *turn](turnsMax, nil)
	if err != nil {
		panic("gate: turns need a positive number")
	}
	return turns
}

// mayHandOver says whether the turn goes on, and begins the next turn if not. mu is held.
func (g *Gates) mayHandOver(key quorum.Key) bool {
	hash, now := maphash.Comparable(g.seed, key), time.Now()
	t, known := g.turns.Get(hash)
	if !known {
		t = &turn{}
		g.turns.Add(hash, t)
	}
	if t.left < turnHandovers && now.After(t.over) {
		t.left = 0
	}
	//mutant: the waiters of one proxy keep a resource for themselves
	if t.left == 0 {
		*t = turn{left: turnHandovers, over: now.Add(turnMost)}
		return false
	}
	t.left--
	return true
}

// Release is Release of the engine. The lock is handed over if the token is known to hold the lock: as the latest waiter's who got the
// lock here.
func (g *Gates) Release(key quorum.Key, token string, done func(quorum.Released)) {
	g.mu.Lock()
	gate := g.gates[key]
	known := gate != nil && gate.holder == token && token != ""
	g.mu.Unlock()
	//mutant: whoever names a token has the lock handed over
	if known {
		g.HandOver(key, token, done)
	} else {
		g.engine.Release(key, token, done)
	}
}

// HandOver is Release of the engine, for a token that most probably holds the lock. If somebody waits here, and nobody's try is under
// way, the lock is handed over. done is called as soon as without a waiter.
func (g *Gates) HandOver(key quorum.Key, token string, done func(quorum.Released)) {
	gate, h := g.begin(key)
	if h == nil {
		g.engine.Release(key, token, done)
		return
	}
	g.engine.HandOver(quorum.HandOver{Token: token, Bell: h.name, Next: h.waiter.req}, done, func(a quorum.Acquired) { gate.over(h, a) })
}

// begin begins the handover to the head of the resource's gate, if the head sleeps.
func (g *Gates) begin(key quorum.Key) (*gate, *handover) {
	g.mu.Lock()
	defer g.mu.Unlock()
	gate := g.gates[key]
	//mutant: a lock is handed over to a waiter who hears no bells
	if gate == nil || !gate.subscribed || g.closed { // the next waiter would not hear when the lock is given back
		return nil, nil
	}
	gate.holder = ""
	i := slices.IndexFunc(gate.queue, func(w *Waiter) bool { return !w.over })
	if i < 0 || gate.queue[i].trying || !g.mayHandOver(key) {
		return nil, nil
	}
	g.handovers++
	gate.begun++
	gate.handover = &handover{waiter: gate.queue[i], name: fmt.Sprintf("%s%012x", g.names, g.handovers), forecast: gate.forecast.renewed(g.quorum)}
	//mutant: a handover counts as no try of its waiter
	gate.handover.waiter.trying = true
	return gate, gate.handover
}

// over ends a handover.
func (g *gate) over(h *handover, a quorum.Acquired) {
	g.gates.mu.Lock()
	w := h.waiter
	w.trying, g.handover = false, nil
	//mutant: a handover that failed is told to its waiter
	w.over = a.Lock != nil || w.late
	over := w.over
	if a.Lock != nil {
		g.forecast, g.handed, g.holder = h.forecast, true, w.req.Token
		g.forecast.won(time.Now().Add(w.req.TTL))
	} else {
		//mutant: bells that come after a handover that failed are not heard
		g.unused = h.name
		//mutant: bells that came before a handover failed are forgotten
		for m := range g.gates.masters {
			if h.rang>>m&1 == 1 {
				g.ring(m)
			}
		}
		a = quorum.Acquired{Err: w.cause, Refused: w.cause == nil}
		if a.Refused && w.err != nil {
			a = quorum.Acquired{Err: w.err}
		}
	}
	g.signal()
	g.gates.mu.Unlock()
	if over {
		w.finish(a)
	}
}

// counts says whether a bell tells that its master may be free. A bell of a handover under way is kept until the handover is over. mu is
// held.
func (g *gate) counts(m pubsub.Message) bool {
	//mutant: the bells of a handover wake the next waiter
	if !strings.HasPrefix(m.Payload, g.gates.names) {
		return true
	}
	if g.handover != nil && m.Payload == g.handover.name {
		g.handover.rang |= 1 << m.Master
		return false
	}
	return m.Payload == g.unused
}
