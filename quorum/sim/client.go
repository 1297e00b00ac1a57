package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/rules"
)

// A client takes locks, one after the other, and uses them as clients do. Its tokens are new for each attempt; or the
// same until an attempt succeeds, as in redis-py and redsync; or always the same for all clients of one proxy.
//
// Clients with constant tokens stay with their proxy, and live in worlds where no late command of theirs runs: a
// release through a proxy that died may take the lock of the next client with the same token, on one Redis as here. The
// checker knows of commands that a slow master runs late (shared.go). These clients all use one TTL and never extend,
// because the undo of an attempt whose connection broke knows a key by its expiry.
type client struct {
	world     *World
	name      string
	rng       *rand.Rand
	fencing   *rand.Rand // for fences
	voting    *rand.Rand // for scripts that run by vote
	severally *rand.Rand // for several locks at once
	moving    *rand.Rand // for locks that are renamed and copied
	crowding  *rand.Rand // for crowds
	operating *rand.Rand // for operators
	proxy     *proxy
	constant  bool
	reuses    bool
	tries     int
	token     string // of the latest attempt
	retry     bool   // the latest attempt failed
	keeps     bool   // the same token for all locks by vote
}

func newClient(w *World, id int) *client {
	c := &client{world: w, name: fmt.Sprintf("c%d", id+1), rng: w.random("client", id), fencing: w.random("fencing", id), voting: w.random("voting", id), severally: w.random("severally", id), moving: w.random("moving", id), crowding: w.random("crowding", id), operating: w.random("operating", id)}
	c.proxy = pick(c.rng, w.proxies...)
	c.constant = w.plan.Constant && chance(c.rng, 0.7)
	c.reuses = chance(c.rng, 0.4) && w.plan.Thefts == 0 // see touch
	c.keeps = chance(c.voting, 0.5) && len(w.plan.Denied) == 0
	return c
}

// run is a client's life.
func (c *client) run() {
	w := c.world
	for range w.plan.Attempts {
		c.pause(between(c.rng, 0, w.plan.Think))
		c.roams()
		resource := resourceName(c.rng.IntN(w.plan.Resources))
		ttl := between(c.rng, w.plan.TTLLeast, w.plan.TTLMost).Truncate(time.Millisecond)
		if chance(c.rng, w.plan.Longs) {
			ttl = w.plan.of(c.proxy.id).TTLMax
		}
		if c.constant {
			ttl = w.plan.TTLMost
		}
		if chance(c.rng, w.plan.Takeovers) {
			c.takeOver(resource, ttl)
			continue
		}
		if w.plan.Breaks > 0 && chance(c.operating, w.plan.Breaks) {
			c.forceUnlock(resource)
			continue
		}
		if w.plan.Thefts > 0 && chance(c.crowding, w.plan.Thefts) {
			c.steal(resource, ttl)
			continue
		}
		if c.votes() {
			c.vote(resource, ttl)
			continue
		}
		if w.plan.Exchanges > 0 && chance(c.severally, w.plan.Exchanges) {
			c.exchange()
			continue
		}
		if w.plan.Together > 0 && chance(c.severally, w.plan.Together) {
			c.takeTogether(resource, ttl)
			continue
		}
		switch p := c.acquire(resource, ttl); {
		case p == nil:
		case c.votes():
			c.useByVote(&votedHold{lock: &textLock, names: []string{resource}, token: p.token, ttl: ttl, promises: []*promise{p}, holds: 1})
		default:
			c.use(p, ttl)
		}
	}
}

// resourceName is the name of the i-th resource.
func resourceName(i int) string { return fmt.Sprintf("r%d", i+1) }

// nextToken returns the token of the next attempt, and whether the token is used only once.
func (c *client) nextToken() (string, bool) {
	c.tries++
	switch {
	case c.constant:
		return fmt.Sprintf("const-p%d", c.proxy.id+1), false
	case c.reuses && c.retry:
		return c.token, false
	}
	return fmt.Sprintf("%s-%d", c.name, c.tries), !c.reuses
}

