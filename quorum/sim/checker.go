package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockproxy/quorum/rules"
)

// A Finding is a broken rule.
type Finding struct {
	Rule string
	At   time.Duration
	Text string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s at %.6f: %s", f.Rule, f.At.Seconds(), f.Text)
}

// The rules. No two clients rely on one resource at the same time, by the proxy's answer or by their own count of the
// TTL. A quorum holds a promised lock for the promised time, and the promised time is not nothing. A key ends. A failed
// attempt leaves nothing behind on a master that can be reached. Every attempt ends. When only a minority of the
// masters is broken, free resources can be locked. No memory of finished work remains.
const (
	twoHolders = "two holders"
	lostLock   = "a promised lock is gone"
	forEver    = "a key outlives its TTL"
	tooLate    = "granted with no validity left"
	minority   = "a lock without a quorum"
	afterEnd   = "sent after its attempt had ended"
	orphan     = "an orphan"
	noEnd      = "an attempt without end"
	oldFence   = "a fence that has not grown"
	noFence    = "a lock without a fence"
	staleFence = "a fence that is not the newest"
	notFree    = "a free resource cannot be locked"
	leak       = "memory is not given back"
	heldOn     = "a lock is held on after its last release"
	toldTwice  = "a value that two were told"
	notTold    = "a value that was not told"
	heldAgain  = "a lock that was taken away is held again"
	zombie     = "a lock that is over is set again"
	blindTaker = "a vote is taken by a command that does not name it"
)

// A checker watches the answers to clients and the keys on masters. The world's mu guards all fields.
type checker struct {
	world     *World
	findings  []Finding
	promises  map[string][]*promise // by resource: promises that may not be over
	doubtful  map[string]time.Duration
	attempts  map[string]*fate    // by token, of tokens used once; and by resource and token, of moves
	prolonged map[string]bool     // by resource: a client that did not hold the resource gave it another TTL
	stakes    map[string][]*stake // by resource
	voted     map[string]bool     // tokens of attempts by vote
	astray    map[string]bool     // tokens with a step that was not granted, and may have been done all the same
	lost      map[string]bool     // by master and token: an answer was not heard
	exchanges []*exchange
	thefts    map[string]int           // by resource: the number of clients that try to take it from its holder
	stolen    map[string]time.Duration // by token: when a client was told the token, having taken the lock away
	returned  map[string]bool          // by token: the lock was stolen, and its holder has extended it since
	bygone    map[string]time.Duration // by token: when its client was told of its release or replacement, or another client of taking it
	shaken    map[string]bool          // tokens of locks that may have been taken away
	extended  map[string]bool          // tokens of attempts with an extension behind them in one pipeline
	holds     map[string][]*heldOpen   // by resource: locks of connections that may not be over
	keptMost  time.Duration
	fences    fenceBook
	broken    map[string]time.Duration // by resource: when it was broken last
	renewals  map[string]int           // by resource: how often a shared one was renewed
	counts    Counts
}

// Counts are the numbers of a world.
type Counts struct {
	Attempts, Granted, Refused, NoQuorum, Lost int

	Fenced, Unfounded, Voted int // among the granted

	Behind int // batches that were sent while others were under way on their connection

	HandedOver int // bells of releases that came with the attempt of a client that waited
}

// Add adds the counts of another world.
func (c *Counts) Add(d Counts) {
	c.Attempts += d.Attempts
	c.Granted += d.Granted
	c.Refused += d.Refused
	c.NoQuorum += d.NoQuorum
	c.Lost += d.Lost
	c.Fenced += d.Fenced
	c.Unfounded += d.Unfounded
	c.Voted += d.Voted
	c.Behind += d.Behind
	c.HandedOver += d.HandedOver
}

// answered counts the outcome of an attempt.
func (c *Counts) answered(failed, granted bool) {
	switch {
	case failed:
		c.NoQuorum++
	case granted:
		c.Granted++
	default:
		c.Refused++
	}
}

