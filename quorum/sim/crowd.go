package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"lockproxy/quorum"
)

// Crowds: in worlds of the class Crowded, coincidences are likely. Clients and faults meet at the beats of one clock,
// and most faults strike the same master and the same proxy. Clients go from proxy to proxy. They replace the token of
// a held lock. They extend a lock again and again, as a LOCK with HOLD does, now and then when it may be over, or
// during its release. They take locks from each other by GETSET and GETDEL, which tell the former holder. All random
// draws for this are from streams of their own.

func (p *Plan) crowd(r *rand.Rand) {
	p.Constant, p.Takeovers = false, 0
	p.Beat = pick(r, 0, 5*time.Millisecond, 20*time.Millisecond, 50*time.Millisecond)
	p.Focus = pick(r, 0, 0.5, 0.8, 1)
	p.Roams = pick(r, 0, 0.2, 0.8)
	p.Replaces, p.Keeps = pick(r, 0, 0.3, 0.6), pick(r, 0, 0.2, 0.5)
	if chance(r, 0.6) {
		p.Votes, p.Together, p.Exchanges, p.Moves = 0, 0, 0, 0
	}
	if p.Votes == 0 && p.Together == 0 { // otherwise one token does not identify the lock
		p.Thefts = pick(r, 0, 0.2, 0.5)
	}
	if p.Aim == "" && chance(r, 0.6) {
		p.aimAt(aim{"crowds", aimCrowds}, r)
	}
}

// aimCrowds has short locks on few resources, and a few kinds of frequent faults.
func aimCrowds(p *Plan, r *rand.Rand) {
	p.Clients, p.Proxies, p.Attempts = 3+r.IntN(4), pick(r, 2, 3), 40+r.IntN(60)
	p.Append = pick(r, "", "everysec", "always")
	p.Config.TTLMax = pick(r, 500*time.Millisecond, 2*time.Second)
	p.TTLLeast = pick(r, 40*time.Millisecond, 150*time.Millisecond)
	p.TTLMost, p.Touches = p.TTLLeast*pick[time.Duration](r, 1, 2), 0.6
	p.Think, p.Hold = pick(r, 2*time.Millisecond, 20*time.Millisecond), p.TTLMost
	p.Lossy, p.LateMost = pick(r, 0, 0.01, 0.1), pick(r, 50*time.Millisecond, 200*time.Millisecond, time.Second)
	p.Gap, p.Brief = pick(r, 30*time.Millisecond, 100*time.Millisecond, 300*time.Millisecond), pick(r, 50*time.Millisecond, 200*time.Millisecond, 0)
	p.Standing, p.Writable = chance(r, 0.5), chance(r, 0.3)
	p.Shifts, p.Forgets, p.Blunt = chance(r, 0.5), chance(r, 0.6), chance(r, 0.3)
	for range 1 + r.IntN(3) {
		p.Faults = append(p.Faults, pick(r, "link slow", "link cut", "link cut towards the proxy", "link cut towards the master",
			"connection reset for the proxy", "connection reset", "master far away", "master stopped", "master slow"))
	}
	if chance(r, 0.3) {
		p.Faults = append(p.Faults, pick(r, "proxy killed", "proxy restarted", "proxy cut off", "master killed, nothing lost"))
	}
	if !p.Forgets {
		return
	}
	for range 1 + r.IntN(3) {
		p.Faults = append(p.Faults, pick(r, "all data flushed", "master restarted empty", "master restarted, last second lost",
			"master restarted from a snapshot", staleReplica, "clock stepped forwards", "clock stepped backwards"))
	}
}

// anyServer picks a master for a fault, and anyProxy a proxy: most often the last.
func (w *World) anyServer(r *rand.Rand) *server { return prefer(w, r, w.servers) }

func (w *World) anyProxy(r *rand.Rand) *proxy { return prefer(w, r, w.proxies) }

func prefer[T any](w *World, r *rand.Rand, of []T) T {
	if w.plan.Focus > 0 && chance(r, w.plan.Focus) {
		return of[len(of)-1]
	}
	return pick(r, of...)
}

// toBeat returns the time until the first beat that is at least d away, or a little longer.
func (w *World) toBeat(d time.Duration, r *rand.Rand) time.Duration {
	beat := w.plan.Beat
	if beat == 0 {
		return d
	}
	now := w.now()
	return (now+d+beat-1)/beat*beat - now + between(r, 0, 3*w.plan.Latency)
}