// acquire makes one attempt. After no answer, or no quorum, the client may try another proxy next.
func (c *client) acquire(resource string, ttl time.Duration) *promise {
	w := c.world
	token, once := c.nextToken()
	c.token = token
	req := quorum.AcquireRequest{Key: w.plan.key(resource), Token: token, TTL: ttl}
	switch kind := c.rng.Float64(); {
	case kind < 0.1:
		req.WantHolder = true
	case kind < 0.2:
		req.Reentrant = !c.constant && w.plan.Thefts == 0 // otherwise it would share the lock with others; and see touch
	}
	leaves := chance(c.rng, 0.04)
	var p *promise
	req.Fenced = c.fences(&req)
	take, timeouts := c.take(req)
	began, slept := w.now(), w.asleep()
	var before fenceMark
	st := (*stake)(nil)
	w.do(func() {
		before = w.checker.fenceMark(resource)
		delete(w.checker.bygone, token)
		if c.constant {
			st = w.checker.begins(resource, token)
		}
	})
	a, ok := ask(c.proxy, func(l *life, a quorum.Acquired) {
		w.checker.endedIn(timeouts, w.now()-began, "an attempt of "+c.name)
		if once && !req.Reentrant { // a re-entrant attempt of unknown fate is left to its TTL: it may have extended a lock
			w.checker.attempt(token, fate{life: l, failed: a.Lock == nil || leaves, left: leaves})
		}
		if req.Fenced && a.Lock != nil {
			w.checker.fenceGiven(resource, &a, before)
		}
		if until, ok := c.told(l, req, a, began, slept); ok && !leaves {
			p = &promise{resource: resource, token: token, client: c, began: began, until: until, fence: a.Fence}
			if st != nil {
				st.becomes(p, w.now())
			}
			w.checker.granted(p)
		}
	}, take)
	w.mu.Lock()
	if st != nil && p == nil {
		w.checker.ends(st)
	}
	w.checker.counts.Attempts++
	if !ok {
		w.checker.counts.Lost++
		w.logf(c.name, "was not answered on %s with %s", resource, token)
	}
	w.mu.Unlock()
	c.retry = p == nil
	if leaves && a.Lock != nil { // the client has gone before the answer
		c.pause(between(c.rng, 0, time.Millisecond))
		a.Lock.Abandon()
		return nil
	}
	if (!ok || a.Err != nil) && !c.constant && chance(c.rng, 0.5) {
		// Before Redis 7 an undo knows a key's end to a millisecond only, and a retry elsewhere may be as close.
		c.proxy, c.retry = pick(c.rng, w.proxies...), c.retry && w.plan.Old == 0
	}
	return p
}

// told takes the answer to an attempt at the instant of the answer. If a lock was granted, told returns until when the
// client relies on the lock. slept is how long the proxies had stood still when the client asked.
func (c *client) told(l *life, req quorum.AcquireRequest, a quorum.Acquired, began, slept time.Duration) (time.Duration, bool) {
	w, k := c.world, &c.world.checker
	took := w.now() - began
	what := fmt.Sprintf("via %s: %s for %v, token %s:", l.name, req.Key.Name, req.TTL, req.Token)
	k.counts.answered(a.Err != nil, a.Lock != nil)
	switch {
	case a.Err != nil:
		w.logf(c.name, "%s %v", what, a.Err)
		return 0, false
	case a.Lock == nil:
		w.logf(c.name, "%s refused after %v", what, took)
		return 0, false
	}
	if left := a.Lock.Until().Sub(w.start) - w.now(); left <= 0 {
		k.report(tooLate, "%s to %s: %v", req.Key.Name, c.name, left)
	}
	until := w.until(a.Lock.Until(), began, req.TTL, slept)
	w.logf(c.name, "%s GRANTED until %.6f, fence %d", what, until.Seconds(), a.Fence)
	return until, true
}

