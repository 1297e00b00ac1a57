package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"lockproxy/quorum"
	"lockproxy/quorum/rules"
	"lockproxy/quorum/vote"
)

// Votes: in worlds of the class Voted, clients also take, re-enter, extend and give back locks by scripts that run by
// vote, on the same resources as the others. All random draws for this are from streams of their own.

func (p *Plan) votes(r *rand.Rand) {
	p.Votes, p.Constant = pick(r, 0.3, 0.7, 1), false
	if chance(r, 0.4) {
		p.aimAt(aim{"votes", aimVotes}, r)
	}
}

// aimVotes has masters whose answers are lost, and masters that get back keys which were put back since.
func aimVotes(p *Plan, r *rand.Rand) {
	p.Blunt = false
	p.Votes, p.Resources, p.Clients = 1, pick(r, 1, 1, 2), 2+r.IntN(3)
	p.Append = pick(r, "", "everysec", "always")
	p.Standing, p.Writable = chance(r, 0.5), chance(r, 0.3)
	p.Faults = []string{
		staleReplica, pick(r, staleReplica, "master restarted, last second lost", "master restarted from a snapshot", "all data flushed"),
		pick(r, "connection reset for the proxy", "link cut towards the proxy", "connection reset", "master slow"),
		pick(r, "connection reset for the proxy", "link cut", "clock stepped forwards"),
	}
	p.TTLLeast = pick(r, 100*time.Millisecond, 500*time.Millisecond)
	p.TTLMost, p.Touches = 3*p.TTLLeast, 0.5
	p.Gap = pick(r, 20*time.Millisecond, 100*time.Millisecond, 500*time.Millisecond)
}

// votes says whether the client does the next thing by vote.
func (c *client) votes() bool { return c.world.plan.Votes > 0 && chance(c.voting, c.world.plan.Votes) }

// A votedHold is a lock that a client holds, and uses by scripts.
type votedHold struct {
	lock     *votedLock
	taken    string // where, of the first of names
	names    []string
	token    string
	ttl      time.Duration
	promises []*promise // one promise for each name
	holds    int        // how often the lock was taken, as far as the client knows
}

// votedToken returns the token of the next attempt by vote, and whether the token is used only once. As with Redisson
// the token may be the client's for its whole life. Then its connection to one process of a proxy is a part of the
// token, so that its commands come in order.
func (c *client) votedToken() (string, bool) {
	c.tries++
	if l := c.proxy.life; c.keeps && l != nil {
		return c.name + "@" + l.name, false
	}
	return fmt.Sprintf("%s-v%d", c.name, c.tries), true
}

// vote takes a lock by a script, holds the lock for a while, and lets the lock go.
func (c *client) vote(resource string, ttl time.Duration) {
	h := c.votedHold(resource, ttl)
	switch {
	case !c.takeByVote(h):
	case h.lock == &textLock && chance(c.voting, 0.3):
		c.use(h.promises[0], ttl)
	default:
		c.useByVote(h)
	}
}

// votedHold chooses the kind of a lock.
func (c *client) votedHold(resource string, ttl time.Duration) *votedHold {
	h := &votedHold{lock: pick(c.voting, &hashLock, &hashLock, &textLock, &pairLock), names: []string{resource}, taken: resource, ttl: ttl}
	if h.lock.keys > 1 {
		other := resourceName(c.voting.IntN(c.world.plan.Resources))
		if other == resource || c.world.plan.key(other).DB != c.world.plan.key(resource).DB {
			h.lock = &hashLock
		} else {
			h.names = append(h.names, other)
		}
	}
	return h
}

// useByVote is use by scripts.
func (c *client) useByVote(h *votedHold) {
	w := c.world
	for chance(c.voting, w.plan.Touches) {
		c.pause(between(c.voting, 0, min(w.plan.Hold, h.ttl)))
		if !c.touchByVote(h) {
			return
		}
	}
	w.mu.Lock()
	left := max(h.ttl, h.promises[0].until-w.now())
	w.mu.Unlock()
	c.pause(between(c.voting, 0, min(w.plan.Hold, 2*left)))
	if chance(c.voting, 0.1) && h.ttl <= w.plan.TTLMost { // the client forgets the lock, or dies; its promise lasts
		w.do(func() { w.checker.astray[h.token] = true })
		c.pause(min(h.ttl, w.plan.Hold))
		return
	}
	for h.holds > 0 {
		if !c.freeByVote(h) {
			return
		}
	}
}

func (c *client) touchByVote(h *votedHold) bool {
	if c.moves(h) {
		return c.moveByVote(h)
	}
	switch kind := c.voting.Float64(); {
	case kind < 0.4:
		return c.extendByVote(h)
	case h.lock.counts && kind < 0.8:
		c.reenterByVote(h)
	case h.holds > 1:
		return c.freeByVote(h)
	case !h.lock.counts:
		c.look(h.promises[0])
	}
	return true
}

