package sim

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/rules"
	"lockproxy/quorum/vouch"
)

// Operators: in worlds of the class Operated, an address may come to lead to another server while the old one lives on.
// Clocks are slewed, or run a little too fast or too slow. Each proxy has its own patience. Locks are taken from their
// holders by FORCEUNLOCK, and holders extend their lock by EXPIRE. All random draws for this are from streams of their
// own.

func (p *Plan) operate(r *rand.Rand) {
	p.Breaks = pick(r, 0, 0, 0.02, 0.1)
	if p.Constant { // the former holder's release would take the next holder's lock with the same token
		p.Breaks = 0
	}
	p.Databases = p.Databases || p.Spoken && chance(r, 0.4)
	if p.Spoken && p.Databases {
		p.Together, p.Exchanges, p.Reads, p.Resources = 0, 0, 0, max(p.Resources, 2)
	}
	switch kind := r.Float64(); {
	case kind < 0.2:
		p.Calm = false
		p.aimAt(aim{"rolling", aimRolling}, r)
	case kind < 0.4 && !p.Calm && len(p.Own) == 0:
		p.aimAt(aim{"addresses", aimAddresses}, r)
	}
	if p.Spoken && p.Together+p.Votes > 0 { // one word tells these clients of several locks
		p.Breaks = 0
	}
	if chance(r, 0.5) {
		p.patience(r)
	}
	for _, f := range operatorKinds {
		// One master alone is a quorum of clocks (assumption 3), and no other master can tell a proxy on an earlier
		// server of a later server (assumption 10).
		if !p.Rolls && !p.Calm && chance(r, 0.3) && p.Masters > 1 {
			p.Faults, p.Forgets = append(p.Faults, f.name), true
		}
	}
	// Only the present holder may extend by EXPIRE: nothing is compared.
	if p.Breaks+p.Thefts+p.Takeovers == 0 && !slices.Contains(p.Faults, suspended) {
		p.Expires = pick(r, 0.2, 0.5)
	}
	if p.Aim == "" {
		p.stir(rand.New(rand.NewPCG(p.Seed.Number, 10)))
	}
}

// aimAddresses has short locks, and addresses that lead elsewhere for longer than quarantines last.
func aimAddresses(p *Plan, r *rand.Rand) {
	p.Faults = []string{"address moved", pick(r, "address moved", "link cut", "proxy cut off", "proxy killed")}
	p.TTLLeast = pick(r, 60*time.Millisecond, 200*time.Millisecond)
	p.TTLMost = 2 * p.TTLLeast
	p.Config.TTLMax = pick[time.Duration](r, 1, 4) * p.TTLMost
	p.Think, p.Gap = 10*time.Millisecond, pick(r, 100*time.Millisecond, 500*time.Millisecond)
}

// patience gives each proxy a patience of its own.
func (p *Plan) patience(r *rand.Rand) {
	for len(p.Own) < p.Proxies-1 {
		p.Own = append(p.Own, p.Config)
	}
	for i := range p.Own {
		p.Own[i].InstanceTimeout *= pick[time.Duration](r, 1, 3, 10)
		p.Own[i].MasterDeadAfter *= pick[time.Duration](r, 1, 3)
	}
}

// operatorKinds are faults of addresses and clocks.
var operatorKinds = []faultKind{
	{name: "address moved", forgets: true, strike: moveAddress},
	{name: "clock slewed", forgets: true, setsClock: true, strike: slewClock},
	{name: "clock a little too fast", forgets: true, setsClock: true, strike: runClock(1.01, 1.2)},
	{name: "clock too slow", forgets: true, setsClock: true, strike: runClock(0.3, 0.99)},
}

// moveAddress lets a master's address lead to another server, which is empty or has a replica's data. Some proxies are
// still connected to the old server, which lives on for a while.
func moveAddress(w *World, r *rand.Rand) func() {
	was := w.victim(r)
	if was.down || w.servers[was.id] != was || w.formerOf(was) != nil {
		return nil
	}
	if len(w.servers)%2 == 0 && len(w.former) > 0 { // assumption 10
		return nil
	}
	is := was.other()
	if chance(r, 0.5) {
		is.store.journal = slices.Clone(was.store.journal)
		is.fallBehind(r, 0)
		is.descend()
	}
	w.logf("fault", "the address of %s leads to another server", was.addr)
	w.servers[was.id], w.former = is, append(w.former, was)
	for _, p := range w.proxies {
		if chance(r, 0.5) {
			was.cutFrom(p)
		}
	}
	w.after(between(r, time.Millisecond, 2*w.plan.loosest().TTLMax), func() { w.retire(was) })
	return func() {}
}

// formerOf returns the former server behind the address of s; nil if there is none.
func (w *World) formerOf(s *server) *server {
	for _, f := range w.former {
		if f.id == s.id {
			return f
		}
	}
	return nil
}

// cleared is called when a quarantine ends. If a proxy ends it by ttl_max alone, and not all other masters know of a
// later server, the former server behind the address ends, and the locks do not bind that it may have granted in the last
// ttl_max (assumption 10).
func (s *server) cleared(c *session) {
	w := s.world
	f, byInit := w.formerOf(s), c.life == nil || c.life.engine == nil
	ended, had := w.retired[s.id]
	if f == nil && (!had || w.now()-ended > w.plan.loosest().TTLMax) || byInit || c.life.foretold[place{c.db, s.addr}] {
		return
	}
	unaware := func(o *server) bool { return o.id != s.id && (o.down || !o.knowsEpochOf(s, c.db)) }
	if slices.ContainsFunc(slices.Concat(w.servers, w.former), unaware) {
		s.logf("its quarantine ends by ttl_max alone")
		for resource := range w.checker.promises {
			w.checker.doubt(resource, w.now())
		}
		w.after(0, func() { w.retire(f) }) // f may be s itself, which runs this command
	}
}