// pause lets a client wait for so long, and for the next beat.
func (c *client) pause(d time.Duration) { c.world.sleep(c.world.toBeat(d, c.crowding)) }

// roams lets the client go to another proxy.
func (c *client) roams() {
	if p := c.world.plan.Roams; p > 0 && chance(c.crowding, p) {
		c.proxy, c.retry = pick(c.crowding, c.world.proxies...), false
	}
}

// keep extends a lock again and again.
func (c *client) keep(p *promise, ttl time.Duration) bool {
	n := 2 + c.crowding.IntN(8)
	if c.world.plan.Rolls {
		n *= 8
	}
	for range n {
		wait := ttl / 3
		if chance(c.crowding, 0.1) {
			wait = between(c.crowding, ttl, 2*ttl)
		}
		c.pause(wait)
		if !c.extend(p, quorum.ExtendRequest{TTL: ttl, Fenced: p.fence != 0}) {
			return false
		}
	}
	return true
}

// extendBeside extends a lock while the client does something else with it. The outcome does not matter.
func (c *client) extendBeside(p *promise, ttl time.Duration) {
	w := c.world
	via, req := pick(c.crowding, w.proxies...), quorum.ExtendRequest{Key: w.plan.key(p.resource), Token: p.token, TTL: ttl}
	wait := between(c.crowding, 0, 3*w.plan.Latency)
	w.clients.Go(func() {
		w.sleep(wait)
		_, _ = ask(via, func(*life, quorum.Extended) {}, func(e *quorum.Engine, done func(quorum.Extended)) { e.Extend(req, done) })
	})
}

// replace puts another token in the place of the lock's, with a new TTL or the rest of the old one, or the same token
// once more.
func (c *client) replace(p *promise, ttl time.Duration) bool {
	w, k := c.world, &c.world.checker
	c.tries++
	edit := quorum.Edit{Kind: quorum.Put, Value: fmt.Sprintf("%s-n%d", c.name, c.tries), TTL: ttl}
	switch kind := c.crowding.Float64(); {
	case kind < 0.3:
		edit.KeepTTL = true
	case kind < 0.5:
		edit.Kind, edit.Value = quorum.Expire, p.token
	case kind < 0.6:
		edit.Value = p.token
	}
	leaves := chance(c.crowding, 0.1)
	began, slept := w.now(), w.asleep()
	was, mine := promise{}, false
	w.do(func() {
		was, p.over, p.fence = *p, true, 0
	})
	x, ok := c.exec([]string{p.resource}, func(now []quorum.View) []quorum.Edit {
		if mine = now[0].Value == was.token; !mine {
			return nil
		}
		return []quorum.Edit{edit}
	}, func(l *life, x quorum.Executed) {
		w.logf(c.name, "via %s: %s in the place of %s, %+v: mine %v, granted %v, %v", l.name, edit.Value, was.token, edit, mine, x.Lock != nil, x.Err)
		if edit.Value != was.token && !edit.KeepTTL {
			k.attempt(edit.Value, fate{life: l, failed: x.Lock == nil || leaves, left: leaves})
		}
		switch {
		case x.Err == nil && !mine:
			was.doubtful, was.contested = p.doubtful, p.contested
			k.gone(&was, "an EXEC")
		case x.Lock != nil && !leaves && !k.returns(&was, began):
			slept := w.asleep() - slept
			if k.bygone[was.token] = w.now(); edit.Value == was.token {
				delete(k.bygone, was.token)
			}
			p.token, p.until = edit.Value, x.Lock.Until().Sub(w.start)-w.unnoticed(slept)
			if !edit.KeepTTL {
				p.until = max(p.until, began+ttl-slept)
			}
			k.granted(p)
		}
	})
	if x.Lock != nil && leaves {
		x.Lock.Abandon()
	}
	if ok && x.Lock != nil && !leaves && was.token != edit.Value && chance(c.crowding, 0.3) {
		c.returnTo(was, ttl)
	}
	return !p.over
}