// askByVote runs a script. heard gets the outcome, and whether the script granted.
func (c *client) askByVote(s *votedScript, h *votedHold, heard func(l *life, r quorum.Ran, granted bool)) (granted bool, r quorum.Ran, ok bool) {
	w, began := c.world, c.world.now()
	timeouts, pauses := 2, time.Duration(0)
	if s.rule.Merge == vote.Taking { // asked again after split votes
		timeouts, pauses = 16, 512*time.Millisecond
	}
	req := s.request(h.names, h.token, h.ttl)
	req.DB = w.plan.key(h.names[0]).DB
	r, ok = ask(c.proxy, func(l *life, r quorum.Ran) {
		granted = r.Err == nil && s.granted(r.Reply)
		if r.Lock != nil && time.Until(r.Lock.Until()) <= 0 { // the writer of the reply finds that it is too late (resp)
			r.Err, granted = quorum.ErrLate, false
		}
		if s != &h.lock.take && r.Reply.Kind == vote.ErrorValue { // as OOM: the error says nothing of the lock
			r.Err, granted = errors.New(r.Reply.Text), false
		}
		w.logf(c.name, "via %s: %v by vote, %v for %v, token %s: granted %v, %+v, %v", l.name, h.names, req.Args, h.ttl, h.token, granted, r.Reply, r.Err)
		w.checker.endedIn(timeouts, w.now()-began-pauses, "a script of "+c.name)
		heard(l, r, granted)
	}, func(e *quorum.Engine, done func(quorum.Ran)) { e.Run(req, done) })
	return granted, r, ok
}

// takeByVote makes one attempt by a script.
func (c *client) takeByVote(h *votedHold) bool {
	w, k := c.world, &c.world.checker
	leaves, once := chance(c.voting, 0.04), false
	w.do(func() {
		h.token, once = c.votedToken()
		k.voted[h.token] = true
		k.forgets(h.names, h.token)
	})
	began, slept := w.now(), w.asleep()
	won, r, ok := c.askByVote(&h.lock.take, h, func(l *life, r quorum.Ran, granted bool) {
		if once {
			// A quorum's agreement on a no is an outcome like others: the script may still be sent to slow masters.
			agreed := h.lock.take.rule.Merge == vote.Agreeing && r.Err == nil
			k.attempt(h.token, fate{life: l, failed: !granted || leaves, left: leaves || agreed || r.Lock != nil})
		}
		if k.counts.answered(r.Err != nil, granted); granted {
			k.counts.Voted++
		}
		if granted && !leaves {
			h.holds = 1
			for _, name := range h.names {
				h.promises = append(h.promises, &promise{resource: name, token: h.token, client: c, shared: h.lock.shared})
			}
			c.promiseByVote(h, r, began, slept)
		}
	})
	w.mu.Lock()
	k.counts.Attempts++
	if !ok {
		k.counts.Lost++
	}
	if !won || leaves {
		k.astray[h.token] = true
	}
	w.mu.Unlock()
	if r.Lock != nil && (leaves || !won) { // the client has gone before the answer, or the answer came too late
		c.pause(between(c.voting, 0, time.Millisecond))
		r.Lock.Abandon()
	}
	return won && !leaves
}

// forgets notes that a client no longer counts on a forgotten lock: the client takes the lock again, perhaps for less
// time.
func (k *checker) forgets(names []string, token string) {
	for _, name := range names {
		for _, p := range k.promises[name] {
			p.over = p.over || p.token == token
		}
	}
}

// promiseByVote takes the promise of a script that took or extended a lock. The client relies on the promise, or counts
// the TTL from its own send.
func (c *client) promiseByVote(h *votedHold, r quorum.Ran, began, slept time.Duration) {
	w := c.world
	slept = w.asleep() - slept
	until := began + h.ttl - slept
	if r.Lock != nil {
		until = max(until, r.Lock.Until().Sub(w.start)-w.unnoticed(slept))
	}
	for _, p := range h.promises {
		p.until = until
		w.checker.granted(p)
	}
}

// shortenByVote notes that the lock may last only for its TTL from now, and returns the former promises.
func (c *client) shortenByVote(h *votedHold) []promise {
	w := c.world
	w.mu.Lock()
	defer w.mu.Unlock()
	var before []promise
	for _, p := range h.promises {
		before = append(before, *p)
		p.fence = 0 // its record does not last longer
		c.shorten(p, w.now()+rules.Validity(h.ttl, 0, w.plan.of(c.proxy.id).DriftFactor))
	}
	return before
}

// goneByVote is called when the client was told of the loss of its promised lock.
func (c *client) goneByVote(h *votedHold, before []promise, by string) {
	doubtful := slices.ContainsFunc(h.promises, func(p *promise) bool { return p.doubtful }) // one doubtful lock is enough: the script did nothing
	for i := range h.promises {
		was := before[i]
		was.doubtful = doubtful
		c.world.checker.gone(&was, by)
	}
	c.overByVote(h)
}