// knowsEpochOf says that a server has been told of o's epoch.
func (s *server) knowsEpochOf(o *server, db int) bool {
	canary, _ := o.store.get(db, "lockproxy:canary", 0)
	is, _ := vouch.ParseCanary(canary.text)
	roster, _ := s.store.get(db, "lockproxy:roster", 0)
	told := strings.Fields(roster.text)
	if len(told) <= o.id {
		return false
	}
	epoch, _ := strconv.ParseInt(told[o.id], 10, 64)
	return epoch >= is.Epoch
}

// other returns another, empty server for the same address.
func (s *server) other() *server {
	o := newServer(s.world, s.id)
	o.lives, o.promotions, o.clock, o.steps = s.lives+1, s.promotions, s.clock, s.steps
	o.clock.leads, o.steps.asked = slices.Clone(s.clock.leads), maps.Clone(s.steps.asked)
	o.twofold, s.twofold = true, true
	o.boot()
	return o
}

// cutFrom ends the connections of a proxy.
func (s *server) cutFrom(p *proxy) {
	for _, id := range slices.Sorted(maps.Keys(s.sessions)) {
		if c := s.sessions[id]; c.life.proxy == p {
			s.drop(c)
			c.reset()
		}
	}
}

// retire ends a server to which no address leads any more, unless it has ended already.
func (w *World) retire(s *server) {
	if !slices.Contains(w.former, s) {
		return
	}
	w.logf("fault", "the former %s is no more", s.addr)
	s.crash(false)
	w.retired[s.id] = w.now()
	w.former = slices.DeleteFunc(w.former, func(o *server) bool { return o == s })
}

// slewClock sets a clock right in steps, each within the tolerance.
func slewClock(w *World, r *rand.Rand) func() {
	s := w.victim(r)
	by := time.Duration((0.2 + 0.75*r.Float64()) * float64(w.tolerated()) * float64(pick(r, 1, 1, -1)))
	every, over := between(r, 5*time.Millisecond, 700*time.Millisecond), false
	var next func()
	next = func() {
		if over || w.quiet || s.down {
			return
		}
		w.setClock(s, by)
		w.after(every, next)
	}
	next()
	return func() { over = true }
}

// expire extends a lock by EXPIRE, which does not compare, or only if the new TTL is longer. So the lock must last
// until the answer.
func (c *client) expire(p *promise, ttl time.Duration) bool {
	w := c.world
	if w.now()+4*w.plan.loosest().InstanceTimeout+50*time.Millisecond > p.until {
		return true
	}
	req := quorum.ExpireRequest{Key: w.plan.key(p.resource), TTL: ttl}
	if chance(c.operating, 0.5) {
		req.TTL, req.Condition = pick(c.operating, ttl, 2*ttl, ttl/2), quorum.IfGreater
	}
	req.TTL = min(req.TTL, w.plan.of(c.proxy.id).TTLMax).Truncate(time.Millisecond)
	began, slept, before := w.now(), w.asleep(), p.until
	p.fence = 0
	w.do(func() {
		w.checker.prolonged[p.resource] = true
		if req.Condition == 0 {
			c.shorten(p, began+rules.Validity(req.TTL, 0, w.plan.of(c.proxy.id).DriftFactor))
		}
	})
	x, ok := ask(c.proxy, func(l *life, x quorum.Changed) {
		w.logf(c.name, "via %s: %s expires in %v (%v): %v, %v", l.name, p.resource, req.TTL, req.Condition, x.Applied, x.Err)
		w.checker.endedIn(4, w.now()-began, "an EXPIRE of "+c.name)
		switch {
		case p.over || w.now() >= before-(w.asleep()-slept): // the lock may be another client's
			p.over = true
		case x.Applied && !w.checker.returns(p, began):
			p.until = max(p.until, began+req.TTL-(w.asleep()-slept))
			w.checker.granted(p)
		case x.Err == nil && req.Condition == 0:
			w.checker.gone(p, "an EXPIRE")
			p.over = true
		}
	}, func(e *quorum.Engine, done func(quorum.Changed)) { e.Expire(req, done) })
	return ok && x.Err == nil && !p.over
}

// forceUnlock takes a resource from its holder by FORCEUNLOCK. Attempts under way at that moment may have lost a vote.
// Attempts that begin after the answer have not.
func (c *client) forceUnlock(resource string) {
	w, k := c.world, &c.world.checker
	w.do(func() {
		w.logf(c.name, "breaks %s", resource)
		k.doubt(resource, w.now()+time.Hour)
	})
	heard := func(l *life, x quorum.Changed) {
		w.logf(l.name, "has broken %s: %v, %v", resource, x.Applied, x.Err)
		if !w.plan.setsClocks() {
			k.broken[resource], k.doubtful[resource] = w.now(), w.now()
		}
	}
	_, _ = ask(c.proxy, heard, func(e *quorum.Engine, done func(quorum.Changed)) { e.Break(w.plan.key(resource), done) })
}

// setsClocks says that a fault of the plan sets a clock, perhaps back.
func (p *Plan) setsClocks() bool {
	return slices.ContainsFunc(p.Faults, func(name string) bool { return kindOf(name).setsClock })
}
