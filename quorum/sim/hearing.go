package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/rules"
)

// The checker's view of a proxy's replies. A lock is promised when its reply is written to a client that is there. The
// client counts its TTL from its own send.

const (
	garbled   = "a reply that was not asked for"
	tooSlow   = "a lock is given to a client that is gone"
	overtaken = "a waiter is overtaken"
	asleep    = "a waiter is not woken"
	dropped   = "a held lock is not extended"
	untold    = "the loss of a held lock is not told"
)

// A wanted is a lock that a request asks for.
type wanted struct {
	by              *client
	resource, token string
	ttl, waits      time.Duration
	fenced, hold    bool
	shared          bool             // shared with other shared locks
	at              int              // the place of its reply within the reply to an EXEC, or -1
	grants          func(reply) bool // whether the reply, or its part, gives the lock; nil if OK does
	beside          []*wanted        // further locks of the request
	again           bool             // its token is used again, so that its fate says nothing
	before          fenceMark
	given           bool // its release was asked for
	returned        bool // and the release has happened
	renewals        int  // of the resource, when the lock was asked for
	promise         *promise
	fence           int64
}

// A heldOpen is a lock that lives as long as its connection.
type heldOpen struct {
	*wanted
	wire *wire
	over bool // the connection is closed, the lock is given back, or the client was told of its loss
}

// all has all locks of the request.
func (l *wanted) all() []*wanted { return append([]*wanted{l}, l.beside...) }

// granted says whether the reply gives the lock, and how long the lock is valid by the reply: 0 if the reply does not
// say.
func (l *wanted) granted(r reply) (bool, time.Duration) {
	list, many := r.([]any)
	switch {
	case l.at >= 0 && l.at < len(list):
		r = list[l.at]
	case l.at >= 0:
		return false, 0
	}
	switch {
	case l.grants != nil:
		return l.grants(r), 0
	case l.at < 0 && many && len(list) == 6:
		l.fence, _ = list[3].(int64)
		ms, _ := list[5].(int64)
		return list[1] == l.token, time.Duration(ms) * time.Millisecond
	}
	return r == status("OK"), 0
}

// answered takes a reply that a proxy has written. mu is held.
func (k *checker) answered(c *wire, q *request) {
	if q.alone && !q.held && q.most > 0 && c.ended == nil {
		k.endedIn(q.most, k.world.now()-q.came-q.waits(), fmt.Sprintf("%s of %s", q.words[0], c.name))
	}
	if q.lock != nil {
		for _, l := range q.lock.all() {
			k.locked(c, q, l)
		}
	}
	if f, is := q.reply.(fault); is && strings.HasPrefix(string(f), "LOST") {
		c.loses(func(h *heldOpen) bool { return !h.returned && slices.Contains(q.words, h.resource) })
	}
	if q.on != nil && !c.hungUp {
		q.on()
	}
}

func (q *request) waits() time.Duration {
	if q.lock == nil {
		return 0
	}
	return q.lock.waits
}

// locked takes the reply to an attempt, for one of its locks.
func (k *checker) locked(c *wire, q *request, l *wanted) {
	w := k.world
	granted, valid := l.granted(q.reply)
	if !l.again {
		k.attempt(l.token, fate{life: c.life, failed: !granted, left: c.hungUp || k.voted[l.token]})
	}
	_, failed := q.reply.(fault)
	if k.counts.answered(failed, granted); !granted {
		k.leavesNothing(l)
		return
	}
	if c.noticed != 0 && c.noticed < q.begun {
		k.report(tooSlow, "%s to %s", l.resource, c.name)
	}
	if l.fenced {
		k.fenceGiven(l.resource, &quorum.Acquired{Fence: l.fence}, l.before)
	}
	k.inTurn(c, q)
	cfg := w.plan.of(c.life.proxy.id)
	if late := w.now() - q.came - rules.Validity(l.ttl, 0, cfg.DriftFactor); q.punctual && !q.held && late >= 0 && w.asleep() == q.slept {
		k.report(tooLate, "%s to %s: %v", l.resource, c.name, -late)
	}
	if c.hungUp || l.given {
		return
	}
	l.promise = &promise{resource: l.resource, token: l.token, client: l.by, began: q.sent, fence: l.fence, shared: l.shared, doubtful: q.sent < k.broken[l.resource]}
	l.promise.until = q.until(w, l.ttl, valid)
	if l.promise.until > w.now() { // otherwise the client took too long to read the earlier replies
		k.granted(l.promise)
		k.untoldOf(l)
	}
	if l.hold {
		h := &heldOpen{wanted: l, wire: c}
		c.held = append(c.held, h)
		k.holds[l.resource] = append(k.holds[l.resource], h)
		k.staysHeld(h)
	}
}

// leavesNothing checks that a failed attempt soon has left nothing.
func (k *checker) leavesNothing(l *wanted) {
	if k.world.plan.Calm && !l.again {
		k.isGoneIn(l, func() bool {
			return k.attempts[l.token].failed && k.renewals[l.resource] == l.renewals && !k.prolonged[l.resource] && !k.extended[l.token]
		})
	}
}

// isGoneIn checks soon that no master has the token, if still holds by then.
func (k *checker) isGoneIn(l *wanted, still func() bool) {
	w := k.world
	w.after(2*w.plan.loosest().InstanceTimeout+50*time.Millisecond, func() {
		if n := k.on(l.resource, l.token); n > 0 && still() {
			k.report(orphan, "%d masters still hold %s of %s", n, l.token, l.resource)
		}
	})
}