func (c *client) overByVote(h *votedHold) {
	for _, p := range h.promises {
		p.over = true
	}
}

func (c *client) extendByVote(h *votedHold) bool {
	w := c.world
	began, slept := w.now(), w.asleep()
	before := c.shortenByVote(h)
	if h.lock.shared { // a renewal of one hold renews all, and the key of an attempt that is being undone
		w.do(func() { w.checker.renewals[h.names[0]]++ })
	}
	granted, _, _ := c.askByVote(&h.lock.extend, h, func(_ *life, r quorum.Ran, granted bool) {
		switch {
		case granted:
			c.promiseByVote(h, r, began, slept)
		case r.Err == nil:
			c.goneByVote(h, before, "an extension by vote")
		}
	})
	if !granted { // the client forgets the lock, which may exist
		w.do(func() { w.checker.astray[h.token] = true })
	}
	return granted
}

// reenterByVote takes the lock once more. If that is not granted, the client holds the lock as before.
func (c *client) reenterByVote(h *votedHold) {
	w := c.world
	began, slept := w.now(), w.asleep()
	before := c.shortenByVote(h)
	w.do(func() { delete(w.checker.attempts, h.token) })
	granted, _, _ := c.askByVote(&h.lock.take, h, func(_ *life, r quorum.Ran, granted bool) {
		if granted {
			h.holds++
			w.checker.astray[h.token] = w.checker.astray[h.token] || before[0].until <= w.now() // the lock may have been gone by then
			c.promiseByVote(h, r, began, slept)
		}
	})
	if !granted {
		w.do(func() { w.checker.astray[h.token] = true })
	}
}

// freeByVote gives the lock back, once. From the moment of asking, the client does not rely on the lock, until a reply
// says that the client still holds it: masters may count fewer holds than the client.
func (c *client) freeByVote(h *votedHold) bool {
	w, k := c.world, &c.world.checker
	before := c.shortenByVote(h)
	last := h.holds == 1
	w.mu.Lock()
	for i, p := range h.promises {
		p.over = true
		before[i].doubtful = p.doubtful
	}
	doubtful := make([]time.Duration, len(h.names))
	for i, name := range h.names {
		doubtful[i] = k.doubtful[name]
	}
	w.mu.Unlock()
	h.holds--
	granted, _, _ := c.askByVote(&h.lock.release, h, func(_ *life, r quorum.Ran, granted bool) {
		for i, p := range h.promises { // a client may have taken the lock meanwhile
			p.doubtful = p.doubtful || k.doubtful[h.names[i]] != doubtful[i]
		}
		clear := !k.astray[h.token]
		switch {
		case r.Err != nil:
		case !granted && !clear && h.lock.counts: // the masters did not count its holds alike
			c.overByVote(h)
		case !granted:
			c.goneByVote(h, before, "a release by vote")
		case h.lock.counts && last && r.Reply.Int == 0 && clear && k.stands(&before[0]) && !w.plan.Forgets && k.has(before[0].resource, before[0].token):
			k.report(heldOn, "%s of %s (%s)", h.names[0], c.name, h.token)
		case h.lock.counts && !last && r.Reply.Int == 1:
			if h.holds = 0; clear && k.has(before[0].resource, before[0].token) { // otherwise masters that had missed an inner hold have freed the lock
				c.goneByVote(h, before, "a release of an inner hold")
			}
			c.overByVote(h)
		case granted && !last:
			for _, p := range h.promises {
				k.granted(p)
			}
		}
	})
	if !granted {
		w.do(func() { k.astray[h.token] = true })
	}
	return granted
}

// votedWords returns the arguments of a client's script in a command, without the wrapper's; nil for any other command.
func votedWords(words []string) []string {
	const wrappers = 7
	if len(words) < 3 || words[0] != "EVAL" && words[0] != "EVALSHA" {
		return nil
	}
	n, err := strconv.Atoi(words[2])
	if err != nil || len(words) < 3+n+wrappers {
		return nil
	}
	return words[3+n : len(words)-wrappers]
}

// votedSent checks a script on its way to a master: a failed attempt by vote sends nothing more.
func (k *checker) votedSent(words []string) {
	for _, word := range votedWords(words) {
		if f := k.attempts[word]; k.voted[word] && f != nil && f.failed && !f.left {
			k.report(afterEnd, "%v", words[2:])
		}
	}
}

// unheard notes commands whose answers a proxy will not hear. Their effects, in an attempt by vote, stay until the TTL
// (docs/safety.md).
func (k *checker) unheard(s *server, commands [][]string) {
	for _, words := range commands {
		for _, word := range votedWords(words) {
			if k.voted[word] {
				k.lost[s.addr+" "+word] = true
			}
		}
	}
}