// A promise is a lock on which a client relies.
type promise struct {
	resource, token string
	fence           int64 // 0 if there is none, or its record may end before the lock
	client          *client
	began           time.Duration // when the lock was asked for; 0 if that may have been at any time
	until           time.Duration // true time, as began
	lacks           time.Duration // since when a master lacks the lock; 0 if all masters have it
	extended        bool          // with its fence
	shared          bool          // shared with other shared promises
	over            bool
	doubtful        bool   // a client took the lock away, or may have
	contested       bool   // a client tries to take the lock away, and will report the outcome
	stake           *stake // of a shared token
}

// A fate is the outcome of an attempt with a token of its own.
type fate struct {
	life   *life
	failed bool
	left   bool // the client had gone, or the attempt was refused: it may still be sent to slow masters
}

func (k *checker) init(w *World) {
	*k = checker{
		world: w, promises: make(map[string][]*promise), doubtful: make(map[string]time.Duration),
		attempts: make(map[string]*fate), prolonged: make(map[string]bool), stakes: make(map[string][]*stake),
		thefts: make(map[string]int), stolen: make(map[string]time.Duration), returned: make(map[string]bool), shaken: make(map[string]bool), extended: make(map[string]bool), bygone: make(map[string]time.Duration),
		voted: make(map[string]bool), astray: make(map[string]bool), lost: make(map[string]bool), holds: make(map[string][]*heldOpen),
		renewals: make(map[string]int), broken: make(map[string]time.Duration),
		fences: fenceBook{of: make(map[string]int64), given: make(map[string][]int64)},
	}
	c := w.plan.loosest()
	// A key's expiry is reckoned by the known state of the master's clock. After a slow answer, or after half a second,
	// this state is inexact. Some milliseconds are added so that no two expiries are alike.
	inexact := c.InstanceTimeout + time.Duration(c.DriftFactor*float64(500*time.Millisecond)) + 300*time.Millisecond
	if w.plan.Old > 0 { // these are told apart less exactly
		inexact += 300 * time.Millisecond
	}
	k.keptMost = c.TTLMax + rules.Drift(c.TTLMax, c.DriftFactor) + max(c.Grace, 0) + inexact
}

func (k *checker) report(rule, format string, args ...any) {
	f := Finding{rule, k.world.now(), fmt.Sprintf(format, args...)}
	k.world.logf("FINDING", "%s: %s", f.Rule, f.Text)
	k.findings = append(k.findings, f)
}

// granted notes that a client may rely on a resource from now on, or for longer than before.
func (k *checker) granted(p *promise) {
	now := k.world.now()
	_, p.over = k.stolen[p.token]
	p.doubtful = p.doubtful || now < k.doubtful[p.resource] || p.began < k.broken[p.resource] || k.shaken[p.token] || k.world.initialising
	p.contested = p.contested || k.thefts[p.resource] > 0
	live := k.promises[p.resource][:0]
	for _, other := range k.promises[p.resource] {
		if other == p || other.over || other.until <= now {
			continue
		}
		live = append(live, other)
		unclear := other.contested && k.thefts[p.resource] > 0 // a client that tries to take the lock may not have reported its failure yet
		if other.client != p.client && !(other.shared && p.shared) && !other.doubtful && !p.doubtful && !p.over && !unclear {
			k.report(twoHolders, "%s: %s (%s) got it, while %s (%s) may rely on it for %v",
				p.resource, p.client.name, p.token, other.client.name, other.token, other.until-now)
		}
	}
	k.promises[p.resource] = append(live, p)
	if !k.world.plan.Rolls { // otherwise a master may have just forgotten the lock, and gets it back soon
		k.held(p, p.until)
	}
	until := p.until
	k.world.after(until-now-1, func() {
		if p.until == until {
			k.held(p, until)
		}
	})
}

