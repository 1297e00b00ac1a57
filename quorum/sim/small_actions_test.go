package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"lockproxy/quorum"
)

// An alphabet is what can be done in a kind of small worlds: each is aimed at a group of rules.
type alphabet struct {
	name    string
	verbs   string // and how long nothing may be done
	depth   int    // of what a test has time for
	ttl     time.Duration
	forgets bool   // masters may forget so much that a lock is lost
	append  string // appendfsync; with "always" masters have a replica
	far     bool   // masters are far away, so that several batches are under way
	roams   bool   // a client goes through either proxy, and keeps its token until it has the lock; else each has its own proxy
}

const long = 5 * time.Second

var alphabets = []alphabet{
	{name: "late", verbs: "take free hold deaf heal drop 150ms", depth: 4, ttl: long},
	{name: "tokens", verbs: "take again free hold deaf heal", depth: 3, ttl: long, roams: true},
	{name: "extensions", verbs: "take keep free hold deaf heal 150ms 450ms", depth: 4, ttl: 400 * ms},
	{name: "scripts", verbs: "take evalTake evalKeep evalFree hold deaf heal 150ms", depth: 4, ttl: long},
	{name: "readers", verbs: "evalRead evalWrite evalKeep evalFree hold deaf heal 150ms 450ms", depth: 4, ttl: 400 * ms},
	{name: "forgetting", verbs: "take free wipe crash older cut heal 150ms 2.2s", depth: 4, ttl: 400 * ms, forgets: true},
	{name: "horizons", verbs: "take wipe crash hold heal 150ms 2.2s", depth: 4, ttl: long, forgets: true},
	{name: "replicas", verbs: "take behind crash cut 150ms", depth: 5, ttl: long, forgets: true, append: "always"},
	{name: "files", verbs: "take crash older cut 150ms", depth: 5, ttl: long, forgets: true, append: "everysec"},
	{name: "copies", verbs: "take short keep free hold aged 600ms", depth: 4, ttl: long, forgets: true},
	{name: "clocks", verbs: "take keep ahead back sleep cut heal 150ms 450ms", depth: 4, ttl: 400 * ms, forgets: true},
	{name: "far", verbs: "take free hold deaf heal drop cut 150ms", depth: 4, ttl: long, far: true},
	{name: "far-forgetting", verbs: "take free wipe crash cut heal 150ms 2.2s", depth: 4, ttl: 400 * ms, forgets: true, far: true},
	{name: "addresses", verbs: "take move cut heal 600ms 2.2s", depth: 4, ttl: long, forgets: true},
}

// plan returns that of its worlds.
func (a *alphabet) plan() Plan {
	p := Plan{
		Masters: 3, Proxies: 2, Clients: 2, Resources: 1, Latency: 100 * time.Microsecond,
		Forgets: a.forgets, Append: a.append, Standing: a.append == "always",
		Config: quorum.Config{
			Databases: 1, InstanceTimeout: 100 * ms, DriftFactor: 0.01, Grace: 50 * ms, MasterDeadAfter: 500 * ms,
			TTLMax: time.Hour, // so that no quarantine ends by it
		},
	}
	if a.far {
		p.Latency, p.Config.FarAway = 4*ms, ms
	}
	if strings.Contains(a.verbs, "eval") {
		p.Votes = 1
	}
	p.Spares = strings.Contains(a.verbs, "aged")
	return p
}

// An action is something that is done, by or to whom it names.
type action struct {
	verb
	name                  string
	client, proxy, master int // counted from 0; -1 is nobody
	lasts                 time.Duration
}

func (x action) String() string {
	s := x.name
	for i, n := range []int{x.client, x.proxy, x.master} {
		if n >= 0 {
			s += fmt.Sprintf(" %c%d", "cpm"[i], n+1)
		}
	}
	return s
}

