package sim

import (
	"time"

	"lockproxy/quorum/rules"
)

// Speaking clients in worlds with operators: their locks are in two databases, they extend their locks by commands that
// do not compare, and they break locks.

// selects makes sure that the connection is in the database s.db.
func (s *speaker) selects() bool {
	c := s.wire
	if c.db == s.db {
		return true
	}
	r, ok := s.ask("SELECT", string(rune('0'+s.db)))
	if ok && r == status("OK") {
		c.db = s.db
	}
	return ok && c.db == s.db
}

// forceUnlock takes a resource from its holder; see client.forceUnlock.
func (s *speaker) forceUnlock(resource string) {
	w, k := s.world, &s.world.checker
	w.do(func() { k.doubt(resource, w.now()+time.Hour) })
	q := &request{words: []string{"FORCEUNLOCK", resource}, most: 2}
	c := s.wire
	q.on = func() {
		for _, h := range k.holds[resource] { // the command's own connection does not hold the lock any more
			h.over = h.over || h.wire == c
		}
		if !w.plan.setsClocks() {
			k.broken[resource], k.doubtful[resource] = w.now(), w.now()
		}
	}
	_, _ = s.await(q)
}

// expire extends a lock by a command that does not compare. So the lock must last until the answer.
func (s *speaker) expire(l *wanted) bool {
	w, p := s.world, l.promise
	if w.now()+14*w.plan.loosest().InstanceTimeout+50*time.Millisecond > p.until {
		return true
	}
	ttl := pick(s.operating, l.ttl, l.ttl, 2*l.ttl, l.ttl/2).Truncate(time.Millisecond)
	ttl = max(min(ttl, w.plan.of(s.at.id).TTLMax), time.Millisecond)
	q, greater := &request{most: 4}, false
	switch kind := s.operating.Float64(); {
	case kind < 0.3:
		q.words = []string{"PEXPIRE", l.resource, millis(ttl)}
	case kind < 0.6:
		q.words, greater = []string{"PEXPIRE", l.resource, millis(ttl), "GT"}, true
	case kind < 0.8:
		q.words, q.most = []string{"SET", l.resource, l.token, "XX", "PX", millis(ttl)}, 0
	default:
		q.words, q.most, greater = []string{"SET", l.resource, l.token, "XX", "KEEPTTL"}, 0, true
	}
	before := time.Duration(0)
	w.do(func() {
		before, p.fence = p.until, 0
		w.checker.prolonged[l.resource] = true
		if !greater {
			s.shorten(p, w.now()+rules.Validity(ttl, 0, w.plan.of(s.at.id).DriftFactor))
		}
	})
	q.on = func() {
		_, failed := q.reply.(fault)
		done := q.reply == int64(1) || q.reply == status("OK")
		switch {
		case p.over || w.now() >= before-(w.asleep()-q.slept): // the lock may be another client's
			p.over = true
		case done && q.words[len(q.words)-1] != "KEEPTTL":
			p.until = max(p.until, q.until(w, ttl, 0))
			w.checker.granted(p)
		case done:
			w.checker.granted(p)
		case !failed && !greater && !q.held:
			w.checker.gone(p, q.words[0])
			p.over = true
		}
	}
	_, ok := s.await(q)
	return ok && !p.over
}