// held checks that a quorum of the masters holds a promised lock, and will hold it until a true time.
func (k *checker) held(p *promise, until time.Duration) {
	if !k.stands(p) || k.world.plan.forgets() {
		return
	}
	n := 0
	for _, s := range k.world.servers {
		it, ok := s.lock(p.resource)
		if ok && it.heldBy(p.token) && it.expires >= s.clock.millis(until) {
			n++
		}
	}
	if n <= len(k.world.servers)/2 {
		k.report(minority, "%s of %s (%s): %d masters hold it until %.6f", p.resource, p.client.name, p.token, n, until.Seconds())
	}
}

// sent checks a command on its way to a master: a failed attempt sends nothing more.
func (k *checker) sent(words []string) {
	k.votedSent(words)
	if words[0] != "SET" || len(words) < 4 || words[3] != "NX" {
		return
	}
	if f := k.attempts[words[2]]; f != nil && f.failed && !f.left {
		k.report(afterEnd, "%v", words)
	}
}

// doubt says that a client takes a resource from its holder, now or until a true time. Until then nothing is promised,
// and former promises do not bind.
func (k *checker) doubt(resource string, until time.Duration) {
	k.doubtful[resource] = max(k.doubtful[resource], until)
	for _, p := range k.promises[resource] {
		p.doubtful = true
	}
	for _, h := range k.holds[resource] { // which last longer than the promise
		h.promise.doubtful = true
	}
}

// slept moves the ends of all promises: while the proxies stood still, everybody else went on.
func (k *checker) slept(by time.Duration) {
	for _, list := range k.promises {
		for _, p := range list {
			p.until -= by
		}
	}
	for _, x := range k.exchanges {
		x.until -= by
	}
}

// stands says that a promise binds now, so that every reader must find the lock.
func (k *checker) stands(p *promise) bool {
	return !p.over && !p.doubtful && !p.contested && k.world.now() < p.until
}

// gone is called when a client was told that it does not hold its lock.
func (k *checker) gone(p *promise, by string) {
	if k.stands(p) && (!k.world.plan.forgets() || k.world.plan.Spares) { // otherwise a quorum may have forgotten the lock
		k.report(lostLock, "%s of %s (%s) is gone, says %s, %v early",
			p.resource, p.client.name, p.token, by, p.until-k.world.now())
	}
}

// wrote checks a key that a master has set for a connection.
func (k *checker) wrote(s *server, c *session, key string, it item) {
	if strings.HasPrefix(key, "lockproxy:") || s.twofold { // of two servers behind one address, a proxy may go by the other's clock
		return
	}
	left := time.Duration(it.expires-s.clock.millis(s.now())) * time.Millisecond
	// The proxy chose the instant before it knew that the clock was set back, or stood still, since the batch before.
	// The proof of this batch will tell. Then the vote does not count, and is undone.
	most := k.keptMost + s.clock.setBack(c.knew, s.now())
	if k.world.plan.Spoken && strings.HasPrefix(key, "w") { // a lock of readers: a leaving reader gives it the rest of another key's TTL, which may be from before the clock was set back
		loosest := k.world.plan.loosest()
		most = k.keptMost + s.clock.setBack(lead{}, s.now())
		most += rules.Drift(most, loosest.DriftFactor) + loosest.Grace
	}
	if k.world.plan.Paused { // until a proxy hears of its sleep, it takes the sleep for a step of the master's clock
		most += k.world.asleep()
	}
	if it.expires == 0 || left > most && !s.store.expired(key, it.expires) {
		k.report(forEver, "%s: %s expires in %v", s.addr, key, left)
	}
}

// takesVote checks a command that replaces or removes a key: the command must name the key's token, or the key's digest
// or DUMP with its expiry. Worlds with two kinds of commands are exempt: scripts by vote compare in their text, and a
// SET that takes a lock over does not compare.
func (k *checker) takesVote(s *server, c *session, key, next string) {
	p := &k.world.plan
	if key[0] != 'r' || s.running == nil || p.Votes > 0 || p.Takeovers > 0 || p.Breaks > 0 {
		return
	}
	was, ok := s.get(c, key)
	if ok && was.text != next && !slices.Contains(s.running, was.text) && !namesWithExpiry(s.running, was) {
		k.report(blindTaker, "%s: %s of %s, for %q, by %s", s.addr, was.text, key, next, brief(s.running))
	}
}