// use holds a lock for a while, and lets the lock go.
func (c *client) use(p *promise, ttl time.Duration) {
	w := c.world
	if w.plan.Keeps > 0 && chance(c.crowding, w.plan.Keeps) && !c.keep(p, ttl) {
		return
	}
	for chance(c.rng, w.plan.Touches) {
		if p.fence != 0 && chance(c.fencing, 0.5) {
			c.askFence(p)
		}
		c.pause(between(c.rng, 0, min(w.plan.Hold, ttl)))
		c.roams()
		if !c.touch(p, ttl) {
			return
		}
	}
	w.mu.Lock()
	left := max(ttl, p.until-w.now())
	w.mu.Unlock()
	c.pause(between(c.rng, 0, min(w.plan.Hold, 2*left)))
	switch end := c.rng.Float64(); {
	case end < 0.1 && ttl <= w.plan.TTLMost: // the client forgets the lock, or dies; for the others, its promise lasts
		c.pause(min(ttl, w.plan.Hold))
	case c.constant && w.now() >= p.until: // the lock may be another client's by now
	default:
		c.roams()
		if w.plan.Keeps > 0 && chance(c.crowding, w.plan.Keeps) {
			c.extendBeside(p, ttl)
		}
		c.release(p)
	}
}

// touch extends a held lock, adds to the lock's TTL, takes the lock again, or reads it.
func (c *client) touch(p *promise, ttl time.Duration) bool {
	if r := c.world.plan.Replaces; r > 0 && chance(c.crowding, r) {
		return c.replace(p, ttl)
	}
	if e := c.world.plan.Expires; e > 0 && chance(c.operating, e) {
		return c.expire(p, ttl)
	}
	switch kind := c.rng.Float64(); {
	case c.constant && c.world.now() >= p.until: // the lock may be another client's by now
		return false
	case c.constant:
	case kind < 0.4:
		next := pick(c.rng, ttl, ttl, c.world.plan.TTLLeast)
		if chance(c.rng, c.world.plan.Stretches) {
			next = c.world.plan.of(c.proxy.id).TTLMax
		}
		return c.extend(p, quorum.ExtendRequest{TTL: next, Fenced: p.fence != 0})
	case kind < 0.55:
		p.fence = 0
		return c.extend(p, quorum.ExtendRequest{TTL: ttl, Add: true})
	case kind < 0.7 && c.world.plan.Thefts == 0: // otherwise it may take anew a lock that another client was told of
		p.fence = 0
		return c.reenter(p, ttl)
	}
	c.look(p)
	return true
}

func (c *client) extend(p *promise, req quorum.ExtendRequest) bool {
	w := c.world
	req.Key, req.Token = w.plan.key(p.resource), p.token
	began, slept := w.now(), w.asleep()
	before := p.until
	if !req.Add { // the TTL may be shorter
		w.mu.Lock()
		c.shorten(p, began+rules.Validity(req.TTL, 0, w.plan.of(c.proxy.id).DriftFactor))
		w.mu.Unlock()
	}
	x, ok := ask(c.proxy, func(l *life, x quorum.Extended) {
		w.logf(c.name, "via %s: extended %s to %v (add %v), token %s: held %v, absent %v, %v", l.name, p.resource, req.TTL,
			req.Add, p.token, x.Held, x.Absent, x.Err)
		w.checker.ended(w.now()-began, "an extension of "+c.name)
		switch {
		case x.Held && w.checker.returns(p, began):
			p.over = true
		case x.Held:
			counts := began // from when the client counts the TTL
			if req.Add {
				counts = before
			}
			p.until, p.extended = w.until(x.Until, counts, req.TTL, slept), p.extended || req.Fenced
			w.checker.granted(p)
		case x.Err == nil:
			if w.now() < before {
				w.checker.gone(p, "an extension")
			}
			p.over = true
		}
	}, func(e *quorum.Engine, done func(quorum.Extended)) { e.Extend(req, done) })
	return ok && x.Held
}

func (c *client) shorten(p *promise, until time.Duration) { p.until = min(p.until, until) }

