package sim

import (
	"time"

	"lockproxy/quorum/vote"
)

// Speaking clients that lock by scripts that run by vote, in worlds of the class Voted, too. votes.go has the texts and
// their meaning.

// voteSpoken takes a lock by a script, uses the lock by others, and gives it back.
func (s *speaker) voteSpoken(l *wanted) {
	h := s.votedHold(l.resource, l.ttl)
	if h.lock.counts && s.keeps { // commands over one connection come in order
		l.token, l.again = s.wire.name, true
	}
	h.token, l.grants = l.token, h.lock.take.grantedBy
	for _, name := range h.names[1:] {
		other := *l
		other.resource = name
		l.beside = append(l.beside, &other)
	}
	take := s.script(&h.lock.take, h)
	take.lock, take.most, take.punctual = l, s.mostAgain(), h.lock == &hashLock // for the others, masters are first asked to compile the text
	s.world.do(func() {
		s.world.checker.voted[h.token] = true
		s.world.checker.forgets(h.names, h.token)
	})
	all := []*request{take}
	if chance(s.voting, s.world.plan.Batches) {
		all = []*request{s.echo(), take, s.echo()}
		if chance(s.voting, 0.5) {
			all = append(all, s.frees(h, l.all()), s.echo())
		}
	}
	_, ok := s.awaitScripts(all...)
	if !ok || l.promise == nil {
		s.strays(h)
		return
	}
	for _, l := range l.all() {
		h.promises = append(h.promises, l.promise)
	}
	h.holds = 1
	s.useVoted(h, l)
}

// grantedBy is granted, by the reply on the wire.
func (s *votedScript) grantedBy(r reply) bool {
	switch r := r.(type) {
	case nil:
		return s.granted(vote.Value{})
	case int64:
		return s.granted(vote.Value{Kind: vote.IntValue, Int: r})
	case string:
		return s.granted(vote.Value{Kind: vote.BulkValue, Text: r})
	}
	return false
}

// script is the command that runs a script.
func (s *speaker) script(v *votedScript, h *votedHold) *request {
	req := v.request(h.names, h.token, h.ttl)
	return &request{words: evalWords(scriptTexts[req.Script], req.Keys, req.Args...), most: 6}
}

// mostAgain is how many InstanceTimeouts a script takes at most, if it is asked again after split votes.
func (s *speaker) mostAgain() int {
	const pauses = 512 * time.Millisecond
	return 20 + int(pauses/s.world.plan.Config.InstanceTimeout)
}

// awaitScripts is await, where some load their scripts first.
func (s *speaker) awaitScripts(all ...*request) (reply, bool) {
	var asks []*request
	for _, q := range all {
		if q.words[0] == "EVAL" && chance(s.voting, 0.2) {
			asks = append(asks, &request{words: []string{"SCRIPT", "LOAD", q.words[1]}})
			q.words[0], q.words[1] = "EVALSHA", sha1hex(q.words[1])
		}
		asks = append(asks, q)
	}
	return s.await(asks...)
}

// strays notes that the client forgets a lock that may exist.
func (s *speaker) strays(h *votedHold) {
	s.world.do(func() { s.world.checker.astray[h.token] = true })
}

// useVoted is use by scripts.
func (s *speaker) useVoted(h *votedHold, l *wanted) {
	w := s.world
	for chance(s.voting, w.plan.Touches) {
		s.pause(between(s.voting, 0, min(w.plan.Hold, h.ttl)))
		if !s.touchVoted(h, l) {
			s.strays(h)
			return
		}
	}
	s.pause(between(s.voting, 0, min(w.plan.Hold, 2*h.ttl)))
	if chance(s.voting, 0.1) {
		s.strays(h)
		return
	}
	for h.holds > 0 {
		if !s.freeVoted(h, l) {
			s.strays(h)
			return
		}
	}
}

func (s *speaker) touchVoted(h *votedHold, l *wanted) bool {
	switch kind := s.voting.Float64(); {
	case kind < 0.4:
		return s.extendVoted(h)
	case h.lock.counts && kind < 0.8:
		return s.reenterVoted(h)
	case h.holds > 1:
		return s.freeVoted(h, l)
	case h.lock == &textLock:
		return s.touch(l)
	}
	return true
}

// promised takes the new promise of a reply.
func (s *speaker) promised(h *votedHold, q *request) {
	for _, p := range h.promises {
		p.until = q.until(s.world, h.ttl, 0)
		s.world.checker.granted(p)
	}
}

