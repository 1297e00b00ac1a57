package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/masters"
)

// Stirs: in worlds with operators that have no aim of their own, lockproxy init runs while clients lock, and the
// addresses of two masters are exchanged for a while. Speaking clients add to the TTL of their locks. Where nothing
// else goes wrong, the messages of one master are not heard.

// stir takes its chance from a stream of its own.
func (p *Plan) stir(r *rand.Rand) {
	if p.Spoken && !slices.Contains(p.Faults, suspended) {
		p.Adds = pick(r, 0, 0.2, 0.5)
	}
	if p.Calm {
		if p.Masters > 2 && chance(r, 0.6) {
			p.Faults, p.Gap = []string{"messages stall", "messages break"}, pick(r, 20*time.Millisecond, 200*time.Millisecond)
		}
		return
	}
	if p.Masters > 1 && chance(r, 0.3) {
		p.Faults, p.Forgets = append(p.Faults, "addresses exchanged"), true
	}
	// Then answers about values and fences, and about locks by vote, do not bind any more.
	if p.Fences+p.Exchanges+p.Thefts+p.Votes+p.Reads == 0 && chance(r, 0.4) {
		p.Faults, p.Forgets = append(p.Faults, "initialised"), true
	}
}

// stirKinds are operators' acts on all masters, or on two, and faults of messages.
var stirKinds = []faultKind{
	{name: "initialised", forgets: true, strike: initialised},
	{name: "addresses exchanged", forgets: true, strike: exchangeAddresses},
	{name: "messages stall", strike: deafen(func(c *conn) { c.link = &link{blocked: [2]bool{down: true}} })},
	{name: "messages break", strike: deafen(func(c *conn) {
		c.hangUp(net0)
		if !c.killed {
			c.server.drop(c)
		}
	})},
}

// initialised is lockproxy init. Locks held at that time, and attempts under way, are not promised any more.
func initialised(w *World, _ *rand.Rand) func() {
	if w.initialising {
		return nil
	}
	w.initialising, w.inits = true, w.inits+1
	l := &life{proxy: w.proxies[0], number: -w.inits, name: "init"}
	w.logf("fault", "lockproxy init begins")
	voids := func() {
		for i := range w.plan.Resources {
			k := &w.checker
			k.doubt(resourceName(i), w.now())
			k.broken[resourceName(i)] = w.now()
		}
	}
	voids()
	w.closing.Go(func() {
		var ms []masters.Master
		for i := range w.servers {
			ms = append(ms, &endpoint{life: l, id: i})
		}
		ctx, cancel := context.WithTimeout(context.Background(), w.plan.Config.MasterDeadAfter)
		defer cancel()
		err := quorum.Initialise(ctx, w.plan.Config, ms)
		w.do(func() {
			w.logf("fault", "lockproxy init has ended: %v", err)
			voids()
			w.initialising, w.due = false, w.due || err != nil
		})
	})
	return func() {}
}

// exchangeAddresses lets the address of each of two masters lead to the other. Some proxies are still connected as before.
func exchangeAddresses(w *World, r *rand.Rand) func() {
	a, b := pick(r, w.servers...), pick(r, w.servers...)
	if a == b || w.servers[a.id] != a || w.servers[b.id] != b || a.down || b.down {
		return nil
	}
	exchange := func() {
		w.logf("fault", "the addresses of %s and %s are exchanged", a.addr, b.addr)
		a.twofold, b.twofold = true, true
		w.servers[a.id], w.servers[b.id] = w.servers[b.id], w.servers[a.id]
		for _, p := range w.proxies {
			if chance(r, 0.6) {
				a.cutFrom(p)
				b.cutFrom(p)
			}
		}
	}
	exchange()
	w.due = true // servers that were marked under the other's address are refused under their own
	return exchange
}

// deafen strikes the connections for one master's messages.
func deafen(strike func(*conn)) func(*World, *rand.Rand) func() {
	return func(w *World, r *rand.Rand) func() {
		p := pick(r, w.proxies...)
		if p.life == nil {
			return nil
		}
		w.logf("fault", "%s does not hear %s", p.life.name, w.servers[0].addr)
		var struck []*conn
		for _, c := range p.life.conns {
			if c.server == w.servers[0] && c.listener != nil && !c.gone && !c.link.blocked[down] {
				strike(c)
				struck = append(struck, c)
			}
		}
		return func() {
			for _, c := range struck {
				c.link.heal()
				c.link = w.links[p.id][c.server.id]
			}
		}
	}
}

// addText is redis-py's text of an extension that adds.
const addText = "local token = redis.call('get', KEYS[1]) if not token or token ~= ARGV[1] then return 0 end " +
	"local expiration = redis.call('pttl', KEYS[1]) if not expiration then expiration = 0 end if expiration < 0 then return 0 end " +
	"local newttl = ARGV[2] if ARGV[3] == \"0\" then newttl = ARGV[2] + expiration end redis.call('pexpire', KEYS[1], newttl) return 1"

// add adds to the TTL of a lock: its client counts on the sum.
func (s *speaker) add(l *wanted) bool {
	w, p := s.world, l.promise
	before := time.Duration(0)
	w.do(func() { before, p.fence = p.until, 0 })
	q := &request{most: 6, words: evalWords(addText, []string{l.resource}, l.token, millis(l.ttl), "0")}
	return s.extend(q, l, before, "an addition", func(int64) { p.until = before + l.ttl - (w.asleep() - q.slept) })
}