// actions returns all of an alphabet.
func (a *alphabet) actions() []action {
	var all []action
	for _, name := range strings.Fields(a.verbs) {
		v, ok := verbs[name]
		if !ok {
			v.do = func(*smallWorld, action) {}
		}
		lasts, _ := time.ParseDuration(name)
		for n := range 12 {
			x, same := action{v, name, n / 6, n / 3 % 2, n % 3, lasts}, false
			if v.whom == "cp" && !a.roams {
				same = x.client != x.proxy
			}
			for i, who := range []*int{&x.client, &x.proxy, &x.master} {
				if !strings.Contains(v.whom, "cpm"[i:i+1]) {
					same = same || *who > 0
					*who = -1
				}
			}
			if !same {
				all = append(all, x)
			}
		}
	}
	return all
}

// A verb is what can be done to whom, and when that makes sense. Both functions are called with the world's mu held.
type verb struct {
	whom string // by their letters
	can  func(w *smallWorld, x action) bool
	do   func(w *smallWorld, x action)
}

var verbs = map[string]verb{
	"take":      {"cp", idle, asks(func(h *hand) { h.voted, h.lock = nil, h.acquire(resourceName(0), h.ttl) })},
	"again":     {"cp", holds, asks(func(h *hand) { h.reenter(h.lock, h.ttl) })},
	"keep":      {"cp", holds, asks(func(h *hand) { h.extend(h.lock, quorum.ExtendRequest{TTL: h.ttl}) })},
	"short":     {"cp", holds, asks(func(h *hand) { h.extend(h.lock, quorum.ExtendRequest{TTL: 100 * ms}) })},
	"free":      {"cp", holds, asks(func(h *hand) { h.release(h.lock) })},
	"evalTake":  {"cp", idle, asks(func(h *hand) { h.evalTake(&hashLock) })},
	"evalRead":  {"cp", idle, asks(func(h *hand) { h.evalTake(&readLock) })},
	"evalWrite": {"cp", idle, asks(func(h *hand) { h.evalTake(&writeLock) })},
	"evalKeep":  {"cp", evals, asks(func(h *hand) { h.extendByVote(h.voted) })},
	"evalFree":  {"cp", evals, asks(func(h *hand) { h.freeByVote(h.voted) })},

	"hold": {"pm", isWhole, func(w *smallWorld, x action) { w.link(x).block(up) }},
	"deaf": {"pm", isWhole, func(w *smallWorld, x action) { w.link(x).block(down) }},
	"cut":  {"pm", isWhole, func(w *smallWorld, x action) { w.link(x).blocked = [2]bool{true, true} }},
	"heal": {"pm", isHeld, heal},
	"drop": {"pm", isHeld, drop},
	"move": {"pm", func(w *smallWorld, x action) bool { return !w.servers[x.master].twofold }, move},

	"wipe":   {"m", nil, func(w *smallWorld, x action) { w.servers[x.master].do(&session{}, []string{"FLUSHALL"}) }},
	"crash":  {"m", nil, crash},
	"older":  {"m", hasChanged, older},
	"aged":   {"m", mayAge, aged},
	"behind": {"m", hasChanged, behind},
	"ahead":  {"m", isUnset, func(w *smallWorld, x action) { w.setClock(w.servers[x.master], 2*w.hands[0].ttl) }},
	"back":   {"m", isUnset, func(w *smallWorld, x action) { w.setClock(w.servers[x.master], -2*w.hands[0].ttl) }},

	"sleep": {"", nil, func(w *smallWorld, _ action) { suspendProxies(w.World, rand.New(seldom{})) }}, // for 2 s
}

// A hand is a client that does what it is told.
type hand struct {
	*client
	ttl   time.Duration
	lock  *promise   // nil: it has none
	voted *votedHold // nil: the lock was not taken by a script
	busy  bool       // it has not been answered
}

func (a *alphabet) newHand(w *World, i int) *hand {
	h := &hand{client: newClient(w, i), ttl: a.ttl}
	h.reuses, h.keeps = a.roams, false
	h.rng, h.voting = rand.New(seldom{}), rand.New(seldom{})
	return h
}

// Seldom is a source of chance by which nothing happens that need not.
type seldom struct{}

func (seldom) Uint64() uint64 { return math.MaxUint64 }

// asks lets a client ask for something. It may be answered when other actions follow.
func asks(f func(h *hand)) func(w *smallWorld, x action) {
	return func(w *smallWorld, x action) {
		h := w.hands[x.client]
		h.proxy, h.busy = w.proxies[x.proxy], true
		w.clients.Go(func() {
			f(h)
			w.do(func() { h.busy = false })
		})
	}
}