// reenter takes the lock again with its token.
func (c *client) reenter(p *promise, ttl time.Duration) bool {
	w := c.world
	req := quorum.AcquireRequest{Key: w.plan.key(p.resource), Token: p.token, TTL: ttl, Reentrant: true}
	began, slept := w.now(), w.asleep()
	w.mu.Lock()
	c.shorten(p, began+rules.Validity(ttl, 0, w.plan.of(c.proxy.id).DriftFactor))
	delete(w.checker.attempts, p.token)
	w.mu.Unlock()
	a, ok := ask(c.proxy, func(l *life, a quorum.Acquired) {
		w.checker.ended(w.now()-began, "an attempt of "+c.name)
		if until, ok := c.told(l, req, a, began, slept); ok {
			p.until = until
			w.checker.granted(p)
		} else if a.Refused {
			p.over = true
		}
	}, func(e *quorum.Engine, done func(quorum.Acquired)) { e.Acquire(req, done) })
	return ok && a.Lock != nil
}

// look reads the lock.
func (c *client) look(p *promise) {
	began := c.world.now()
	_, _ = ask(c.proxy, func(_ *life, v quorum.View) {
		c.world.checker.ended(c.world.now()-began, "a read of "+c.name)
		if v.Err == nil && v.Value != p.token {
			c.world.checker.gone(p, "a read")
		}
	}, func(e *quorum.Engine, done func(quorum.View)) { e.Get(c.world.plan.key(p.resource), done) })
}

// release gives the lock back. From the moment of asking, the client does not rely on the lock.
func (c *client) release(p *promise) {
	w := c.world
	w.mu.Lock()
	stood, doubtful := *p, w.checker.doubtful[p.resource]
	p.over = true
	if p.stake != nil {
		p.stake.asked = w.now()
	}
	w.mu.Unlock()
	_, _ = ask(c.proxy, func(l *life, r quorum.Released) {
		w.logf(c.name, "via %s: released %s, token %s: held %v, absent %v, %v", l.name, p.resource, p.token, r.Held, r.Absent, r.Err)
		if r.Err == nil && r.Held {
			w.checker.bygone[p.token] = w.now()
		}
		if r.Err == nil && !r.Held {
			// A client may have taken the lock meanwhile, from the next holder.
			stood.doubtful, stood.contested = p.doubtful || w.checker.doubtful[p.resource] != doubtful, p.contested
			w.checker.gone(&stood, "a release")
		}
	}, c.give(p.resource, p.token))
}

// takeOver changes a resource that the client does not hold.
func (c *client) takeOver(resource string, ttl time.Duration) {
	w := c.world
	key := w.plan.key(resource)
	c.tries++
	value := fmt.Sprintf("%s-w%d", c.name, c.tries)
	w.mu.Lock()
	w.logf(c.name, "takes over %s with %s", resource, value)
	// The command may run as late as any command.
	w.checker.doubt(resource, w.now()+time.Hour)
	w.mu.Unlock()
	switch kind := c.rng.Float64(); {
	case chance(c.rng, w.plan.Transactions/2):
		c.swap(resource, value, ttl)
	case kind < 0.4:
		r := quorum.WriteRequest{Key: key, Value: value, TTL: ttl, WantOld: chance(c.rng, 0.3), KeepTTL: chance(c.rng, 0.3)}
		if chance(c.rng, 0.3) {
			r.IfExists = true
		}
		_, _ = ask(c.proxy, func(*life, quorum.Written) {}, func(e *quorum.Engine, done func(quorum.Written)) { e.Write(r, done) })
	case kind < 0.7:
		_, _ = ask(c.proxy, func(*life, quorum.Changed) {}, func(e *quorum.Engine, done func(quorum.Changed)) { e.Remove(key, done) })
	default:
		w.do(func() { w.checker.prolonged[resource] = true })
		r := quorum.ExpireRequest{Key: key, TTL: ttl}
		_, _ = ask(c.proxy, func(*life, quorum.Changed) {}, func(e *quorum.Engine, done func(quorum.Changed)) { e.Expire(r, done) })
	}
}