// has says that a quorum of masters holds the resource for the token. A master that has not heard of an inner release
// reports the lock as held on.
func (k *checker) has(resource, token string) bool {
	return k.on(resource, token) > len(k.world.servers)/2
}

// on is how many masters do.
func (k *checker) on(resource, token string) (n int) {
	for _, s := range k.world.servers {
		if it, ok := s.lock(resource); ok && it.heldBy(token) {
			n++
		}
	}
	return n
}

// hangUpNoticed takes the moment at which a proxy can know that the client sends nothing more. Unanswered attempts come
// to nothing, and held locks are given back. The same holds when the proxy closes the connection by itself.
func (k *checker) hangUpNoticed(c *wire) {
	for _, q := range c.asked {
		if q.lock == nil {
			continue
		}
		for _, l := range q.lock.all() {
			if !l.again {
				k.attempt(l.token, fate{life: c.life, failed: true, left: q.came != 0})
				k.leavesNothing(l)
			}
		}
	}
	for _, h := range c.held {
		if h.over {
			continue
		}
		h.end()
		if k.world.plan.Calm {
			k.isGoneIn(h.wanted, func() bool { return true })
		}
	}
}

// end notes that nobody relies on the lock any more.
func (h *heldOpen) end() { h.over, h.promise.over = true, true }

// loses notes that the client was told of a loss, by a push or in place of a reply.
func (c *wire) loses(is func(*heldOpen) bool) {
	for _, h := range c.held {
		if h.over || !is(h) {
			continue
		}
		if (c.world.plan.Calm || c.world.plan.Rolls) && !h.promise.doubtful {
			c.world.checker.report(dropped, "%s was told that %s (%s) is lost", c.name, h.resource, h.token)
		}
		h.end()
	}
}

// staysHeld looks again and again whether a held lock is extended.
func (k *checker) staysHeld(h *heldOpen) {
	if !k.world.plan.Calm {
		return
	}
	k.world.after(h.ttl/5+1, func() {
		if h.over || h.given || h.wire.hungUp || h.wire.shut || h.promise.doubtful {
			return
		}
		if !k.has(h.resource, h.token) {
			k.report(dropped, "%s of %s: %d masters hold it", h.resource, h.wire.name, k.on(h.resource, h.token))
			return
		}
		k.staysHeld(h)
	})
}

// untoldOf checks that the former holders of the resource soon learn of their loss.
func (k *checker) untoldOf(l *wanted) {
	w := k.world
	for _, h := range k.holds[l.resource] {
		if h.over || h.given || h.wanted == l {
			continue
		}
		w.after(h.ttl+2*w.plan.loosest().InstanceTimeout+1500*time.Millisecond, func() {
			if !h.over && !h.given && !h.wire.hungUp && !h.wire.stuck && h.wire.resp3 {
				k.report(untold, "%s of %s (%s), which %s has got", h.resource, h.wire.name, h.token, l.by.name)
			}
		})
	}
	k.holds[l.resource] = slices.DeleteFunc(k.holds[l.resource], func(h *heldOpen) bool { return h.over })
}

// patient says that a request waits for its lock, since a true time.
func (q *request) patient(now time.Duration) bool {
	return q.lock != nil && q.lock.waits > 0 && q.alone && q.came != 0 && now < q.came+q.lock.waits
}

// inTurn checks that a waiter has not overtaken another of the same proxy.
func (k *checker) inTurn(c *wire, q *request) {
	now := k.world.now()
	if q.lock.waits == 0 || !q.alone {
		return
	}
	for _, other := range c.life.wires {
		if other == c || other.ended != nil || other.shut || other.stuck || len(other.asked) == 0 {
			continue
		}
		if v := other.asked[0]; v.patient(now) && v.came < q.came && v.lock.resource == q.lock.resource {
			k.report(overtaken, "%s: %s, who waits since %v, by %s, since %v", q.lock.resource, other.name, v.came, c.name, q.came)
		}
	}
}

// watchWaiters looks again and again whether a client waits for a free resource.
func (k *checker) watchWaiters() {
	const every, most = 10 * time.Millisecond, 300 * time.Millisecond
	w := k.world
	idle := make(map[string]time.Duration)
	var look func()
	look = func() {
		if w.quiet {
			return
		}
		for i := range w.plan.Resources {
			name := resourceName(i)
			if !k.isFree(name) || !k.isWaitedFor(name) {
				idle[name] = 0
			} else if idle[name] += every; idle[name] == most {
				k.report(asleep, "%s is free since %v", name, most)
			}
		}
		w.after(every, look)
	}
	w.after(every, look)
}

func (k *checker) isFree(resource string) bool {
	return !slices.ContainsFunc(k.world.servers, func(s *server) bool {
		_, ok := s.lock(resource)
		return ok
	})
}

func (k *checker) isWaitedFor(resource string) bool {
	for _, p := range k.world.proxies {
		if p.life == nil {
			continue
		}
		for _, c := range p.life.wires {
			if c.ended == nil && !c.shut && !c.stuck && len(c.asked) > 0 && c.asked[0].patient(k.world.now()) && c.asked[0].lock.resource == resource {
				return true
			}
		}
	}
	return false
}