// revives checks a command that sets a key: no command sets a lock that is over. Exempt are
//
//   - commands sent soon after the end.
//   - commands that put back a lock which a client took away in vain.
//   - commands that fill a gap, and are undone (rule 11).
func (k *checker) revives(s *server, c *session, key, token string) {
	at, over := k.bygone[token]
	if !over || key[0] != 'r' || s.running == nil || k.world.plan.Votes > 0 {
		return
	}
	putsBack := len(s.running) == 8 && s.running[6] == token // puts back the key after an Exec that lost
	if putsBack || k.shaken[token] || k.thefts[key] > 0 || slices.Contains(s.running, "lockproxy:canary") {
		return
	}
	if was, _ := s.get(c, key); was.text != token && s.sent > at+3*k.world.plan.loosest().InstanceTimeout {
		k.report(zombie, "%s: %s of %s, %v after, by %s", s.addr, token, key, s.sent-at, brief(s.running))
	}
}

// namesWithExpiry says that a command has a key's digest or DUMP, followed by the key's expiry, as exactly as masters
// tell.
func namesWithExpiry(words []string, it item) bool {
	const slack = 4 // ms
	for i := 1; i < len(words); i++ {
		at, err := strconv.ParseInt(words[i], 10, 64)
		named := words[i-1] == sha1hex(it.text) || words[i-1] == dump(it)
		if err == nil && named && max(at-it.expires, it.expires-at) <= slack {
			return true
		}
	}
	return false
}

// ended checks how long an attempt took: the round may take one InstanceTimeout, and the undo another.
func (k *checker) ended(took time.Duration, what string) { k.endedIn(2, took, what) }

// endedIn is ended for an operation that may take timeouts times an InstanceTimeout.
func (k *checker) endedIn(timeouts int, took time.Duration, what string) {
	const slack = 50 * time.Millisecond // the patience of the engine counts in ticks
	if most := time.Duration(timeouts)*k.world.plan.loosest().InstanceTimeout + slack; took > most {
		k.report(noEnd, "%s took %v", what, took)
	}
}

// attempt notes the outcome of an attempt whose token is used once.
func (k *checker) attempt(token string, f fate) { k.attempts[token] = &f }

// orphans looks for keys of failed attempts. Exempt are
//
//   - keys of proxies that are gone, until their TTL.
//   - keys of connections that may not be killed, which can still set keys.
//   - keys to which another client gave another lifetime: an undo takes only its own attempt's key.
//   - keys that a client took away in vain, because the client may put the key back after the undo.
//   - keys that their client may have extended before the undo: an extension behind the attempt was sent with the attempt.
//   - a reader's failed attempt in a lock of other readers: the attempt goes with the lock, as on one Redis a reader's
//     hold does when the reader lets the hold end.
func (k *checker) orphans() {
	p := &k.world.plan
	// A losing transaction puts back the key that it replaced, even if the key was undone meanwhile.
	if len(p.Denied) > 0 || p.Forgets || p.Takeovers > 0 && p.Transactions > 0 {
		return
	}
	for _, s := range k.world.servers {
		now := s.clock.millis(s.now())
		for key, it := range s.store.all() {
			f := k.attempts[it.holder()]
			if m := k.attempts[key+" "+it.holder()]; m != nil { // it was to be moved there
				f = m
			}
			if f != nil && f.failed && !k.prolonged[key] && !k.shaken[it.holder()] && !k.extended[it.holder()] && k.renewals[key] == 0 && !it.isShared() && !k.lost[s.addr+" "+it.holder()] && !f.life.dead && f.life.proxy.life == f.life && now <= it.expires {
				k.report(orphan, "%s: %s still holds %s for %d ms", s.addr, key, it.holder(), it.expires-now)
			}
		}
	}
}