func (h *hand) evalTake(lock *votedLock) {
	h.lock, h.voted = nil, &votedHold{lock: lock, names: []string{resourceName(0)}, taken: resourceName(0), ttl: h.ttl}
	if h.takeByVote(h.voted) {
		h.lock = h.voted.promises[0]
	}
}

// idle says that a client relies on no lock, and waits for none; has that it may have one, which holds and evals tell apart.
func idle(w *smallWorld, x action) bool {
	h := w.hands[x.client]
	return !h.busy && (h.lock == nil || h.lock.over || w.now() >= h.lock.until)
}

func (h *hand) has() bool { return !h.busy && h.lock != nil && !h.lock.over }

func holds(w *smallWorld, x action) bool {
	return w.hands[x.client].has() && w.hands[x.client].voted == nil
}

func evals(w *smallWorld, x action) bool {
	return w.hands[x.client].has() && w.hands[x.client].voted != nil
}

func (w *smallWorld) link(x action) *link { return w.links[x.proxy][x.master] }

func isHeld(w *smallWorld, x action) bool { return w.link(x).blocked != [2]bool{} }

func isWhole(w *smallWorld, x action) bool { return !isHeld(w, x) }

// heal lets through at once what a link has held back, but for what is left of a broken connection: that comes when undos are no longer repeated.
func heal(w *smallWorld, x action) {
	for way, held := range w.link(x).held {
		w.link(x).blocked[way], w.link(x).held[way] = false, nil
		for _, s := range held {
			d := s.conn.delay()
			if s.conn.gone {
				d += 2500 * ms
			}
			s.conn.travel(s, d)
		}
	}
}

// drop breaks a proxy's connections to a master. What is held on its way there comes all the same.
func drop(w *smallWorld, x action) {
	for _, c := range w.proxies[x.proxy].life.conns {
		if c.server == w.servers[x.master] {
			c.hangUp(net0)
			for _, s := range c.streams[up] {
				s.lost = false
			}
		}
	}
}

// move lets an address lead to another server, which has nothing. One proxy connects to that, and the other stays where it is.
func move(w *smallWorld, x action) {
	was := w.servers[x.master]
	w.servers[was.id], w.former = was.other(), append(w.former, was)
	was.cutFrom(w.proxies[x.proxy])
}

// crash restarts a master, without its data unless it keeps all on disk.
func crash(w *smallWorld, x action) {
	s := w.servers[x.master]
	s.crash(false)
	if s.append != "always" {
		s.store = newStore()
	}
	s.boot()
}

// changes returns when the lock changed on a master.
func (s *server) changes() (at []time.Duration) {
	for _, m := range s.store.journal {
		if m.key == resourceName(0) {
			at = append(at, m.at)
		}
	}
	return at
}

// changed returns when it did so last; 0 if it never did.
func (s *server) changed() time.Duration {
	return append([]time.Duration{0}, s.changes()...)[len(s.changes())]
}

func hasChanged(w *smallWorld, x action) bool { return w.servers[x.master].changed() > 0 }

// older restarts a master with the data that it had before the lock changed last.
func older(w *smallWorld, x action) {
	s := w.servers[x.master]
	s.crash(false)
	s.store.rewind(s.changed() - 1)
	s.boot()
}

// aged restarts a master with the data that it had when the lock had changed there for the first time.
func aged(w *smallWorld, x action) {
	s := w.servers[x.master]
	s.crash(false)
	s.store.rewind(s.changes()[0])
	s.boot()
	w.aged = true
}

// mayAge says that this is other data, and that no other master has been given such.
func mayAge(w *smallWorld, x action) bool { return !w.aged && len(w.servers[x.master].changes()) > 1 }

// behind lets it have that data because it was a replica for a moment.
func behind(w *smallWorld, x action) {
	s := w.servers[x.master]
	s.cutConnections(false)
	s.store.rewind(s.changed() - 1)
	s.descend()
}

// isUnset says that a clock was not set yet: twice between two looks at it would be against assumption 1.
func isUnset(w *smallWorld, x action) bool { return len(w.servers[x.master].steps.list) == 0 }
