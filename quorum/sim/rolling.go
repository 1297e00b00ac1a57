package sim

import (
	"math/rand/v2"
	"time"

	"lockproxy/quorum/rules"
)

// Rolling: in some of the worlds of operators, masters forget one after the other, each when the one before is trusted
// again and all locks have been extended since. Nothing else goes wrong, and no lock may be lost: a master is given the
// locks that it lacks (rule 11).

const unfilled = "a master is not given what it lacks of a lock"

// aimRolling has locks with many extensions, by clients that seldom meet.
func aimRolling(p *Plan, r *rand.Rand) {
	p.Rolls, p.Shifts, p.Databases = true, false, false
	p.Masters, p.Transactions = pick(r, 3, 3, 4, 5), pick(r, 0, 0.2)
	p.Append = pick(r, "", "everysec", "always")
	p.TTLLeast = pick(r, 60*time.Millisecond, 150*time.Millisecond)
	p.TTLMost = 2 * p.TTLLeast
	p.Config.TTLMax = pick[time.Duration](r, 1, 2) * p.TTLMost
	p.Clients, p.Think, p.Hold, p.Touches = 2+r.IntN(3), pick(r, 50*time.Millisecond, 200*time.Millisecond), p.TTLMost, 0.9
	if len(p.Own) > 0 {
		p.Proxies = 1 + len(p.Own)
	}
	for i := range p.Own {
		p.Own[i].TTLMax = p.Config.TTLMax
	}
	p.Attempts = 20 + r.IntN(20)
	p.Roams, p.Replaces, p.Keeps = pick(r, 0, 0.3), pick(r, 0, 0.3), 0.7
	p.Votes, p.Together, p.Exchanges, p.Moves, p.Thefts, p.Reads, p.Stretches = 0, 0, 0, 0, 0, 0, 0
}

// roll makes one master forget. The next master follows when the first is trusted again, and locks have been extended.
// roll waits until all masters have had all locks for a while: two clients that ask at the same moment leave a lock
// with no spare vote, and a gift to a master is looked at once more.
func (w *World) roll(r *rand.Rand, i int, lacked time.Duration) {
	s := w.servers[i%len(w.servers)]
	if w.checker.lacking() {
		lacked = w.now()
	}
	switch {
	case w.quiet:
		return
	case w.now()-lacked < 3*w.plan.loosest().InstanceTimeout+50*time.Millisecond:
		w.after(10*time.Millisecond, func() { w.roll(r, i, lacked) })
		return
	}
	before, _ := s.store.get(0, "lockproxy:canary", 0)
	w.faults["master forgets in turn"]++
	if chance(r, 0.5) {
		s.logf("FLUSHALL")
		s.do(&session{}, []string{"FLUSHALL"})
	} else {
		s.logf("is killed and forgets")
		s.crash(false)
		s.store = newStore()
		w.after(between(r, time.Millisecond, 300*time.Millisecond), s.restart)
	}
	var wait func()
	wait = func() {
		if w.quiet {
			return
		}
		canary, _ := s.store.get(0, "lockproxy:canary", 0)
		_, quarantined := s.store.get(0, "lockproxy:quarantine", 0)
		if canary.text == "" || canary.text == before.text || quarantined {
			w.after(20*time.Millisecond, wait)
			return
		}
		w.after(w.rest(), func() { w.roll(r, i+1, w.now()) })
	}
	wait()
}

// rest is the time in which every lock is extended again and again, and masters get all missing locks.
func (w *World) rest() time.Duration {
	c := w.plan.loosest()
	return 2*(c.TTLMax+rules.Drift(c.TTLMax, c.DriftFactor)+c.Grace) + 3*c.InstanceTimeout + 100*time.Millisecond
}

// lacking says that a master lacks a promised lock. No master may lack a lock for long.
func (k *checker) lacking() bool {
	lacks := false
	for i := range k.world.plan.Resources {
		for _, p := range k.promises[resourceName(i)] {
			switch now := k.world.now(); {
			case !k.stands(p) || k.on(p.resource, p.token) == len(k.world.servers):
				p.lacks = 0
				continue
			case p.lacks == 0:
				p.lacks = now
			case now-p.lacks > k.world.rest():
				k.report(unfilled, "%s of %s (%s) since %v", p.resource, p.client.name, p.token, p.lacks)
			}
			lacks = true
		}
		for _, h := range k.holds[resourceName(i)] {
			lacks = lacks || !h.over && !h.given && k.on(h.resource, h.token) < len(k.world.servers)
		}
	}
	return lacks
}

// forgets says that a quorum may have forgotten a lock.
func (p *Plan) forgets() bool { return p.Forgets && !p.Rolls }