// returnTo extends a lock by its former token, which must not succeed.
func (c *client) returnTo(was promise, ttl time.Duration) {
	w := c.world
	via := pick(c.crowding, w.proxies...)
	req := quorum.ExtendRequest{Key: w.plan.key(was.resource), Token: was.token, TTL: ttl}
	_, _ = ask(via, func(l *life, x quorum.Extended) {
		w.logf(c.name, "via %s: extended %s by the former token %s: held %v, %v", l.name, was.resource, was.token, x.Held, x.Err)
		if x.Held && !w.plan.Forgets { // otherwise masters may have it again (docs/safety.md)
			w.checker.report(heldAgain, "%s by %s, for %s", was.resource, was.token, c.name)
		}
	}, func(e *quorum.Engine, done func(quorum.Extended)) { e.Extend(req, done) })
}

// steal takes a resource from its holder by GETSET, or takes it away by GETDEL.
func (c *client) steal(resource string, ttl time.Duration) {
	w, k := c.world, &c.world.checker
	c.tries++
	token, puts, leaves := fmt.Sprintf("%s-s%d", c.name, c.tries), chance(c.crowding, 0.6), chance(c.crowding, 0.1)
	edit := quorum.Edit{Kind: quorum.Claim}
	if puts {
		edit = quorum.Edit{Kind: quorum.Put, Value: token, TTL: ttl}
	}
	began, slept := w.now(), w.asleep()
	var saw []string
	var p *promise
	does, told := false, ""
	w.do(func() { k.contend(resource) })
	x, ok := c.exec([]string{resource}, func(now []quorum.View) []quorum.Edit {
		told, does = now[0].Value, puts || now[0].Exists
		if !does {
			return nil
		}
		saw = append(saw, told)
		return []quorum.Edit{edit}
	}, func(l *life, x quorum.Executed) {
		w.logf(c.name, "via %s: takes %s by %q from %q: %v, done %v, %v", l.name, resource, edit.Value, told, does, x.Done, x.Err)
		if puts {
			k.attempt(token, fate{life: l, failed: x.Lock == nil || leaves, left: leaves})
		}
		k.contended(resource)
		switch {
		case x.Err != nil || leaves:
			k.shake(resource, saw)
			return
		case does && told != "":
			k.steals(c, resource, told)
		}
		if x.Lock != nil {
			p = &promise{resource: resource, token: token, client: c, until: w.until(x.Lock.Until(), began, ttl, slept)}
			k.granted(p)
		}
	})
	if !ok {
		w.do(func() {
			k.contended(resource)
			k.shake(resource, saw)
		})
	}
	if x.Lock != nil && leaves {
		x.Lock.Abandon()
	}
	if p != nil {
		c.use(p, ttl)
	}
}

// contend notes that a client is about to take a resource from its holder. The holder may find the loss before the
// other client is told.
func (k *checker) contend(resource string) {
	k.thefts[resource]++
	for _, p := range k.promises[resource] {
		p.contested = true
	}
}

func (k *checker) contended(resource string) { k.thefts[resource]-- }

// steals notes that a client was told the token of a lock, having taken the lock. From now on only this client has the
// lock.
func (k *checker) steals(c *client, resource, token string) {
	if _, ok := k.stolen[token]; ok && !k.returned[token] {
		k.report(toldTwice, "%s in %s, the second time %s", token, resource, c.name)
	}
	k.stolen[token], k.bygone[token] = k.world.now(), k.world.now()
	for _, p := range k.promises[resource] {
		p.over = p.over || p.token == token
	}
}

// shake notes that locks may have been taken away, and perhaps are put back.
func (k *checker) shake(resource string, tokens []string) {
	for _, token := range tokens {
		k.shaken[token] = true
		for _, p := range k.promises[resource] {
			p.doubtful = p.doubtful || p.token == token
		}
	}
}

// returns says that another client was told the token of a lock meanwhile. If that was before its holder asked for more
// time, it is an error, unless masters may have the lock again (docs/safety.md). Then the former holder has the lock,
// and may lose it a second time.
func (k *checker) returns(p *promise, asked time.Duration) bool {
	at, stolen := k.stolen[p.token]
	switch {
	case !stolen || asked <= at:
	case k.world.plan.Forgets:
		k.returned[p.token] = true
	default:
		k.report(heldAgain, "%s by %s (%s), which somebody has taken away at %v", p.resource, p.token, p.client.name, at)
	}
	return stolen
}
