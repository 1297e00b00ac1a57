package sim

import (
	"fmt"
	"io"
	"strconv"
	"syscall"
	"time"

	"lockproxy/quorum/rules"
)

// A speaker is a client that speaks the protocol, over one connection after the other.
type speaker struct {
	*client
	wire  *wire
	at    *proxy // the proxy of the wire
	slow  bool
	resp3 bool
	wires int
	db    int // the database for its connection
}

func newSpeaker(w *World, id int) *speaker {
	s := &speaker{client: newClient(w, id)}
	s.slow, s.resp3 = chance(s.rng, w.plan.Slow), chance(s.rng, 0.5)
	return s
}

// The texts that clients send.
const (
	releaseText = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
	extendText  = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end"
)

// run is its life.
func (s *speaker) run() {
	w := s.world
	for range w.plan.Attempts {
		s.pause(between(s.rng, 0, w.plan.Think))
		s.roams()
		if s.proxy != s.at || chance(s.rng, 0.05) {
			s.leave(io.EOF)
		}
		if !s.open() {
			s.proxy = pick(s.rng, w.proxies...)
			continue
		}
		w.do(func() { w.checker.counts.Attempts++ })
		l := s.wants(resourceName(s.rng.IntN(w.plan.Resources)))
		if s.db = w.plan.key(l.resource).DB; !s.selects() {
			continue
		}
		switch {
		case w.plan.Breaks > 0 && chance(s.operating, w.plan.Breaks):
			s.forceUnlock(l.resource)
			continue
		case w.plan.Reads > 0 && chance(s.moving, w.plan.Reads):
			s.readOrWrite(l)
			continue
		case s.votes():
			s.voteSpoken(l)
			continue
		case w.plan.Exchanges > 0 && chance(s.severally, w.plan.Exchanges):
			s.exchangeSpoken()
			continue
		case w.plan.Together > 0 && chance(s.severally, w.plan.Together):
			s.takeAll(l)
			continue
		}
		switch kind := s.rng.Float64(); {
		case kind < w.plan.Batches:
			s.batch(l)
		case chance(s.rng, w.plan.Watches):
			s.takeWatched(l)
		default:
			s.take(l)
		}
	}
	s.leave(io.EOF)
}

// open makes sure that there is a connection.
func (s *speaker) open() bool {
	w := s.world
	if s.wire != nil {
		gone := false
		w.do(func() { gone = s.wire.lost != nil || s.wire.hungUp })
		if !gone {
			return true
		}
		s.leave(io.EOF)
	}
	s.wires++
	c := w.connect(s.proxy, fmt.Sprintf("%s#%d", s.name, s.wires))
	if c == nil {
		return false
	}
	s.wire, s.at = c, s.proxy
	c.pushed = func(p push) {
		if len(p) == 3 && p[0] == "lost" {
			c.loses(func(h *heldOpen) bool { return h.resource == p[1] && h.fence == p[2] })
		}
	}
	if !s.resp3 {
		return s.selects()
	}
	_, ok := s.ask("HELLO", "3")
	w.do(func() { c.resp3 = ok })
	return ok && s.selects()
}

// leave closes the connection, if there is one.
func (s *speaker) leave(how error) {
	if c := s.wire; c != nil {
		s.world.do(func() { c.hangUp(how) })
	}
	s.wire, s.at = nil, nil
}

// ask says a command and waits for the reply.
func (s *speaker) ask(words ...string) (reply, bool) {
	return s.await(&request{words: words})
}

// await says commands in one go and waits for the reply to the last, or hangs up meanwhile.
func (s *speaker) await(all ...*request) (reply, bool) {
	w, c, last := s.world, s.wire, all[len(all)-1]
	if chance(s.rng, w.plan.HangUps/4) {
		s.hangsUp(all)
		return nil, false
	}
	w.do(func() { c.say(all...) })
	if s.slow {
		w.sleep(between(s.rng, 0, w.plan.TTLMost))
	}
	return c.await(last)
}