func (s *speaker) extendVoted(h *votedHold) bool {
	before := s.shortenByVote(h)
	q := s.script(&h.lock.extend, h)
	q.on = func() {
		_, failed := q.reply.(fault)
		switch {
		case h.lock.extend.grantedBy(q.reply):
			s.promised(h, q)
		case !failed && !q.held:
			s.goneByVote(h, before, "an extension by vote")
		}
	}
	_, ok := s.awaitScripts(q)
	return ok && h.lock.extend.grantedBy(q.reply)
}

// renews is an extension by vote of a lock that the client may not know yet.
func (s *speaker) renews(l *wanted) *request {
	renew := &textLock.extend
	s.world.do(func() { s.world.checker.extended[l.token] = true })
	q := s.script(renew, &votedHold{names: []string{l.resource}, token: l.token, ttl: l.ttl})
	q.most = 0
	q.on = func() {
		if p := l.promise; p != nil && !p.over && renew.grantedBy(q.reply) {
			p.until = q.until(s.world, l.ttl, 0)
			if p.over = s.world.now() >= p.until; !p.over { // a client that reads late relies on nothing more
				s.world.checker.granted(p)
			}
		}
	}
	return q
}

// reenterVoted takes the lock once more. If that is not granted, the client holds the lock as before; false if the
// connection is gone.
func (s *speaker) reenterVoted(h *votedHold) bool {
	k := &s.world.checker
	before := s.shortenByVote(h)
	s.world.do(func() { delete(k.attempts, h.token) })
	q := s.script(&h.lock.take, h)
	q.most = s.mostAgain()
	granted := false
	q.on = func() {
		if granted = h.lock.take.grantedBy(q.reply); granted {
			h.holds++
			k.astray[h.token] = k.astray[h.token] || before[0].until <= s.world.now() // the lock may have been gone by then
			s.promised(h, q)
		}
	}
	_, ok := s.awaitScripts(q)
	if !granted {
		s.strays(h)
	}
	return ok
}

// freeVoted gives the lock back, once.
func (s *speaker) freeVoted(h *votedHold, l *wanted) bool {
	q := s.frees(h, l.all())
	_, ok := s.awaitScripts(q)
	return ok && h.lock.release.grantedBy(q.reply)
}

// frees is a command that gives the lock back, once. From then on the client does not rely on the lock, until a reply
// says that the client still holds the lock. The client may say frees before the reply to its attempt.
func (s *speaker) frees(h *votedHold, all []*wanted) *request {
	w, k := s.world, &s.world.checker
	before, last := s.shortenByVote(h), h.holds <= 1
	doubtful := make([]time.Duration, len(h.names))
	w.do(func() {
		for i, p := range h.promises {
			p.over, before[i].doubtful = true, p.doubtful
		}
		for i, name := range h.names {
			all[i].given, doubtful[i] = all[i].given || last, k.doubtful[name]
		}
	})
	h.holds--
	q := s.script(&h.lock.release, h)
	q.on = func() {
		for i, p := range h.promises { // a client may have taken the lock meanwhile
			p.doubtful = p.doubtful || k.doubtful[h.names[i]] != doubtful[i]
		}
		_, failed := q.reply.(fault)
		granted, clear := h.lock.release.grantedBy(q.reply), !k.astray[h.token]
		switch {
		case failed || q.held || !granted && len(h.promises) == 0:
		case !granted && !clear && h.lock.counts: // the masters did not count its holds alike
			s.overByVote(h)
		case !granted:
			s.goneByVote(h, before, "a release by vote")
		case h.lock.counts && last && q.reply == int64(0) && clear && k.stands(&before[0]) && !w.plan.Forgets && k.has(before[0].resource, before[0].token):
			k.report(heldOn, "%s of %s (%s)", h.names[0], s.name, h.token)
		case len(h.promises) == 0 || last:
			if w.plan.Calm && clear && (!h.lock.counts || q.reply == int64(1)) {
				s.isGone(all)
			}
		case h.lock.counts && !last && q.reply == int64(1):
			if h.holds = 0; clear && k.has(before[0].resource, before[0].token) { // otherwise masters that had missed an inner hold have freed the lock
				s.goneByVote(h, before, "a release of an inner hold")
			}
			s.overByVote(h)
		default:
			for _, p := range h.promises {
				k.granted(p)
			}
		}
	}
	return q
}

// isGone checks that released locks are soon gone.
func (s *speaker) isGone(all []*wanted) {
	for _, l := range all {
		if !l.again {
			s.world.checker.isGoneIn(l, func() bool { return true })
		}
	}
}