// hangsUp lets the client go before the answer: in the middle of its words, or a while after.
func (s *speaker) hangsUp(all []*request) {
	w, c := s.world, s.wire
	whole := chance(s.rng, 0.7)
	w.do(func() {
		if whole {
			c.say(all...)
		} else {
			c.sayPart(all)
		}
	})
	longest := pick(s.rng, 0, 2*w.plan.Latency, 8*w.plan.Latency, w.plan.TTLMost)
	for _, q := range all {
		longest = max(longest, q.waits()*time.Duration(s.rng.IntN(2)))
	}
	w.sleep(between(s.rng, 0, longest))
	switch kind := s.rng.Float64(); {
	case kind < 0.5:
		s.leave(io.EOF)
	case kind < 0.8:
		s.leave(syscall.ECONNRESET)
	default: // the client has shut down its sending side, and reads on
		w.do(func() { c.send(nil, io.EOF) })
		_, _ = c.await(all[len(all)-1])
		s.leave(io.EOF)
	}
}

// wants chooses the lock to ask for.
func (s *speaker) wants(resource string) *wanted {
	w := s.world
	s.tries++
	ttl := between(s.rng, w.plan.TTLLeast, w.plan.TTLMost).Truncate(time.Millisecond)
	if chance(s.rng, w.plan.Longs) {
		ttl = w.plan.of(s.proxy.id).TTLMax
	}
	return &wanted{by: s.client, resource: resource, token: fmt.Sprintf("%s-%d", s.name, s.tries), ttl: ttl, at: -1}
}

// attempt is the command for a lock: SET … NX, or LOCK.
func (s *speaker) attempt(l *wanted) *request {
	w := s.world
	q := &request{lock: l, most: 5, punctual: true} // made anew where votes are split
	if !chance(s.rng, max(w.plan.Waits, w.plan.Holds, w.plan.Fences)) {
		q.words = []string{"SET", l.resource, l.token, "NX", "PX", millis(l.ttl)}
		return q
	}
	l.fenced, l.hold = true, chance(s.rng, w.plan.Holds)
	q.words = []string{"LOCK", l.resource, millis(l.ttl), "TOKEN", l.token}
	if chance(s.rng, w.plan.Waits) {
		l.waits = between(s.rng, time.Millisecond, 3*l.ttl).Truncate(time.Millisecond)
		q.words = append(q.words, "WAIT", millis(l.waits))
	}
	if l.hold {
		q.words = append(q.words, "HOLD")
	}
	q.most, q.punctual = 10, l.waits == 0
	w.do(func() { l.before = w.checker.fenceMark(l.resource) })
	return q
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// take asks for a lock, uses the lock, and gives it back.
func (s *speaker) take(l *wanted) {
	if _, ok := s.await(s.attempt(l)); ok && l.promise != nil {
		s.use(l)
		if s.asks(l) && s.open() {
			s.askFence(l)
		}
	}
}

// takeWatched takes a lock by WATCH, GET, MULTI, SET, EXEC.
func (s *speaker) takeWatched(l *wanted) {
	watch := &request{words: []string{"WATCH", l.resource}}
	seen, ok := s.await(watch, &request{words: []string{"GET", l.resource}})
	if !ok {
		return
	}
	s.pause(between(s.rng, 0, 4*s.world.plan.Latency))
	if seen != nil || watch.reply != status("OK") {
		_, _ = s.ask("UNWATCH")
		return
	}
	l.at = 0
	exec := &request{words: []string{"EXEC"}, lock: l}
	if _, ok := s.await(&request{words: []string{"MULTI"}},
		&request{words: []string{"SET", l.resource, l.token, "PX", millis(l.ttl)}}, exec); ok && l.promise != nil {
		s.use(l)
	}
}

// batch says several commands in one go.
func (s *speaker) batch(l *wanted) {
	w := s.world
	first, gives := s.attempt(l), chance(s.rng, 0.5)
	all := []*request{s.echo(), first, s.echo()}
	other := s.wants(resourceName((int(l.resource[1]-'1') + 1) % w.plan.Resources))
	if other.resource == l.resource || w.plan.Databases {
		other = nil
	} else {
		all = append(all, &request{lock: other, punctual: true, words: []string{"SET", other.resource, other.token, "PX", millis(other.ttl), "NX"}}, s.echo())
	}
	if s.votes() {
		all = append(all, s.renews(l), s.echo())
	}
	if gives {
		look := &request{words: []string{"GET", l.resource}}
		look.on = func() {
			_, failed := look.reply.(fault)
			if got, _ := l.granted(first.reply); got && !failed && w.plan.Calm && w.plan.Breaks == 0 && look.reply != l.token && w.now() < first.sent+l.ttl {
				w.checker.report(garbled, "%s: %s read %v behind %s", l.resource, s.name, look.reply, l.token)
			}
		}
		all = append(all, look, s.release(l), s.echo())
	}
	if _, ok := s.await(all...); !ok {
		return
	}
	if l.promise != nil {
		s.use(l)
	}
	if other != nil && other.promise != nil && s.open() {
		s.giveBack(other)
	}
}

// echo is a command with a unique reply.
func (s *speaker) echo() *request {
	s.tries++
	text := fmt.Sprintf("%s-e%d", s.name, s.tries)
	q := &request{words: []string{"ECHO", text}}
	q.on = func() {
		if q.reply != text {
			s.world.checker.report(garbled, "%s was told %v in place of %s", s.name, q.reply, text)
		}
	}
	return q
}

// use holds a lock for a while, and lets the lock go.
func (s *speaker) use(l *wanted) {
	w := s.world
	for chance(s.rng, w.plan.Touches) {
		s.pause(between(s.rng, 0, min(w.plan.Hold, l.ttl)))
		if s.asks(l) && !s.askFence(l) || !s.touch(l) {
			return
		}
	}
	if l.hold {
		s.pause(between(s.rng, 0, min(3*w.plan.Hold, 3*l.ttl)))
	} else {
		s.pause(between(s.rng, 0, min(w.plan.Hold, 2*l.ttl)))
	}
	switch end := s.rng.Float64(); {
	case end < 0.1 && (!l.hold || s.slow): // the client forgets the lock, and a held lock until its connection ends
	case end < 0.3 && l.hold:
		s.leave(pick[error](s.rng, io.EOF, syscall.ECONNRESET))
	default:
		s.giveBack(l)
	}
}

// touch extends a lock, or reads it.
func (s *speaker) touch(l *wanted) bool {
	w := s.world
	if e := w.plan.Expires; e > 0 && chance(s.operating, e) {
		return s.expire(l)
	}
	if a := w.plan.Adds; a > 0 && chance(s.operating, a) {
		return s.add(l)
	}
	q := &request{most: 4}
	p := l.promise
	switch kind := s.rng.Float64(); {
	case kind < 0.3:
		q.words, p.fence = []string{"EVAL", extendText, "1", l.resource, l.token, millis(l.ttl)}, 0 // a script says nothing of the fence
	case kind < 0.6:
		q.words = []string{"EXTEND", l.resource, l.token, millis(l.ttl)}
	default:
		q.words = []string{"GET", l.resource}
		q.on = func() {
			if _, failed := q.reply.(fault); !failed && q.reply != l.token && !q.held {
				w.checker.gone(p, "a read")
			}
		}
		_, ok := s.await(q)
		return ok && !p.over
	}
	before := time.Duration(0)
	w.do(func() {
		before = p.until
		s.shorten(p, w.now()+rules.Validity(l.ttl, 0, w.plan.of(s.at.id).DriftFactor))
	})
	return s.extend(q, l, before, "an extension", func(n int64) {
		valid := time.Duration(0)
		if p.extended = true; q.words[0] == "EXTEND" {
			valid = time.Duration(n) * time.Millisecond
		}
		p.until = q.until(w, l.ttl, valid)
	})
}

// extend awaits the reply to an extension. The client relied on the lock until before. A reply of 0 means that the lock
// is gone.
func (s *speaker) extend(q *request, l *wanted, before time.Duration, what string, won func(n int64)) bool {
	w, p := s.world, l.promise
	q.on = func() {
		switch n, is := q.reply.(int64); {
		case p.over: // its connection, which alone held the lock, has ended
		case is && n > 0:
			won(n)
			w.checker.granted(p)
		case is:
			if w.now() < before && !q.held {
				w.checker.gone(p, what)
			}
			p.over = true
		}
	}
	_, ok := s.await(q)
	return ok && !p.over
}
